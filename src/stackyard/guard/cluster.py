"""What the cluster has, and what of a model does not fit there."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.desired import Vm
from stackyard.diagnostics import Kind, Severity
from stackyard.guard.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from stackyard.desired import Desired, Guest

__all__ = [
    "OWNER_TAG",
    "Cluster",
    "ClusterGuest",
    "Node",
    "Storage",
    "find_misfits",
]

# How the tags begin that say which manifest a guest belongs to.
OWNER_TAG = "stackyard."

NO_NODE = Kind(
    code="E-GUARD-NO-SUCH-NODE",
    summary="A node does not exist",
    remedy="Correct the node, or add it to the cluster.",
)
NO_STORAGE = Kind(
    code="E-GUARD-NO-SUCH-STORAGE",
    summary="A datastore does not exist on its node",
    remedy="Correct the datastore, or make it available on that node.",
)
NO_BRIDGE = Kind(
    code="E-GUARD-NO-SUCH-BRIDGE",
    summary="A bridge does not exist on its node",
    remedy="Correct the bridge, or declare it.",
)
TOO_MUCH_MEMORY = Kind(
    code="E-GUARD-TOO-MUCH-MEMORY",
    summary="The guests of a node need more memory than it has",
    remedy="Give the guests less, or move some to another node.",
)
TOO_MUCH_STORAGE = Kind(
    code="E-GUARD-TOO-MUCH-STORAGE",
    summary="New disks need more room than a datastore has left",
    remedy="Make the disks smaller, free some room, or use another datastore.",
)
OVERCOMMITS_MEMORY = Kind(
    code="W-GUARD-OVERCOMMITS-MEMORY",
    summary="The guests of a node together may use more memory than it has",
    remedy="Watch the node; guests are killed when the memory runs out.",
    severity=Severity.WARNING,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node, as far as it is known."""

    name: str
    memory_bytes: int
    bridges: frozenset[str]
    is_online: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A storage on a node."""

    name: str
    node: str
    free_bytes: int
    total_bytes: int
    is_shared: bool = False
    # A thin storage may promise more than it has left, though never to one plan more than it is large.
    is_thin: bool = False

    @property
    def room_bytes(self) -> int:
        """How much new disks may take."""
        return self.total_bytes if self.is_thin else self.free_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterGuest:
    """A guest that is there."""

    vm_id: int
    name: str
    node: str
    kind: str
    memory_bytes: int = 0
    tags: frozenset[str] = frozenset()
    uptime_s: int = 0

    def may_be(self, tags: Collection[str]) -> bool:
        """Tell whether a guest of the same name with these tags may be this one: not if a manifest has it."""
        owners = {tag for tag in self.tags if tag.startswith(OWNER_TAG)}
        return not owners or not owners.isdisjoint(tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Nodes, storages and guests of one cluster at one moment."""

    nodes: tuple[Node, ...]
    storages: tuple[Storage, ...]
    guests: tuple[ClusterGuest, ...]

    def node(self, name: str) -> Node | None:
        """Return a node."""
        return next((node for node in self.nodes if node.name == name), None)

    def storage(self, node: str, name: str) -> Storage | None:
        """Return a storage of a node."""
        return next((s for s in self.storages if s.name == name and s.node == node), None)


def find_misfits(desired: Desired, cluster: Cluster, new: Collection[str]) -> Iterator[Finding]:
    """Report what a model needs and the cluster has not.

    Args:
        desired: The model.
        cluster: What is there.
        new: Keys of the guests that are not there yet; only their disks need room.
    """
    yield from _missing_nodes(desired, cluster)
    yield from _missing_storages(desired, cluster)
    yield from _missing_bridges(desired, cluster)
    yield from _memory(desired, cluster)
    yield from _room(desired, cluster, new)


def _missing_nodes(desired: Desired, cluster: Cluster) -> Iterator[Finding]:
    users: dict[str, list[str]] = collections.defaultdict(list)
    for guest in desired.guests:
        users[guest.node].append(guest.name)
    for file in desired.files:
        users[file.node].append(file.key)
    for interface in (*desired.bridges, *desired.vlans):
        users[interface.node].append(interface.name)
    known = ", ".join(node.name for node in cluster.nodes)
    for name, wanted_by in sorted(users.items()):
        node = cluster.node(name)
        who = f"{', '.join(sorted(wanted_by)[:5])}{' and others' if len(wanted_by) > 5 else ''}"
        if node is None:
            yield Finding(
                kind=NO_NODE, detail=f"There is no node {name} for {who}; the cluster has {known or 'none'}."
            )
        elif not node.is_online:
            yield Finding(kind=NO_NODE, detail=f"The node {name} for {who} is offline.")


