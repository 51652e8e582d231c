"""Groups of high availability and the guests in them, in a cluster that has not migrated groups to rules."""

from __future__ import annotations

from tests.support.parity import Case

from pvelab.seeds import Seed, SeedGuest
from stackyard.clients import proxmox

__all__ = ["CASES"]

LONG = "proxmox_virtual_environment_"
TEXT = """
resource "proxmox_hagroup" "plain" {
  group = "plain"
  nodes = { pve1 = null }
}
resource "proxmox_virtual_environment_hagroup" "full" {
  group       = "full"
  comment     = "first"
  nodes       = { pve1 = 2, pve2 = 0 }
  no_failback = true
  restricted  = true
}
resource "proxmox_haresource" "plain" {
  resource_id = "vm:4300"
}
resource "proxmox_virtual_environment_haresource" "grouped" {
  resource_id  = "vm:4301"
  type         = "vm"
  state        = "stopped"
  comment      = "first"
  group        = proxmox_virtual_environment_hagroup.full.group
  max_relocate = 2
  max_restart  = 3
}
data "proxmox_hagroup" "full" {
  group      = "full"
  depends_on = [proxmox_virtual_environment_hagroup.full]
}
data "proxmox_virtual_environment_hagroup" "plain" { group = proxmox_hagroup.plain.id }
data "proxmox_hagroups" "all" {
  depends_on = [proxmox_hagroup.plain, proxmox_virtual_environment_hagroup.full]
}
data "proxmox_haresource" "grouped" {
  resource_id = "vm:4301"
  depends_on  = [proxmox_virtual_environment_haresource.grouped]
}
data "proxmox_virtual_environment_haresources" "all" {
  depends_on = [proxmox_haresource.plain, proxmox_virtual_environment_haresource.grouped]
}
output "groups" {
  value = [
    data.proxmox_hagroup.full, data.proxmox_virtual_environment_hagroup.plain, data.proxmox_hagroups.all,
    data.proxmox_haresource.grouped, data.proxmox_virtual_environment_haresources.all,
  ]
}
"""


async def _drift(api: proxmox.Client) -> None:
    await api.put("/cluster/ha/groups/full", {"nodes": "pve2:7", "restricted": False})
    await api.put("/cluster/ha/resources/vm:4301", {"max_restart": 7, "delete": "group"})


async def _remove(api: proxmox.Client) -> None:
    await api.delete("/cluster/ha/groups/plain")
    await api.delete("/cluster/ha/resources/vm:4300")


CASES = (
    Case(
        id="ha-groups",
        kinds=("hagroup", "haresource"),
        sources=("hagroup", "hagroups", "haresource", "haresources"),
        text=TEXT,
        update={
            'comment     = "first"': "",
            "nodes       = { pve1 = 2, pve2 = 0 }": "nodes = { pve2 = 5 }",
            "no_failback = true": "",
            'comment      = "first"': "",
            'state        = "stopped"': 'state = "ignored"',
            "max_restart  = 3": "",
        },
        updated=(f"{LONG}hagroup.full", f"{LONG}haresource.grouped"),
        replace={'group = "plain"': 'group = "other"', '"vm:4300"': '"vm:4302"'},
        replaced=("proxmox_hagroup.plain", "proxmox_haresource.plain"),
        imports={
            "proxmox_hagroup.plain": "plain",
            f"{LONG}hagroup.full": "full",
            "proxmox_haresource.plain": "vm:4300",
            f"{LONG}haresource.grouped": "vm:4301",
        },
        drift=_drift,
        drifted=(f"{LONG}hagroup.full", f"{LONG}haresource.grouped"),
        remove=_remove,
        removed=("proxmox_hagroup.plain", "proxmox_haresource.plain"),
        hidden=("/nodes",),
        # It changes what has the old name, and then asks for what has the new one.
        bpg_cannot={"replace": ("HA group not found after update",)},
        lab={
            "seed": Seed(
                name="ha-groups",
                ha_groups=True,
                guests=tuple(SeedGuest(vmid=vmid) for vmid in (4300, 4301, 4302)),
            )
        },
    ),
)
