"""Whether what is to be there has its place: nodes, datastores, bridges, processors, memory and room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.desired import Vm
from stackyard.diagnostics import Diagnostics
from stackyard.guard import cluster as placement
from stackyard.operator.preflight import kinds
from stackyard.operator.preflight.model import Seen
from stackyard.proxmox import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.diagnostics import Kind
    from stackyard.operator.preflight.scene import Datastore, Scene

__all__ = ["check_bridges", "check_capacity", "check_datastores", "check_node", "check_processors"]


def _misfits(scene: Scene, *wanted: Kind) -> Diagnostics:
    """Return what the guard would say of a plan, of some kinds; guests that are there need no new room."""
    there = {guest.vm_id for guest in scene.cluster.guests}
    names = {guest.name for guest in scene.cluster.guests}
    new = {g.key for g in scene.desired.guests if g.vm_id not in there and g.name not in names}
    found = Diagnostics()
    for finding in placement.find_misfits(scene.desired, scene.cluster, new):
        if finding.kind in wanted:
            found.add(finding.kind, finding.detail)
    return found


async def check_node(scene: Scene) -> Seen:
    """Check that the host is the node that it is said to be, and online."""
    found = _misfits(scene, placement.NO_NODE)
    node = scene.cluster.node(scene.node)
    known = ", ".join(one.name for one in scene.cluster.nodes) or "none"
    if node is None and not len(found):
        found.add(placement.NO_NODE, f"There is no node {scene.node}; the cluster has {known}.")
    elif node is not None and not node.is_online and not len(found):
        found.add(placement.NO_NODE, f"The node {scene.node} is offline.")
    return Seen(text=f"{scene.node}, of {known}", findings=tuple(found))


async def check_datastores(scene: Scene) -> Seen:
    """Check that datastores are there, on, and take what goes onto them."""
    found = _misfits(scene, placement.NO_STORAGE)
    wanted: dict[tuple[str, str], dict[str, str]] = {}
    for node, name, content, who in _wanted_contents(scene):
        wanted.setdefault((node, name), {}).setdefault(content, who)
    for (node, name), contents in sorted(wanted.items()):
        datastore = scene.datastores.get((node, name))
        if datastore is not None:
            _check_datastore(f"{name} on {node}", datastore, contents, found)
        elif scene.subject.is_general:
            there = ", ".join(sorted(other for where, other in scene.datastores if where == node)) or "none"
            found.add(placement.NO_STORAGE, f"{node} has no datastore {name}; it has {there}.")
    return Seen(text=", ".join(sorted({name for _, name in wanted})) or "none needed", findings=tuple(found))


def _check_datastore(place: str, datastore: Datastore, contents: dict[str, str], found: Diagnostics) -> None:
    if not datastore.is_active:
        found.add(kinds.STORAGE_OFF, f"{place} is disabled or not active.")
    for content, who in sorted(contents.items()):
        if content not in datastore.contents:
            has = ",".join(sorted(datastore.contents))
            found.add(
                kinds.CONTENT,
                f"{place} takes {has}, and not {content}, which {who} needs; on the host: "
                f"pvesm set {place.partition(' ')[0]} --content {has},{content}",
            )


def _wanted_contents(scene: Scene) -> Iterator[tuple[str, str, str, str]]:
    """Return node, datastore, content, and who needs it."""
    subject, desired = scene.subject, scene.desired
    if subject.is_general:
        yield scene.node, subject.datastore, "images", "a virtual machine"
        yield scene.node, subject.file_datastore, "snippets", "the user data of a guest"
    for guest in desired.guests:
        if isinstance(guest, Vm):
            yield from ((guest.node, disk.datastore, "images", guest.name) for disk in guest.disks)
        elif guest.root_disk is not None:
            yield guest.node, guest.root_disk.datastore, "rootdir", guest.name
    for file in desired.files:
        content = "snippets" if file.kind == "snippet" else file.content
        yield file.node, file.datastore, content, file.key


async def check_bridges(scene: Scene) -> Seen:
    """Check that bridges are there."""
    found = _misfits(scene, placement.NO_BRIDGE)
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
    kinds_of_size = (
        placement.TOO_MUCH_MEMORY,
        placement.TOO_MUCH_STORAGE,
        placement.OVERCOMMITS_MEMORY,
    )
    found = _misfits(scene, *kinds_of_size)
    needed_mib = sum(guest.memory.dedicated_mib for guest in scene.desired.guests if guest.started)
    node = scene.cluster.node(scene.node)
    has = f"{node.memory_bytes / 2**30:.0f} GiB of memory" if node is not None and node.memory_bytes else ""
    needs = f"{needed_mib / 1024:.1f} GiB needed" if needed_mib else ""
    return Seen(text=", ".join(part for part in (has, needs) if part) or "-", findings=tuple(found))


async def check_processors(scene: Scene) -> Seen:
    """Check that no guest has more processors than its node, which Proxmox would refuse to start."""
    found, sizes = Diagnostics(), {}
    for name in scene.nodes:
        status = await scene.client.get(f"/nodes/{quoted(name)}/status")
        sizes[name] = int((status.get("cpuinfo") or {}).get("cpus", 0))
    for guest in scene.desired.guests:
        has, cores = sizes.get(guest.node, 0), guest.cpu.cores * guest.cpu.sockets
        if has and isinstance(guest, Vm) and cores > has:
            found.add(
                kinds.TOO_MANY_CORES, f"{guest.name} has {cores} processors, and {guest.node} has {has}."
            )
    return Seen(text=", ".join(f"{has} on {name}" for name, has in sizes.items()), findings=tuple(found))
