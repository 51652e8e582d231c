"""A stack from the Proxmox recipe makes a VM and a container, with either provider."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.path import mirror_of
from tests.support.provider import bpg_binary, lab_table, require_bpg
from tests.support.proxmox_recipe import STACK, make_recipe_repo
from tests.support.stack_repo import StackRepo

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(120)]

_TARGET = f"stack:{STACK}"
# What the data of the recipe leave at its default.
_MORE = """\
target_node = "pve1"
dns_servers = ["1.1.1.1", "9.9.9.9"]
resources = {
  db = {
    type = "vm"
    node_name = "pve1"
    on_boot = true
    tags = ["DB", "a-b"]
    vm_config = {
      os_type          = "debian"
      os_version       = "12"
      vlan_id          = 20
      disk_ssd         = true
      additional_disks = [{ size = 1, ssd = true, backup = false }, { size = 2 }]
    }
    nodes = {
      db-1 = { vm_id = 601, vm_config = { ipv4_address = "10.0.0.6/24", ipv4_gateway = "10.0.0.1" } }
      db-2 = { vm_id = 602, started = false }
    }
  }
  files = {
    type = "lxc"
    lxc_config = {
      template_url = "http://download.proxmox.com/images/system/debian-13-standard_13.1-2_amd64.tar.zst"
      vlan_id = 20
      mount_points = [{ path = "/srv", volume = "local-lvm", size = "3G", backup = true }]
    }
    nodes = {
      nas = { vm_id = 603, lxc_config = { ipv4_address = "10.0.0.7/24" } }
      priv = { vm_id = 604, started = false, lxc_config = { unprivileged = false } }
    }
  }
}
"""
_FILES = "debian-13.qcow2,debian-13-standard_13.1-2_amd64.tar.zst"


def _apply_and_destroy(repo: StackRepo, running: lab.Running, *options: str) -> None:
    assert repo.json("apply", _TARGET, *options)["applied"] == {"add": 4, "change": 0, "remove": 0}
    guests = {int(key): one for key, one in lab_table(running, "guests").items()}
    assert {key: one["status"] for key, one in guests.items()} == {1001: "running", 1002: "running"}
    config = guests[1001]["config"]
    assert config["machine"] == "q35"
    assert config["bios"] == "ovmf"
    repo.run("plan", _TARGET, "--detailed-exitcode", *options)
    # The data are no longer needed: an empty map is no plan, and yet no obstacle.
    (repo.root / "tofu/stacks" / STACK / "vms.tfvars").write_text("resources = {}\n")
    repo.commit("empty")
    repo.run("destroy", _TARGET, "--allow-destroy", f"web-1,dns-1,{_FILES}", *options)
    assert lab_table(running, "guests") == {}


def _use_bpg(repo: StackRepo) -> tuple[str, ...]:
    require_bpg()
    binary = bpg_binary()
    assert binary is not None
    mirror = mirror_of(binary, real_engine(Flavour.TOFU).path, repo.root.parent / "mirror")
    repo.env |= {"STACKYARD_TOFU_CONFIG": str(mirror)}
    return ("--provider", "bpg")


def test_a_vm_and_a_container_of_the_recipe_are_applied_unchanged_and_destroyed(tmp_path: Path) -> None:
    with lab.running() as running:
        repo = make_recipe_repo(tmp_path / "repo", running)
        _apply_and_destroy(repo, running)


def test_the_recipe_does_the_same_with_bpg(tmp_path: Path) -> None:
    require_bpg()
    with lab.running() as running:
        repo = make_recipe_repo(tmp_path / "repo", running)
        _apply_and_destroy(repo, running, *_use_bpg(repo))


@pytest.mark.parametrize("provider", ["builtin", "bpg"])
def test_disks_mount_points_and_static_addresses_are_applied_and_unchanged(
    provider: str, tmp_path: Path
) -> None:
    with lab.running() as running:
        repo = make_recipe_repo(tmp_path / "repo", running, _MORE)
        options = _use_bpg(repo) if provider == "bpg" else ()
        repo.run("apply", _TARGET, *options)
        repo.run("plan", _TARGET, "--detailed-exitcode", *options)
        configs = {int(key): one["config"] for key, one in lab_table(running, "guests").items()}
    assert "size=2G" in configs[601]["scsi2"]
    assert "ip=10.0.0.6/24" in configs[601]["ipconfig0"]
    assert "tag=20" in configs[601]["net0"]
    assert "mp=/srv" in configs[603]["mp0"]
    assert configs[601]["nameserver"] == "1.1.1.1 9.9.9.9"
    assert "features" not in configs[604]
