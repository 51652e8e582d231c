"""Mappings of devices and directories."""

from __future__ import annotations

from tests.support.parity import Case

from stackyard.clients import proxmox

__all__ = ["CASES"]

TEXT = """
resource "proxmox_hardware_mapping_dir" "plain" {
  name = "plain-dir"
  map  = [{ node = "pve1", path = "/srv/plain" }]
}
resource "proxmox_virtual_environment_hardware_mapping_dir" "full" {
  name    = "full-dir"
  comment = "shared files"
  map = [
    { node = "pve2", path = "/srv/full" },
    { node = "pve1", path = "/mnt/full" },
  ]
}
resource "proxmox_hardware_mapping_pci" "plain" {
  name = "plain-pci"
  map  = [{ node = "pve1", path = "0000:02:00", id = "8086:1521" }]
}
resource "proxmox_virtual_environment_hardware_mapping_pci" "full" {
  name             = "full-pci"
  comment          = "a card for numbers"
  mediated_devices = true
  map = [
    { node = "pve2", path = "0000:01:00.0", id = "10de:1eb8", iommu_group = 12, subsystem_id = "10de:0001" },
    { node = "pve1", path = "0000:01:00.0", id = "10de:1eb8", iommu_group = 0 },
  ]
}
resource "proxmox_hardware_mapping_usb" "plain" {
  name = "plain-usb"
  map  = [{ node = "pve1", id = "1050:0407" }]
}
resource "proxmox_virtual_environment_hardware_mapping_usb" "full" {
  name    = "full-usb"
  comment = "a key"
  map = [
    { node = "pve2", id = "0781:5583", path = "2-3" },
    { node = "pve1", id = "0781:5583", path = "2-1.4" },
  ]
}
data "proxmox_hardware_mapping_dir" "full" {
  name = proxmox_virtual_environment_hardware_mapping_dir.full.name
}
data "proxmox_virtual_environment_hardware_mapping_pci" "plain" {
  name = proxmox_hardware_mapping_pci.plain.name
}
data "proxmox_hardware_mapping_pci" "full" {
  name = proxmox_virtual_environment_hardware_mapping_pci.full.name
}
data "proxmox_hardware_mapping_usb" "full" {
  name = proxmox_virtual_environment_hardware_mapping_usb.full.name
}
data "proxmox_hardware_mappings" "all" {
  for_each   = toset(["dir", "pci", "usb"])
  type       = each.key
  check_node = "pve1"
  depends_on = [
    proxmox_hardware_mapping_dir.plain, proxmox_virtual_environment_hardware_mapping_dir.full,
    proxmox_hardware_mapping_pci.plain, proxmox_virtual_environment_hardware_mapping_pci.full,
    proxmox_hardware_mapping_usb.plain, proxmox_virtual_environment_hardware_mapping_usb.full,
  ]
}
data "proxmox_virtual_environment_hardware_mappings" "unchecked" {
  type       = "pci"
  depends_on = [
    proxmox_hardware_mapping_pci.plain, proxmox_virtual_environment_hardware_mapping_pci.full,
  ]
}
output "mappings" {
  value = [
    data.proxmox_hardware_mapping_dir.full, data.proxmox_virtual_environment_hardware_mapping_pci.plain,
    data.proxmox_hardware_mapping_pci.full, data.proxmox_hardware_mapping_usb.full,
    data.proxmox_hardware_mappings.all, data.proxmox_virtual_environment_hardware_mappings.unchecked,
  ]
}
"""
UPDATE = {
    'comment = "shared files"': "",
    '{ node = "pve2", path = "/srv/full" },': "",
    'comment          = "a card for numbers"': 'comment = "a card"',
    "mediated_devices = true": "",
    "iommu_group = 0": "iommu_group = 3",
    'comment = "a key"': "",
    'path = "2-3"': 'path = "2-4"',
}
LONG = "proxmox_virtual_environment_hardware_mapping_"
FULL = tuple(f"{LONG}{kind}.full" for kind in ("dir", "pci", "usb"))
PLAIN = tuple(f"proxmox_hardware_mapping_{kind}.plain" for kind in ("dir", "pci", "usb"))


async def _drift(api: proxmox.Client) -> None:
    await api.put("/cluster/mapping/dir/full-dir", {"map": ["node=pve1,path=/by/hand"]})
    await api.put(
        "/cluster/mapping/pci/full-pci",
        {"map": ["node=pve1,path=0000:01:00.0,id=10de:1eb8"], "delete": "description,mdev"},
    )
    await api.put(
        "/cluster/mapping/usb/full-usb", {"map": ["node=pve1,id=0781:5583"], "description": "by hand"}
    )


async def _remove(api: proxmox.Client) -> None:
    for kind in ("dir", "pci", "usb"):
        await api.delete(f"/cluster/mapping/{kind}/plain-{kind}")


CASES = (
    Case(
        id="hardware-mapping",
        kinds=("hardware_mapping_dir", "hardware_mapping_pci", "hardware_mapping_usb"),
        sources=(
            "hardware_mapping_dir",
            "hardware_mapping_pci",
            "hardware_mapping_usb",
            "hardware_mappings",
        ),
        text=TEXT,
        update=UPDATE,
        updated=FULL,
        replace={f'"plain-{kind}"': f'"other-{kind}"' for kind in ("dir", "pci", "usb")},
        replaced=PLAIN,
        imports={
            **{f"{LONG}{kind}.full": f"full-{kind}" for kind in ("dir", "pci", "usb")},
            **{f"proxmox_hardware_mapping_{kind}.plain": f"plain-{kind}" for kind in ("dir", "pci", "usb")},
        },
        drift=_drift,
        drifted=FULL,
        remove=_remove,
        removed=PLAIN,
        hidden=("/nodes",),
        # It changes the mapping of the new name, which does not exist.
        bpg_cannot={
            "replace": ("Could not update PCI hardware mapping", "pci ID 'other-pci' does not exist")
        },
    ),
)
