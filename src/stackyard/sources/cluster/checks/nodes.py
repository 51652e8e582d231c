"""Nodes: names, cards and numbers of VMs are unique, and etcd can have a majority."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.sources.cluster.resolve import is_virtual

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.sources.cluster.input import ClusterInput

__all__ = ["check_nodes", "describe_surplus"]

SAME_NAME = Kind(
    code="E-CLUSTER-SAME-NODE",
    summary="Two nodes have the same name",
    remedy="Give one of the two another name.",
)
SAME_MAC = Kind(
    code="E-CLUSTER-SAME-MAC",
    summary="Two nodes have the same MAC address",
    remedy="Give each card an address of its own.",
)
SAME_VM_ID = Kind(
    code="E-CLUSTER-SAME-VM-ID",
    summary="Two nodes have the same VM ID",
    remedy="Give one of the two another `vm_id`, or none: then Proxmox chooses one.",
)
SOME_VM_IDS = Kind(
    code="W-CLUSTER-SOME-VM-IDS",
    summary="Only some nodes have a VM ID",
    remedy="Give every node a `vm_id`, or none: Proxmox may give a number that one node names to another.",
    severity=Severity.WARNING,
)
NO_CONTROLLER = Kind(
    code="E-CLUSTER-NO-CONTROLLER",
    summary="No node is a controller",
    remedy="Say `controller: true` for at least one node, and for three where one may fail.",
)
EVEN_CONTROLLERS = Kind(
    code="E-CLUSTER-EVEN-CONTROLLERS",
    summary="The number of controllers is even",
    remedy="Add or remove one: etcd needs a majority, so an even number survives no more failures than one "
    "controller less, and two survive none.",
)
OTHER_COUNT = Kind(
    code="E-CLUSTER-NODES-COUNT",
    summary="The number of nodes and their names do not fit",
    remedy="For more nodes: `stackyard cluster name-nodes` writes the missing entries. To remove a node, "
    "remove its entry from nodes.yaml and lower `nodes_count`: a number does not say which node goes.",
)
_UNIQUE = (("name", SAME_NAME), ("mac_addr", SAME_MAC), ("vm_id", SAME_VM_ID))


def describe_surplus(wanted: int, names: Sequence[str]) -> str:
    """Say that more nodes have names than a number asks for."""
    return f"`nodes_count` is {wanted}, and nodes.yaml names {len(names)}: {', '.join(names)}."


def check_nodes(read: ClusterInput, found: Diagnostics) -> None:
    """Refuse nodes that have something in common that only one can have, and an etcd without a majority."""
    for field, kind in _UNIQUE:
        known: dict[object, int] = {}
        for index, node in enumerate(read.nodes):
            value = getattr(node, field)
            first = known.setdefault(value, index)
            if value is not None and first != index:
                names = [f"`{read.places.name('nodes', number, field)}`" for number in (first, index)]
                places = [read.places.place("nodes", number, field) for number in (first, index)]
                found.add(kind, f"{value} is {names[0]} and {names[1]}.", places[1], also=(places[0],))
    _warn_of_some_vm_ids(read, found)
    wanted = read.fields.nodes_count
    if wanted is not None and wanted != len(read.nodes):
        detail = describe_surplus(
            wanted, [read.places.name("nodes", index) for index in range(len(read.nodes))]
        )
        found.add(OTHER_COUNT, detail, read.places.place("nodes_count"))
    if not read.nodes or any(node.controller is None for node in read.nodes):
        return
    controllers = sum(bool(node.controller) for node in read.nodes)
    where = read.places.key_place("nodes")
    if not controllers:
        found.add(NO_CONTROLLER, f"All {len(read.nodes)} nodes are workers.", where)
    elif controllers % 2 == 0:
        found.add(EVEN_CONTROLLERS, f"There are {controllers} controllers.", where)


def _warn_of_some_vm_ids(read: ClusterInput, found: Diagnostics) -> None:
    known = [index for index in range(len(read.nodes)) if read.places.has("nodes", index, "vm_id")]
    without = [read.places.name("nodes", index) for index in range(len(read.nodes)) if index not in known]
    first = next(iter(known), None)
    if first is not None and without and is_virtual(read.fields):
        where = read.places.place("nodes", first, "vm_id")
        found.add(SOME_VM_IDS, f"{', '.join(without)} {'has' if len(without) == 1 else 'have'} none.", where)
