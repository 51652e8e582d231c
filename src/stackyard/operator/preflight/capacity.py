"""Whether what is to be there has its place: nodes, datastores, bridges, processors, memory and room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics
from stackyard.desired import Vm
from stackyard.guard import placement
from stackyard.operator.preflight import kinds
from stackyard.operator.preflight.guard_checks import find_guard_refusals
from stackyard.operator.preflight.model import Observation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.operator.preflight.reachable_host import ReachableHost

__all__ = [
    "check_bridges",
    "check_capacity",
    "check_datastores",
    "check_devices",
    "check_node",
    "check_processors",
]


async def _run_guard_check(reachable: ReachableHost, name: str) -> Diagnostics:
    found = Diagnostics()
    found.extend(await find_guard_refusals(reachable, name))
    return found


async def check_node(reachable: ReachableHost) -> Observation:
    """Check that the host is the node that it is said to be, and online."""
    found = await _run_guard_check(reachable, "node")
    node = reachable.cluster.node(reachable.node)
    known = ", ".join(one.name for one in reachable.cluster.nodes) or "none"
    if node is None and not len(found):
        found.add(placement.NO_NODE, f"There is no node {reachable.node}; the cluster has {known}.")
    elif node is not None and not node.is_online and not len(found):
        found.add(placement.NO_NODE, f"The node {reachable.node} is offline.")
    return Observation(text=f"{reachable.node}, of {known}", findings=tuple(found))


async def check_datastores(reachable: ReachableHost) -> Observation:
    """Check that datastores are there, on, and take what goes onto them."""
    found = await _run_guard_check(reachable, "datastores")
    wanted = set(_list_used_datastores(reachable))
    if reachable.subject.is_general:
        wanted |= set(_check_general(reachable, found))
    for node, name in sorted(wanted):
        datastore = reachable.datastores.get((node, name))
        if datastore is not None and not datastore.is_active:
            found.add(kinds.STORAGE_OFF, f"{name} on {node} is disabled or not active.")
    return Observation(
        text=", ".join(sorted({name for _, name in wanted})) or "none needed", findings=tuple(found)
    )


def _list_used_datastores(reachable: ReachableHost) -> Iterator[tuple[str, str]]:
    """Return nodes and datastores that are used."""
    for guest in reachable.desired.guests:
        yield from ((guest.node, datastore) for datastore, _, _ in placement.storages_of(guest))
    yield from ((file.node, file.datastore) for file in reachable.desired.files)


def _check_general(reachable: ReachableHost, found: Diagnostics) -> Iterator[tuple[str, str]]:
    """Check the datastores that any virtual machine with user data would use; return them."""
    subject = reachable.subject
    usual = (
        (subject.datastore, "images", "a virtual machine"),
        (subject.file_datastore, "snippets", "the user data of a guest"),
    )
    for name, content, who in usual:
        yield reachable.node, name
        storage = reachable.cluster.storage(reachable.node, name)
        if (reachable.node, name) not in reachable.datastores:
            known = sorted(other for where, other in reachable.datastores if where == reachable.node)
            there = ", ".join(known) or "none"
            found.add(placement.NO_STORAGE, f"{reachable.node} has no datastore {name}; it has {there}.")
        elif storage is not None and placement.takes_not(storage, content):
            found.add(placement.CONTENT, placement.content_detail(storage, content, who))


async def check_bridges(reachable: ReachableHost) -> Observation:
    """Check that bridges are there."""
    found = await _run_guard_check(reachable, "bridges")
    wanted = {nic.bridge for guest in reachable.desired.guests for nic in guest.nics}
    node = reachable.cluster.node(reachable.node)
    default = reachable.subject.site.settings.defaults.bridge or "vmbr0"
    if reachable.subject.is_general and node is not None and node.is_online:
        wanted = {default}
        if default not in node.bridges:
            known = ", ".join(sorted(node.bridges)) or "none"
            found.add(placement.NO_BRIDGE, f"{reachable.node} has no bridge {default}; it has {known}.")
    return Observation(text=", ".join(sorted(wanted)) or "none needed", findings=tuple(found))


async def check_capacity(reachable: ReachableHost) -> Observation:
    """Check that there is memory for the guests, and room for their disks."""
    found = await _run_guard_check(reachable, "capacity")
    needed_mib = sum(guest.memory.dedicated_mib for guest in reachable.desired.guests if guest.started)
    node = reachable.cluster.node(reachable.node)
    has = f"{node.memory_bytes / 2**30:.0f} GiB of memory" if node is not None and node.memory_bytes else ""
    needs = f"{needed_mib / 1024:.1f} GiB needed" if needed_mib else ""
    return Observation(text=", ".join(part for part in (has, needs) if part) or "-", findings=tuple(found))


async def check_processors(reachable: ReachableHost) -> Observation:
    """Check that no guest has more processors than its node or a CPU model that it does not know."""
    found = await _run_guard_check(reachable, "processors")
    nodes = [node for name in reachable.nodes if (node := reachable.cluster.node(name)) is not None]
    sizes = ", ".join(f"{node.processors} on {node.name}" for node in nodes if node.processors)
    return Observation(text=sizes or "-", findings=tuple(found))


async def check_devices(reachable: ReachableHost) -> Observation:
    """Check that the PCI devices and mappings of guests exist."""
    devices = [
        device
        for guest in reachable.desired.guests
        if isinstance(guest, Vm)
        for device in (*guest.pci_devices, *guest.usb_devices)
    ]
    found = await _run_guard_check(reachable, "devices")
    return Observation(text=f"{len(devices)} used" if devices else "none needed", findings=tuple(found))