def _storages_of(guest: Guest) -> Iterator[tuple[str, int]]:
    """Return the datastores of a guest, with the GiB that it takes there."""
    if isinstance(guest, Vm):
        yield from ((disk.datastore, disk.size_gib) for disk in guest.disks)
        for small in (guest.efi_disk, guest.tpm):
            if small is not None:
                yield small.datastore, 0
        if guest.cloud_init is not None and guest.cloud_init.datastore is not None:
            yield guest.cloud_init.datastore, 0
    else:
        if guest.root_disk is not None:
            yield guest.root_disk.datastore, guest.root_disk.size_gib
        yield from ((m.volume, m.size_gib) for m in guest.mounts if m.size_gib is not None)


def _missing_storages(desired: Desired, cluster: Cluster) -> Iterator[Finding]:
    wanted: dict[tuple[str, str], str] = {}
    for guest in desired.guests:
        for datastore, _ in _storages_of(guest):
            wanted.setdefault((guest.node, datastore), guest.name)
    for file in desired.files:
        wanted.setdefault((file.node, file.datastore), file.key)
    for (node, datastore), who in sorted(wanted.items()):
        if cluster.node(node) is not None and cluster.storage(node, datastore) is None:
            known = ", ".join(sorted(s.name for s in cluster.storages if s.node == node)) or "none"
            yield Finding(
                kind=NO_STORAGE, detail=f"{who} needs the datastore {datastore} on {node}, which has {known}."
            )


def _missing_bridges(desired: Desired, cluster: Cluster) -> Iterator[Finding]:
    declared = {(interface.node, interface.name) for interface in (*desired.bridges, *desired.vlans)}
    vnets = {vnet.name for vnet in desired.vnets}
    for guest in desired.guests:
        node = cluster.node(guest.node)
        if node is None or not node.is_online:
            continue
        for nic in guest.nics:
            is_known = (
                nic.bridge in node.bridges or nic.bridge in vnets or (node.name, nic.bridge) in declared
            )
            if not is_known:
                known = ", ".join(sorted(node.bridges)) or "none"
                yield Finding(
                    kind=NO_BRIDGE,
                    detail=f"{guest.name} plugs into {nic.bridge} on {node.name}, which has {known}.",
                )


def _memory(desired: Desired, cluster: Cluster) -> Iterator[Finding]:
    ours: dict[str, int] = collections.Counter()
    for guest in desired.guests:
        ours[guest.node] += guest.memory.dedicated_mib * 2**20 if guest.started else 0
    for name, needed in sorted(ours.items()):
        node = cluster.node(name)
        if node is None or node.memory_bytes <= 0:
            continue
        if needed > node.memory_bytes:
            yield Finding(
                kind=TOO_MUCH_MEMORY,
                detail=f"The guests on {name} need {_gib(needed)}, and it has {_gib(node.memory_bytes)}.",
            )
            continue
        known = {guest.vm_id for guest in desired.guests if guest.vm_id is not None}
        names = {guest.name for guest in desired.guests}
        others = sum(
            guest.memory_bytes
            for guest in cluster.guests
            if guest.node == name and guest.vm_id not in known and guest.name not in names
        )
        if needed + others > node.memory_bytes:
            yield Finding(
                kind=OVERCOMMITS_MEMORY,
                detail=f"With what runs there already, the guests on {name} may use {_gib(needed + others)}; "
                f"it has {_gib(node.memory_bytes)}.",
            )


def _room(desired: Desired, cluster: Cluster, new: Collection[str]) -> Iterator[Finding]:
    needed: dict[tuple[str, str], int] = collections.Counter()
    for guest in desired.guests:
        if guest.key in new:
            for datastore, size_gib in _storages_of(guest):
                storage = cluster.storage(guest.node, datastore)
                if storage is not None:
                    needed["" if storage.is_shared else guest.node, datastore] += size_gib * 2**30
    for (node, datastore), wanted in sorted(needed.items()):
        storage = next(s for s in cluster.storages if s.name == datastore and node in ("", s.node))
        if wanted > storage.room_bytes:
            where = f"{datastore} on {node}" if node else datastore
            yield Finding(
                kind=TOO_MUCH_STORAGE,
                detail=f"New disks need {_gib(wanted)} on {where}; room is for {_gib(storage.room_bytes)}.",
            )


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
