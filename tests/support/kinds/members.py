"""What is in a pool, and what the data sources of high availability say of the same guests."""

from __future__ import annotations

from tests.support.parity import Case

from stackyard.clients import proxmox

__all__ = ["CASES"]

PREFIX = "proxmox_virtual_environment_"
TEXT = """
resource "proxmox_virtual_environment_vm" "one" {
  node_name = "pve1"
  vm_id     = 4100
  started   = false
  lifecycle { ignore_changes = [pool_id] }
}
resource "proxmox_virtual_environment_pool" "web" { pool_id = "web" }
resource "proxmox_virtual_environment_pool" "other" { pool_id = "other" }
resource "proxmox_pool_membership" "guest" {
  pool_id = proxmox_virtual_environment_pool.web.pool_id
  vm_id   = proxmox_virtual_environment_vm.one.vm_id
}
resource "proxmox_virtual_environment_pool_membership" "storage" {
  pool_id    = proxmox_virtual_environment_pool.web.pool_id
  storage_id = "local"
}
# The older name of the options of the cluster, which are in another configuration under the newer one.
resource "proxmox_virtual_environment_cluster_options" "old" { keyboard = "fr" }
resource "proxmox_haresource" "one" {
  resource_id = "vm:${proxmox_virtual_environment_vm.one.vm_id}"
  state       = "stopped"
  comment     = "managed"
}
data "proxmox_haresource" "one" {
  resource_id = proxmox_haresource.one.resource_id
  depends_on  = [proxmox_haresource.one]
}
data "proxmox_haresources" "all" { depends_on = [proxmox_haresource.one] }
data "proxmox_virtual_environment_haresources" "containers" {
  type       = "ct"
  depends_on = [proxmox_haresource.one]
}
output "ha" {
  value = [
    data.proxmox_haresource.one, data.proxmox_haresources.all,
    data.proxmox_virtual_environment_haresources.containers,
  ]
}
"""


async def _drift(api: proxmox.Client) -> None:
    await api.put("/cluster/ha/resources/vm:4100", {"comment": "by hand"})


async def _remove(api: proxmox.Client) -> None:
    await api.put("/pools", {"poolid": "web", "vms": 4100, "delete": True})
    await api.put("/pools", {"poolid": "web", "storage": "local", "delete": True})


CASES = (
    Case(
        id="members",
        kinds=("pool_membership",),
        sources=("haresource", "haresources"),
        text=TEXT,
        update={'comment     = "managed"': "max_restart = 2", 'keyboard = "fr"': 'language = "fr"'},
        updated=("proxmox_haresource.one", f"{PREFIX}cluster_options.old"),
        replace={
            "pool_id = proxmox_virtual_environment_pool.web.pool_id\n  vm_id": "pool_id = "
            "proxmox_virtual_environment_pool.other.pool_id\n  vm_id",
            'storage_id = "local"': 'storage_id = "local-lvm"',
        },
        replaced=("proxmox_pool_membership.guest", f"{PREFIX}pool_membership.storage"),
        imports={
            "proxmox_pool_membership.guest": "web/vm/4100",
            f"{PREFIX}pool_membership.storage": "web/storage/local",
        },
        drift=_drift,
        drifted=("proxmox_haresource.one",),
        remove=_remove,
        removed=("proxmox_pool_membership.guest", f"{PREFIX}pool_membership.storage"),
        nothing={
            "pool_membership update": "every attribute replaces it",
            "pool_membership drift": "it is there or it is not",
            "pool_membership hidden": "who reads the pool sees its members",
        },
    ),
)
