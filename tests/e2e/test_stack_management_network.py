"""A stack of one's own that changes the management bridge of a node: refused, permitted, with a way back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stack_repo import StackRepo, make_repo

from stackyard import lab

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

STACK = "stack:hosts"
RELOAD = ("--yes", "--allow-network-reload", "pve1")
PERMITTED = (*RELOAD, "--allow-management-network", "pve1")
CODE = """
terraform {{
  required_providers {{
    proxmox = {{ source = "bpg/proxmox" }}
  }}
  backend "http" {{}}
}}
provider "proxmox" {{
  endpoint  = "{url}"
  api_token = "{token}"
  insecure  = true
  ssh {{
    username = "root"
    password = "{password}"
    node {{
      name    = "pve1"
      address = "127.0.0.1"
      port    = {port}
    }}
  }}
}}
import {{
  to = proxmox_virtual_environment_network_linux_bridge.management
  id = "pve1:vmbr0"
}}
resource "proxmox_virtual_environment_network_linux_bridge" "management" {{
  node_name = "pve1"
  name      = "vmbr0"
  address   = "{address}/16"
  gateway   = "{gateway}"
  ports     = ["eno1"]
}}
resource "proxmox_virtual_environment_network_linux_bridge" "guests" {{
  node_name = "pve1"
  name      = "vmbr7"
}}
"""


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1",), ssh_port=0) as made:
        yield made


def make(running: lab.Running, folder: Path) -> StackRepo:
    return make_repo(folder, {"tofu/stacks/hosts/main.tf": code(running, "10.31.0.11", "10.31.0.1")})


def code(running: lab.Running, address: str, gateway: str, *, port: int | None = None) -> str:
    return CODE.format(
        url=running.url,
        token=running.api_token,
        password=running.password,
        port=running.document()["ssh_ports"]["pve1"] if port is None else port,
        address=address,
        gateway=gateway,
    )


def write(repo: StackRepo, text: str) -> None:
    repo.write({"tofu/stacks/hosts/main.tf": text})
    repo.commit()


def codes(repo: StackRepo, *arguments: str) -> list[str]:
    error = repo.json(*arguments, status=1)["error"]
    return [one["code"] for one in error["diagnostics"]]


def interfaces(running: lab.Running) -> str:
    return str(running.on_loop(lambda: running.world.store.items("interfaces")["pve1"]["text"]))


def list_timers(running: lab.Running) -> list[str]:
    """Return the commands of the node's shell that set timers or stop them."""
    journal = running.world.journal
    entries = running.on_loop(lambda: [(entry.method, entry.path) for entry in journal.entries()])
    return [path for method, path in entries if method == "SSH" and "way-back" in path]


def test_the_management_bridge_has_its_own_permit_and_a_way_back(
    running: lab.Running, tmp_path: Path
) -> None:
    repo = make(running, tmp_path)
    # Another bridge needs no more than a reload.
    repo.run("apply", STACK, *RELOAD)
    assert list_timers(running) == []
    before = interfaces(running)

    write(repo, code(running, "10.31.0.99", "10.31.0.1"))
    assert codes(repo, "apply", STACK, *RELOAD) == ["E-GUARD-CUTS-MANAGEMENT"]
    # Without SSH there is no way back, and nothing is changed.
    write(repo, code(running, "10.31.0.99", "10.31.0.1", port=1))
    error = repo.json("apply", STACK, *PERMITTED, status=None)["error"]
    assert error["code"] == "E-APPLY-NO-WAY-BACK"
    assert (list_timers(running), interfaces(running)) == ([], before)

    write(repo, code(running, "10.31.0.99", "10.31.0.1"))
    repo.run("apply", STACK, *PERMITTED)
    assert "systemd-run" in list_timers(running)[0]
    assert "systemctl stop" in list_timers(running)[-1]
    assert "10.31.0.99/16" in interfaces(running)


def test_a_saved_plan_is_judged_by_the_cluster_that_it_is_for(running: lab.Running, tmp_path: Path) -> None:
    repo = make(running, tmp_path)
    repo.run("apply", STACK, *RELOAD)
    write(repo, code(running, "10.31.0.99", "10.31.0.1"))
    repo.run("plan", STACK, "--out", "saved.plan", status=3)
    saved = ("apply", STACK, "--plan", "saved.plan")
    assert codes(repo, *saved, *RELOAD) == ["E-GUARD-CUTS-MANAGEMENT"]
    repo.run(*saved, *PERMITTED)
    assert "systemd-run" in list_timers(running)[0]
    assert "10.31.0.99/16" in interfaces(running)
