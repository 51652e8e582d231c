"""The real talosctl accepts what the recipe for Talos gives to a node."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.judges import find_judge
from tests.support.programs import LONG_S
from tests.support.recipes import RECIPES

from stackyard.engine.version import Flavour

pytestmark = pytest.mark.judges("talosctl")

MODULE = RECIPES / "modules/talos_cluster"
CLUSTER = {
    "cluster_name": "prod",
    "talos_version": "v1.12.1",
    "kubernetes_version": "1.35.0",
    "gateway": "10.0.0.1",
    "nameservers": ["10.0.0.1"],
    "vip": "10.0.0.10",
    "nodes": {
        "cp-1": {"role": "controlplane", "node_name": "pve1", "vm_id": 801, "address": "10.0.0.11/24"},
        "w-1": {"role": "worker", "node_name": "pve2", "vm_id": 811, "address": "10.0.0.21/24"},
    },
}
PATCHES = """
locals { installer = "factory.talos.dev/metal-installer/abc:v1.12.1" }
output "patches" {
  value = {
    for name, node in var.nodes : name => concat(
      [local.install_patch, local.network_patches[name], local.hostname_patches[name]],
      local.role_patches[node.role],
    )
  }
}
"""


@pytest.fixture(scope="module")
def talosctl() -> Path:
    return find_judge("talosctl")


def run(program: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(cwd)}
    command = [str(program), *arguments]
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=LONG_S, check=False
    )


def read_patches(folder: Path) -> dict[str, list[str]]:
    """Let OpenTofu compute the patches of the recipe, which need no provider."""
    folder.mkdir()
    blocks = re.findall(r"^locals \{.*?^\}$", (MODULE / "main.tf").read_text(), re.MULTILINE | re.DOTALL)
    (patches,) = (block for block in blocks if "network_patches" in block)
    (folder / "main.tf").write_text(patches + PATCHES)
    (folder / "variables.tf").write_text((MODULE / "variables.tf").read_text())
    (folder / "terraform.tfvars.json").write_text(json.dumps(CLUSTER))
    engine = real_engine(Flavour.TOFU).path
    for words in (("init",), ("apply", "-auto-approve"), ("output", "-json", "patches")):
        done = run(engine, *words, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
    patches_of: dict[str, list[str]] = json.loads(done.stdout)
    return patches_of


@pytest.mark.tofu
def test_the_configuration_of_every_node_of_the_recipe_is_valid(talosctl: Path, tmp_path: Path) -> None:
    patches = read_patches(tmp_path / "patches")
    assert set(patches) == {"cp-1", "w-1"}
    for name, role in (("cp-1", "controlplane"), ("w-1", "worker")):
        made = tmp_path / f"{name}.yaml"
        words = [word for patch in patches[name] for word in ("--config-patch", patch)]
        select = ("--output-types", role, "--output", str(made), "--with-docs=false")
        gen = ("gen", "config", "prod", "https://10.0.0.10:6443", *select, *words)
        done = run(talosctl, *gen, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"hostname: {name}" in made.read_text()
        done = run(talosctl, "validate", "--strict", "--mode", "metal", "--config", str(made), cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_a_configuration_with_an_unknown_key_is_refused(talosctl: Path, tmp_path: Path) -> None:
    patch = json.dumps({"machine": {"network": {"nameserver": "10.0.0.1"}}})
    gen = (
        "gen",
        "config",
        "prod",
        "https://10.0.0.10:6443",
        "--output-types",
        "worker",
        "--output",
        "w.yaml",
    )
    done = run(talosctl, *gen, "--config-patch", patch, cwd=tmp_path)
    assert done.returncode != 0
    assert "nameserver" in done.stderr
