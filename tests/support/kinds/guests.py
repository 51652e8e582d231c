"""VMs of both SDKs, clones and containers."""

from __future__ import annotations

from tests.support.parity import Case
from tests.support.provider_container import TEMPLATE, plant_templates

from stackyard.clients import proxmox

__all__ = ["CASES"]

LONG = "proxmox_virtual_environment_"
TEXT = """
resource "proxmox_virtual_environment_vm" "base" {
  node_name   = "pve1"
  vm_id       = 4300
  name        = "base"
  description = "cloned by others"
  started     = false
  disk {
    interface    = "scsi0"
    datastore_id = "local-lvm"
    size         = 1
  }
  network_device { bridge = "vmbr0" }
  network_device { bridge = "vmbr0" }
}
resource "proxmox_virtual_environment_vm" "spare" {
  node_name = "pve2"
  vm_id     = 4301
  started   = false
}
resource "proxmox_virtual_environment_container" "small" {
  node_name   = "pve1"
  vm_id       = 4305
  started     = false
  description = "a container"
  disk {
    datastore_id = "local-lvm"
    size         = 1
  }
  initialization { hostname = "small" }
  operating_system {
    template_file_id = "TEMPLATE"
    type             = "debian"
  }
}
resource "proxmox_vm" "full" {
  node_name   = "pve1"
  id          = 4310
  name        = "full"
  description = "of the framework"
  tags        = ["b", "a"]
  cpu = {
    affinity = "0,2-3"
    cores    = 2
    flags    = ["+aes", "-pcid"]
    limit    = 1.5
    numa     = false
    sockets  = 1
    type     = "x86-64-v2-AES"
    units    = 200
    vcpus    = 1
  }
  rng = { source = "/dev/urandom", max_bytes = 1024 }
  vga = { type = "std", memory = 32 }
  cdrom = {
    ide0  = {}
    scsi5 = { file_id = "none" }
  }
  stop_on_destroy = true
  timeouts        = { create = "5m", read = "1m30s", update = "5m", delete = "2m" }
}
resource "proxmox_virtual_environment_vm2" "plain" {
  node_name = "pve2"
  id        = 4311
}
resource "proxmox_vm" "template" {
  node_name = "pve1"
  id        = 4312
  name      = "template"
  template  = true
}
resource "proxmox_cloned_vm" "full" {
  node_name   = "pve1"
  id          = 4320
  name        = "copy"
  description = "of the base"
  tags        = ["clone"]
  clone       = { source_vm_id = proxmox_virtual_environment_vm.base.vm_id }
  cpu         = { cores = 2, type = "host" }
  memory      = { size = 256, balloon = 128 }
  rng         = { source = "/dev/urandom" }
  vga         = { type = "std" }
  cdrom       = { ide2 = { file_id = "none" } }
  network     = { net0 = { bridge = "vmbr0", model = "virtio", tag = 7, firewall = true, rate_limit = 1.5 } }
  disk = {
    scsi0   = { size_gb = 2, discard = "on" }
    virtio1 = { datastore_id = "local-lvm", size_gb = 1, backup = false, iothread = true }
  }
  delete                               = { network = ["net1"] }
  started                              = false
  stop_on_destroy                      = true
  delete_unreferenced_disks_on_destroy = true
  timeouts                             = { create = "5m" }
}
resource "proxmox_virtual_environment_cloned_vm" "plain" {
  node_name = "pve1"
  id        = 4321
  started   = false
  clone = {
    source_vm_id     = proxmox_virtual_environment_vm.base.vm_id
    source_node_name = "pve1"
    target_datastore = "local-lvm"
    retries          = 2
  }
}
data "proxmox_vm" "full" {
  node_name = "pve1"
  id        = proxmox_vm.full.id
}
data "proxmox_virtual_environment_vm2" "template" {
  node_name = "pve1"
  id        = proxmox_vm.template.id
  timeouts  = { read = "1m" }
}
output "found" {
  value = [data.proxmox_vm.full, data.proxmox_virtual_environment_vm2.template]
}
""".replace("TEMPLATE", TEMPLATE)
UPDATE = {
    'description = "cloned by others"': 'description = "cloned"',
    'description = "a container"': 'description = "still a container"',
    'tags        = ["b", "a"]': 'tags        = ["c"]',
    "limit    = 1.5": "",
    'flags    = ["+aes", "-pcid"]': "",
    "units    = 200": "units    = 300",
    'vga = { type = "std", memory = 32 }': 'vga = { type = "virtio" }',
    'rng = { source = "/dev/urandom", max_bytes = 1024 }': "",
    "scsi5 = { file_id": "scsi6 = { file_id",
    "id        = 4311": 'id        = 4311\n  name = "plain"\n  cpu = { cores = 2 }',
    'cpu         = { cores = 2, type = "host" }': "cpu = { cores = 4 }",
    "memory      = { size = 256, balloon = 128 }": "memory = { size = 512 }",
    "started                              = false": "",
    "tag = 7, firewall = true": "tag = 8, firewall = false",
    "size_gb = 2, discard": "size_gb = 3, discard",
    "backup = false, iothread = true": "backup = true, iothread = true",
    "id        = 4321\n  started   = false": 'id        = 4321\n  started   = false\n  name = "renamed"',
}
UPDATED = (
    f"{LONG}vm.base",
    f"{LONG}container.small",
    "proxmox_vm.full",
    f"{LONG}vm2.plain",
    "proxmox_cloned_vm.full",
    f"{LONG}cloned_vm.plain",
)
REPLACE = {
    "vm_id     = 4301": "vm_id     = 4302",
    "vm_id       = 4305": "vm_id       = 4306",
    "id        = 4311": "id        = 4313",
    "template  = true": "",
    "retries          = 2": "retries          = 1",
    # A disk cannot become smaller again.
    "size_gb = 2, discard": "size_gb = 3, discard",
}
REPLACED = (
    f"{LONG}vm.spare",
    f"{LONG}container.small",
    f"{LONG}vm2.plain",
    "proxmox_vm.template",
    f"{LONG}cloned_vm.plain",
)


