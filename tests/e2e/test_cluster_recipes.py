"""The recipes for Talos, Flux and OCI, checked with the real providers; no cluster and no cloud is needed."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.lab import proxmoxer_client
from tests.support.recipes import FLUX, KUBERNETES, OCI, PROXMOX, RECIPES, TALOS, copy_stack, mirror

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

NEEDED = {"talos": (TALOS, PROXMOX), "flux": (FLUX, KUBERNETES), "oci": (OCI,)}
# The real Talos provider makes the secrets and the configurations; nothing asks a Proxmox.
_TALOS_TEST = """
mock_provider "proxmox" {
  mock_resource "proxmox_download_file" {
    defaults = { id = "local:import/talos.qcow2" }
  }
}

variables {
  cluster_name       = "prod"
  talos_version      = "v1.12.1"
  kubernetes_version = "1.35.0"
  gateway            = "10.0.0.1"
  nameservers        = ["10.0.0.1"]
  vip                = "10.0.0.10"
  check_health       = false
  nodes = {
    cp-1 = { role = "controlplane", node_name = "pve1", vm_id = 801, address = "10.0.0.11/24" }
    w-1  = { role = "worker", node_name = "pve2", vm_id = 811, address = "10.0.0.21/24" }
  }
}

run "secrets" {
  command = apply
  plan_options {
    target = [talos_machine_secrets.this]
  }
}

