"""Whether what is to be there has its place: nodes, datastores, bridges, processors, memory and room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.desired import Vm
from stackyard.diagnostics import Diagnostics
from stackyard.guard import placement
from stackyard.operator.preflight import kinds
from stackyard.operator.preflight.foreseen import foreseen
from stackyard.operator.preflight.model import Seen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.operator.preflight.scene import Scene

__all__ = [
    "check_bridges",
    "check_capacity",
    "check_datastores",
    "check_devices",
    "check_node",
    "check_processors",
]


async def _foreseen(scene: Scene, name: str) -> Diagnostics:
    found = Diagnostics()
    found.extend(await foreseen(scene, name))
    return found


async def check_node(scene: Scene) -> Seen:
    """Check that the host is the node that it is said to be, and online."""
    found = await _foreseen(scene, "node")
    node = scene.cluster.node(scene.node)
    known = ", ".join(one.name for one in scene.cluster.nodes) or "none"
    if node is None and not len(found):
        found.add(placement.NO_NODE, f"There is no node {scene.node}; the cluster has {known}.")
    elif node is not None and not node.is_online and not len(found):
        found.add(placement.NO_NODE, f"The node {scene.node} is offline.")
    return Seen(text=f"{scene.node}, of {known}", findings=tuple(found))


async def check_datastores(scene: Scene) -> Seen:
    """Check that datastores are there, on, and take what goes onto them."""
    found = await _foreseen(scene, "datastores")
    wanted = set(_wanted(scene))
    if scene.subject.is_general:
        wanted |= set(_check_general(scene, found))
    for node, name in sorted(wanted):
        datastore = scene.datastores.get((node, name))
        if datastore is not None and not datastore.is_active:
            found.add(kinds.STORAGE_OFF, f"{name} on {node} is disabled or not active.")
    return Seen(text=", ".join(sorted({name for _, name in wanted})) or "none needed", findings=tuple(found))


def _wanted(scene: Scene) -> Iterator[tuple[str, str]]:
    """Return nodes and datastores that are used."""
    for guest in scene.desired.guests:
        yield from ((guest.node, datastore) for datastore, _, _ in placement.storages_of(guest))
    yield from ((file.node, file.datastore) for file in scene.desired.files)


def _check_general(scene: Scene, found: Diagnostics) -> Iterator[tuple[str, str]]:
    """Check the datastores that any virtual machine with user data would use; return them."""
    subject = scene.subject
    usual = (
        (subject.datastore, "images", "a virtual machine"),
        (subject.file_datastore, "snippets", "the user data of a guest"),
    )
    for name, content, who in usual:
        yield scene.node, name
        storage = scene.cluster.storage(scene.node, name)
        if (scene.node, name) not in scene.datastores:
            known = sorted(other for where, other in scene.datastores if where == scene.node)
            there = ", ".join(known) or "none"
            found.add(placement.NO_STORAGE, f"{scene.node} has no datastore {name}; it has {there}.")
        elif storage is not None and placement.takes_not(storage, content):
            found.add(placement.CONTENT, placement.content_detail(storage, content, who))


async def check_bridges(scene: Scene) -> Seen:
    """Check that bridges are there."""
    found = await _foreseen(scene, "bridges")
    wanted = {nic.bridge for guest in scene.desired.guests for nic in guest.nics}
    node = scene.cluster.node(scene.node)
    default = scene.subject.site.settings.defaults.bridge or "vmbr0"
    if scene.subject.is_general and node is not None and node.is_online:
        wanted = {default}
        if default not in node.bridges:
            known = ", ".join(sorted(node.bridges)) or "none"
            found.add(placement.NO_BRIDGE, f"{scene.node} has no bridge {default}; it has {known}.")
    return Seen(text=", ".join(sorted(wanted)) or "none needed", findings=tuple(found))


async def check_capacity(scene: Scene) -> Seen:
    """Check that there is memory for the guests, and room for their disks."""
    found = await _foreseen(scene, "capacity")
    needed_mib = sum(guest.memory.dedicated_mib for guest in scene.desired.guests if guest.started)
    node = scene.cluster.node(scene.node)
    has = f"{node.memory_bytes / 2**30:.0f} GiB of memory" if node is not None and node.memory_bytes else ""
    needs = f"{needed_mib / 1024:.1f} GiB needed" if needed_mib else ""
    return Seen(text=", ".join(part for part in (has, needs) if part) or "-", findings=tuple(found))


async def check_processors(scene: Scene) -> Seen:
    """Check that no guest has more processors than its node or a CPU model that it does not know."""
    found = await _foreseen(scene, "processors")
    nodes = [node for name in scene.nodes if (node := scene.cluster.node(name)) is not None]
    sizes = ", ".join(f"{node.processors} on {node.name}" for node in nodes if node.processors)
    return Seen(text=sizes or "-", findings=tuple(found))


async def check_devices(scene: Scene) -> Seen:
    """Check that the PCI devices and mappings of guests exist."""
    devices = [
        device
        for guest in scene.desired.guests
        if isinstance(guest, Vm)
        for device in (*guest.pci_devices, *guest.usb_devices)
    ]
    found = await _foreseen(scene, "devices")
    return Seen(text=f"{len(devices)} used" if devices else "none needed", findings=tuple(found))
