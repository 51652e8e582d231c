"""The real bpg/proxmox provider, under OpenTofu and Terraform, takes guests through their lives in a lab.

STACKYARD_TEST_BPG names its binary (`go build` in a checkout of the provider makes one); without it these
tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from proxmoxer.tools import Tasks
from tests.support.engine import engine
from tests.support.judges import find_judge
from tests.support.lab import proxmoxer_client
from tests.support.lab_consistency import Gone, problems_in
from tests.support.web import served

from stackyard import lab
from stackyard.engine.version import Engine

__all__ = ["engine"]

pytestmark = [pytest.mark.bpg, pytest.mark.timeout(900)]

PROVIDER = """
terraform {
  required_providers {
    proxmox = { source = "bpg/proxmox" }
  }
}
variable "images" { type = string }
variable "settings" {
  type = object({ memory = number, disk = number, node = string, clones = number, hostname = string })
}
provider "proxmox" {
  insecure = true
  ssh {
    username = "root"
    %(nodes)s
  }
}
"""

RESOURCES = """
resource "proxmox_virtual_environment_download_file" "image" {
  node_name    = "pve1"
  datastore_id = "local"
  content_type = "iso"
  url          = "${var.images}/small.img"
  file_name    = "small.img"
}
resource "proxmox_virtual_environment_download_file" "template" {
  for_each     = toset(["pve1", "pve2"])
  node_name    = each.key
  datastore_id = "local"
  content_type = "vztmpl"
  url          = "${var.images}/debian-13-standard_13.1-1_amd64.tar.zst"
}
resource "proxmox_virtual_environment_file" "user_data" {
  node_name    = "pve1"
  datastore_id = "local"
  content_type = "snippets"
  source_raw {
    data      = "#cloud-config\\npackage_update: true\\n"
    file_name = "user-data.yaml"
  }
}
resource "proxmox_virtual_environment_vm" "one" {
  name      = "one"
  vm_id     = 100
  node_name = var.settings.node
  migrate   = true
  started   = true
  tags      = ["lab"]
  cpu { cores = 2 }
  memory { dedicated = var.settings.memory }
  disk {
    datastore_id = "local-lvm"
    file_id      = proxmox_virtual_environment_download_file.image.id
    interface    = "scsi0"
    size         = var.settings.disk
  }
  network_device { bridge = "vmbr0" }
  initialization {
    datastore_id      = "local-lvm"
    ip_config {
      ipv4 { address = "dhcp" }
    }
  }
  lifecycle { ignore_changes = [disk[0].file_id] }
}
resource "proxmox_virtual_environment_vm" "copy" {
  count     = var.settings.clones
  name      = "copy"
  vm_id     = 101
  node_name = "pve1"
  started   = false
  clone {
    vm_id = proxmox_virtual_environment_vm.one.vm_id
    full  = true
  }
}
resource "proxmox_virtual_environment_container" "one" {
  vm_id         = 200
  node_name     = var.settings.node
  # Proxmox makes no full clone of a container that runs.
  started       = var.settings.clones == 0
  unprivileged  = true
  memory { dedicated = var.settings.memory }
  disk {
    datastore_id = "local-lvm"
    size         = 2
  }
  initialization {
    hostname = var.settings.hostname
    ip_config {
      ipv4 { address = "dhcp" }
    }
  }
  network_interface { name = "eth0" }
  operating_system {
    template_file_id = proxmox_virtual_environment_download_file.template[var.settings.node].id
    type             = "debian"
  }
}
resource "proxmox_virtual_environment_container" "copy" {
  count     = var.settings.clones
  vm_id     = 201
  node_name = "pve1"
  started   = false
  clone { vm_id = proxmox_virtual_environment_container.one.vm_id }
  initialization { hostname = "copy" }
}
"""

FIRST: dict[str, Any] = {"memory": 1024, "disk": 4, "node": "pve1", "clones": 0, "hostname": "db"}


@dataclass
class Terraformed:
    """A folder with a configuration, and the engine that applies it to a lab."""

    engine: Engine
    folder: Path
    environment: dict[str, str]

    def run(self, *arguments: str, status: int = 0) -> str:
        """Run a verb of the engine and return what it said."""
        done = subprocess.run(
            [str(self.engine.path), *arguments, "-no-color"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == status, done.stdout
        return done.stdout

    def apply(self, **settings: Any) -> str:
        """Make the lab what the configuration says with these settings; afterwards nothing is left to do."""
        (self.folder / "settings.auto.tfvars.json").write_text(json.dumps({"settings": settings}))
        said = self.run("apply", "-auto-approve", "-input=false")
        self.run("plan", "-detailed-exitcode", "-input=false", status=0)
        return said

    def destroy(self) -> None:
        """Remove everything."""
        self.run("destroy", "-auto-approve", "-input=false")


@pytest.fixture
def provider() -> Path:
    return find_judge("bpg")


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0) as it:
        yield it


@pytest.fixture
def terraformed(
    engine: Engine, provider: Path, running: lab.Running, tmp_path: Path, home: Path
) -> Iterator[Terraformed]:
    folder, images, plugins = tmp_path / "stack", tmp_path / "images", tmp_path / "plugins"
    for made in (folder, images, plugins, tmp_path / "tmp"):
        made.mkdir()
    (plugins / "terraform-provider-proxmox").symlink_to(provider)
    (images / "small.img").write_bytes(b"QFI\xfb" + b"\0" * 4096)
    (images / "debian-13-standard_13.1-1_amd64.tar.zst").write_bytes(b"stands for a root file system" * 100)
    rows = [
        f'node {{\n name = "{name}"\n address = "127.0.0.1"\n port = {port}\n}}'
        for name, port in running.ssh_ports.items()
    ]
    (folder / "main.tf").write_text(PROVIDER % {"nodes": "\n".join(rows)} + RESOURCES)
    settings = tmp_path / "cli.tfrc"
    overrides = f'dev_overrides {{\n    "bpg/proxmox" = "{plugins}"\n  }}'
    settings.write_text(f"provider_installation {{\n  {overrides}\n  direct {{}}\n}}\n")
    with served(images) as url:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(tmp_path / "tmp"),
            "CHECKPOINT_DISABLE": "1",
            "TF_CLI_CONFIG_FILE": str(settings),
            "TF_VAR_images": url,
            "PROXMOX_VE_ENDPOINT": running.url,
            "PROXMOX_VE_USERNAME": running.username,
            "PROXMOX_VE_PASSWORD": running.password,
            "PROXMOX_VE_SSH_PASSWORD": running.password,
        }
        yield Terraformed(engine=engine, folder=folder, environment=environment)


def config(running: lab.Running, vmid: int) -> dict[str, Any]:
    """Return a guest as the lab has it: its node, its kind, whether it runs, and its configuration."""

    def read() -> dict[str, Any]:
        guest = running.world.guests.get(vmid)
        assert guest is not None
        return {**guest["config"], "node": guest["node"], "type": guest["type"], "status": guest["status"]}

    return running.on_loop(read)


def contents(running: lab.Running) -> set[str]:
    return running.on_loop(
        lambda: {volume["volid"] for volume in running.world.store.items("volumes").values()}
    )


def take_snapshots(running: lab.Running) -> None:
    """Take a snapshot of each guest, as an administrator would: the provider has no resource for them."""
    api = proxmoxer_client(running)
    for guest in (api.nodes("pve2").qemu(100), api.nodes("pve2").lxc(200)):
        status = Tasks.blocking_status(api, guest.snapshot.post(snapname="early"), polling_interval=0.01)
        assert status["exitstatus"] == "OK"
        assert [row["name"] for row in guest.snapshot.get()] == ["early", "current"]


def test_guests_live_through_everything(terraformed: Terraformed, running: lab.Running) -> None:
    terraformed.apply(**FIRST)
    vm, container = config(running, 100), config(running, 200)
    assert (vm["type"], vm["status"], vm["memory"]) == ("qemu", "running", "1024")
    assert vm["scsi0"].startswith("local-lvm:vm-100-disk-0,")
    assert ",size=4G" in vm["scsi0"]
    assert (container["type"], container["status"], container["hostname"]) == ("lxc", "running", "db")
    assert {"local:iso/small.img", "local:snippets/user-data.yaml"} <= contents(running)

    changed = {**FIRST, "memory": 2048, "disk": 6, "hostname": "db2"}
    assert "0 added, 2 changed, 0 destroyed" in terraformed.apply(**changed)
    vm, container = config(running, 100), config(running, 200)
    assert vm["memory"] == "2048"
    assert ",size=6G" in vm["scsi0"]
    assert (container["memory"], container["hostname"]) == (2048, "db2")

    assert "2 added, 1 changed, 0 destroyed" in terraformed.apply(**{**changed, "clones": 1})
    assert config(running, 101)["scsi0"].startswith("local-lvm:vm-101-disk-0,")
    assert config(running, 201)["hostname"] == "copy"

    # The provider migrates a VM; a container it makes again on the other node.
    moved = {**changed, "node": "pve2"}
    assert "1 added, 1 changed, 3 destroyed" in terraformed.apply(**moved)
    assert (config(running, 100)["node"], config(running, 100)["status"]) == ("pve2", "running")
    assert config(running, 200)["node"] == "pve2"

    take_snapshots(running)
    assert "0 added, 0 changed, 0 destroyed" in terraformed.apply(**moved)
    terraformed.destroy()
    assert contents(running) == set()
    assert running.on_loop(lambda: problems_in(running.world, Gone(leftovers=False))) == []
