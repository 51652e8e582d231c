"""Where the input of a cluster says what a finding of the guard is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.path.locate import nowhere

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.errors import Location
    from stackyard.path.locate import Locate
    from stackyard.sources.cluster.load import OpenedCluster

__all__ = ["in_cluster"]

# By the field of the model, the field of a node that says it.
_FIELDS = {
    "cpu": "vm_cores",
    "disks": "vm_disk_size",
    "memory": "vm_memory",
    "name": "name",
    "nics": "mac_addr",
    "node": "proxmox_node",
    "vm_id": "vm_id",
}


def in_cluster(opened: OpenedCluster) -> Locate:
    """Return what finds the places of the VMs of a cluster: the field of a node, or the node."""
    if opened.read is None:
        return nowhere
    places = opened.read.places
    numbers = {node.name: number for number, node in enumerate(opened.read.nodes)}

    def locate(key: str, field: Sequence[str | int] = ()) -> Location | None:
        if key not in numbers:
            return None
        said = _FIELDS.get(str(field[0])) if field else None
        return places.place("nodes", numbers[key], *(() if said is None else (said,)))

    return locate