async def _drift(api: proxmox.Client) -> None:
    await api.put("/nodes/pve1/qemu/4300/config", {"name": "by-hand"})
    await api.put("/nodes/pve1/lxc/4305/config", {"description": "by hand"})
    await api.put("/nodes/pve1/qemu/4310/config", {"cores": 3, "delete": "vga,ide0"})
    await api.put("/nodes/pve2/qemu/4311/config", {"name": "by-hand", "sockets": 2})
    await api.put("/nodes/pve1/qemu/4320/config", {"net0": "e1000,bridge=vmbr0", "cores": 1})


async def _remove(api: proxmox.Client) -> None:
    for path in ("pve2/qemu/4301", "pve1/lxc/4305", "pve2/qemu/4311", "pve1/qemu/4321"):
        await proxmox.wait_for(api, str(await api.delete(f"/nodes/{path}")), timeout_s=60.0)


CASES = (
    Case(
        id="guests",
        kinds=("vm", "container", "vm2", "cloned_vm"),
        sources=("vm2",),
        prepare=plant_templates,
        text=TEXT,
        update=UPDATE,
        updated=UPDATED,
        replace=REPLACE,
        replaced=REPLACED,
        imports={
            f"{LONG}vm.base": "pve1/4300",
            f"{LONG}container.small": "pve1/4305",
            "proxmox_vm.full": "pve1/4310",
            f"{LONG}vm2.plain": "pve2/4311",
            "proxmox_cloned_vm.full": "pve1/4320",
        },
        # How a VM is removed is in no API, and an import is not told what the code of a clone names.
        unread=("proxmox_vm.full", "proxmox_cloned_vm.full"),
        drift=_drift,
        drifted=(
            f"{LONG}vm.base",
            f"{LONG}container.small",
            "proxmox_vm.full",
            f"{LONG}vm2.plain",
            "proxmox_cloned_vm.full",
        ),
        remove=_remove,
        removed=(f"{LONG}vm.spare", f"{LONG}container.small", f"{LONG}vm2.plain", f"{LONG}cloned_vm.plain"),
        hidden=("/nodes",),
        # For bpg, what nobody knows the beginning of begins with something else.
        bpg_replaces=("proxmox_cloned_vm.full", f"{LONG}container.small"),
    ),
)