run "configuration" {
  command = plan
  assert {
    condition     = output.endpoint == "https://10.0.0.10:6443"
    error_message = output.endpoint
  }
  assert {
    condition     = length(proxmox_download_file.image) == 2
    error_message = "an image for each Proxmox node"
  }
  assert {
    condition = jsonencode(nonsensitive({
      for name, node in talos_machine_configuration_apply.node : name => {
        network = yamldecode(split("\\n---\\n", node.machine_configuration)[0]).machine.network.interfaces[0]
        install = yamldecode(split("\\n---\\n", node.machine_configuration)[0]).machine.install.wipe
        kubelet = yamldecode(split("\\n---\\n", node.machine_configuration)[0]).machine.kubelet.image
        name    = yamldecode(split("\\n---\\n", node.machine_configuration)[1])
      }
    })) == jsonencode({
      cp-1 = {
        network = {
          deviceSelector = { physical = true }, addresses = ["10.0.0.11/24"], dhcp = false
          vip            = { ip = "10.0.0.10" }
          routes         = [{ network = "0.0.0.0/0", gateway = "10.0.0.1" }]
        }
        install = false
        kubelet = "ghcr.io/siderolabs/kubelet:v1.35.0"
        name    = { apiVersion = "v1alpha1", kind = "HostnameConfig", auto = "off", hostname = "cp-1" }
      }
      w-1 = {
        network = {
          deviceSelector = { physical = true }, addresses = ["10.0.0.21/24"], dhcp = false
          routes         = [{ network = "0.0.0.0/0", gateway = "10.0.0.1" }]
        }
        install = false
        kubelet = "ghcr.io/siderolabs/kubelet:v1.35.0"
        name    = { apiVersion = "v1alpha1", kind = "HostnameConfig", auto = "off", hostname = "w-1" }
      }
    })
    error_message = "the machine configurations differ"
  }
}
"""


def tofu(folder: Path, settings: Path, *arguments: str) -> str:
    """Run the engine with providers from a mirror; return what it says."""
    said = subprocess.run(
        [real_engine(Flavour.TOFU).path, *arguments, "-no-color"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "TF_CLI_CONFIG_FILE": str(settings)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


@pytest.mark.parametrize("recipe", NEEDED)
def test_a_stack_is_valid_for_its_real_providers(recipe: str, tmp_path: Path) -> None:
    settings = mirror(tmp_path / "providers", *NEEDED[recipe])
    repo = copy_stack(tmp_path / "repo", recipe, f"some/{recipe}")
    folder = repo.root / "stacks/some" / recipe
    tofu(folder, settings, "init", "-backend=false")
    assert "The configuration is valid." in tofu(folder, settings, "validate")


def test_talos_gets_static_addresses_names_and_no_order_to_wipe(tmp_path: Path) -> None:
    settings = mirror(tmp_path / "providers", TALOS, PROXMOX)
    module = tmp_path / "talos_cluster"
    shutil.copytree(RECIPES / "modules/talos_cluster", module)
    (module / "configuration.tftest.hcl").write_text(_TALOS_TEST)
    tofu(module, settings, "init")
    assert "Success! 2 passed, 0 failed." in tofu(module, settings, "test")


def test_the_machines_of_a_cluster_are_made_on_a_lab_before_anything_is_asked_of_talos(
    tmp_path: Path,
) -> None:
    settings = mirror(tmp_path / "providers", TALOS)
    repo = copy_stack(tmp_path / "repo", "talos", "platform/k8s")
    target = "stack:platform/k8s"
    parts = ("proxmox_virtual_environment_vm.node", "talos_machine_secrets.this")
    only = [f"-target=module.cluster.{part}" for part in parts]
    with lab.running(nodes=("pve1",)) as running:
        access = f'{{ endpoint = "{running.url}", api_token = "{running.api_token}", insecure = true }}'
        repo.env |= {"STACKYARD_TOFU_CONFIG": str(settings), "TF_VAR_proxmox_connection": access}
        applied = repo.json("apply", target, "--", *only)
        assert applied["applied"]["add"] == 6
        api = proxmoxer_client(running)
        config = api.nodes("pve1").qemu(801).config.get()
        left = repo.actions(target)
    assert config["name"] == "cp-1"
    assert config["ipconfig0"] == "gw=10.0.0.1,ip=10.0.0.11/24"
    assert set(config["tags"].split(";")) == {"controlplane", "talos"}
    assert {address.partition("module.cluster.")[2].partition("[")[0] for address in left} == {
        "talos_machine_configuration_apply.node",
        "talos_machine_bootstrap.this",
        "talos_cluster_kubeconfig.this",
    }


_HERE = """
provider "kubernetes" {{
  host = "{url}"
}}
"""


def test_the_age_key_reaches_the_cluster_and_not_the_state(tmp_path: Path) -> None:
    settings = mirror(tmp_path / "providers", FLUX, KUBERNETES)
    module = tmp_path / "flux_bootstrap"
    shutil.copytree(RECIPES / "modules/flux_bootstrap", module)
    key = f"AGE-SECRET-KEY-1{'Q' * 58}"
    (module / "terraform.tfvars").write_text(f'path = "clusters/prod"\nage_key = "{key}"\n')
    with serve_objects() as (url, objects):
        (module / "here.tf").write_text(_HERE.format(url=url))
        tofu(module, settings, "init")
        # Flux itself needs a cluster that runs its controllers.
        tofu(module, settings, "apply", "-auto-approve", "-target=kubernetes_secret_v1.sops_age")
    secret = objects["/api/v1/namespaces/flux-system/secrets/sops-age"]
    assert base64.b64decode(secret["data"]["age.agekey"]).decode() == key
    state = (module / "terraform.tfstate").read_text()
    assert "sops-age" in state
    assert key not in state
    assert secret["data"]["age.agekey"] not in state


@contextlib.contextmanager
def serve_objects() -> Iterator[tuple[str, dict[str, Any]]]:
    """Serve objects as the API of Kubernetes does, as far as making and reading them goes."""
    objects: dict[str, Any] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path = f"{self.path.partition('?')[0]}/{body['metadata']['name']}"
            body["metadata"] |= {"uid": path, "resourceVersion": "1"}
            if texts := body.pop("stringData", None):
                body["data"] = {
                    name: base64.b64encode(text.encode()).decode() for name, text in texts.items()
                }
            objects[path] = body
            self._answer(201, body)

        def do_GET(self) -> None:
            found = objects.get(self.path.partition("?")[0])
            self._answer(
                200 if found else 404, found or {"kind": "Status", "code": 404, "reason": "NotFound"}
            )

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", objects
        finally:
            server.shutdown()
            thread.join()
