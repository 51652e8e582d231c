"""The numbers that a cluster wants for its VMs, to be held against other states and the live cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.base.errors import Location
    from stackyard.sources.cluster.model import Cluster

__all__ = ["WantedVmId", "list_vm_ids"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedVmId:
    """A number that a node wants.

    Attributes:
        vm_id: The number.
        node: The node of the cluster.
        proxmox_node: The Proxmox node that its VM is on.
        where: Where the input says so.
    """

    vm_id: int
    node: str
    proxmox_node: str
    where: Location | None


def list_vm_ids(cluster: Cluster) -> tuple[WantedVmId, ...]:
    """Return the numbers that the input gives, with their places; a node without one is not among them."""
    return tuple(
        WantedVmId(
            vm_id=node.vm.vm_id,
            node=node.name,
            proxmox_node=node.vm.proxmox_node,
            where=node.vm.vm_id_where,
        )
        for node in cluster.nodes
        if node.vm is not None and node.vm.vm_id is not None
    )
