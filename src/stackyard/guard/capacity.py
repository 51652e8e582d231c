"""Whether the guests of a node have memory, and new disks have room: more than there is may be promised."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind, Severity
from stackyard.fields.properties import GIB, parse_size
from stackyard.guard.findings import Finding
from stackyard.guard.placement import storages_of
from stackyard.render.names import label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.desired import Guest
    from stackyard.guard.cluster import Cluster, ClusterGuest, Node, Storage
    from stackyard.guard.facts import Facts
    from stackyard.guard.implied import ImpliedCalls

__all__ = [
    "OVERCOMMITS_MEMORY",
    "OVERCOMMITS_STORAGE",
    "TOO_MUCH_MEMORY",
    "TOO_MUCH_STORAGE",
    "find_memory",
    "find_room",
]

TOO_MUCH_MEMORY = Kind(
    code="E-GUARD-TOO-MUCH-MEMORY",
    summary="The guests of a node need more memory than it may give",
    remedy="Give the guests less, or move some to another node; `defaults.overcommit.memory` in site.yaml "
    "is how many times its memory a node may promise.",
)
TOO_MUCH_STORAGE = Kind(
    code="E-GUARD-TOO-MUCH-STORAGE",
    summary="New disks need more room than a datastore has left",
    remedy="Make the disks smaller, free some room, or use another datastore; `defaults.overcommit.storage` "
    "in site.yaml is how many times its size a thin one may promise.",
)
OVERCOMMITS_MEMORY = Kind(
    code="W-GUARD-OVERCOMMITS-MEMORY",
    summary="The guests of a node together may use more memory than it has",
    remedy="Watch the node; guests are killed when the memory runs out.",
    severity=Severity.WARNING,
)
OVERCOMMITS_STORAGE = Kind(
    code="W-GUARD-OVERCOMMITS-STORAGE",
    summary="New disks may use more room than a thin datastore has left",
    remedy="Watch the datastore; guests stop when it is full.",
    severity=Severity.WARNING,
)


def find_memory(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report nodes whose running guests would need more memory than they have.

    A guest that is larger than its node never starts. All of them together may promise more than there is:
    that is a warning, up to the limit of the site. Templates and stopped guests need none, and who needs no
    more than before is not refused.
    """
    for node in facts.cluster.nodes:
        if node.memory_bytes > 0:
            yield from _larger_than_node(implied, facts.cluster, node)
            yield from _all_together(implied, facts.cluster, node)


def _needs(guest: Guest) -> int:
    is_running = guest.started and not guest.is_template
    return guest.memory.dedicated_mib * 2**20 if is_running else 0


def _now(guest: Guest, cluster: Cluster) -> ClusterGuest | None:
    """Return the guest as it is."""
    return next((one for one in cluster.guests if one.vm_id == guest.vm_id), None) or next(
        (one for one in cluster.guests if guest.vm_id is None and one.name == guest.name), None
    )


def _larger_than_node(implied: ImpliedCalls, cluster: Cluster, node: Node) -> Iterator[Finding]:
    for guest in implied.desired.guests:
        now = _now(guest, cluster)
        has = 0 if now is None else now.memory_bytes
        if guest.node == node.name and _needs(guest) > max(node.memory_bytes, has):
            yield Finding(
                kind=TOO_MUCH_MEMORY,
                detail=f"{guest.name} needs {_gib(_needs(guest))} on {node.name}, which has "
                f"{_gib(node.memory_bytes)}.",
                label=label(guest.key),
                field=("memory", "dedicated_mib"),
            )


@dataclass(frozen=True, slots=True)
class _Load:
    """What the guests of a node need: ours, the same before, and all others that run there."""

    ours: int
    before: int
    others: int


def _load(implied: ImpliedCalls, cluster: Cluster, node: Node) -> _Load:
    guests = [guest for guest in implied.desired.guests if guest.node == node.name]
    known = [now for guest in implied.desired.guests if (now := _now(guest, cluster)) is not None]
    ids = {one.vm_id for one in known}
    return _Load(
        ours=sum(map(_needs, guests)),
        before=sum(one.memory_bytes for one in known if one.node == node.name),
        others=sum(o.memory_bytes for o in cluster.guests if o.node == node.name and o.vm_id not in ids),
    )


def _all_together(implied: ImpliedCalls, cluster: Cluster, node: Node) -> Iterator[Finding]:
    load = _load(implied, cluster, node)
    total, has = load.ours + load.others, node.memory_bytes
    if not load.ours or total <= has:
        return
    limit = implied.overcommit.memory
    said = f"With what runs there already, the guests on {node.name} may use {_gib(total)}; "
    said += f"it has {_gib(has)}"
    if limit is not None and total > has * limit and load.ours > load.before:
        detail = f"{said}, and the site allows {limit:g} times that."
        yield Finding(kind=TOO_MUCH_MEMORY, detail=detail)
        return
    yield Finding(kind=OVERCOMMITS_MEMORY, detail=f"{said}.")


def find_room(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report datastores without room for the disks of new guests; a thin one may promise more than it has.

    What a guest that is replaced has there is free by then: who needs no more than before is not refused.
    """
    needed: dict[tuple[str, str], int] = collections.Counter()
    first: dict[tuple[str, str], tuple[str, tuple[str | int, ...]]] = {}
    for guest in implied.new_guests:
        for datastore, size_gib, field in storages_of(guest):
            storage = facts.cluster.storage(guest.node, datastore)
            if storage is not None:
                place = ("" if storage.is_shared else guest.node, datastore)
                needed[place] += size_gib * 2**30
                first.setdefault(place, (label(guest.key), (*field[:-1], "size_gib")))
    for place, freed in _list_freed(implied, facts.cluster):
        needed[place] -= freed
    for (node, datastore), wanted in sorted(needed.items()):
        if wanted <= 0:
            continue
        storage = next(s for s in facts.cluster.storages if s.name == datastore and node in ("", s.node))
        room = _room(storage, implied.overcommit.storage)
        where = f"{datastore} on {node}" if node else datastore
        name, field = first[node, datastore]
        said = f"New disks need {_gib(wanted)} on {where}"
        if wanted > room:
            detail = f"{said}; room is for {_gib(room)}."
            yield Finding(kind=TOO_MUCH_STORAGE, detail=detail, label=name, field=field)
        elif storage.is_thin and wanted > storage.free_bytes:
            detail = f"{said}, which has {_gib(storage.free_bytes)} left."
            yield Finding(kind=OVERCOMMITS_STORAGE, detail=detail)


def _list_freed(implied: ImpliedCalls, cluster: Cluster) -> Iterator[tuple[tuple[str, str], int]]:
    """Return what guests that are replaced have on each datastore, by its node and name."""
    for guest in implied.new_guests:
        had = implied.had.get(guest.key, {})
        node = str(had.get("node_name", ""))
        mounts = ((one.get("volume"), one.get("size")) for one in had.get("mount_point") or ())
        disks = ((one.get("datastore_id"), one.get("size")) for one in had.get("disk") or ())
        for datastore, size in (*disks, *mounts):
            storage = cluster.storage(node, str(datastore))
            if storage is not None:
                yield ("" if storage.is_shared else node, storage.name), _bytes(size)


def _bytes(size: Any) -> int:
    """Return a size of the provider in bytes: a number of GiB or `8G`; 0 for one that is not known."""
    return size * GIB if isinstance(size, int) else parse_size(size) or 0


def _room(storage: Storage, limit: float) -> int:
    return int(storage.total_bytes * limit) if storage.is_thin else storage.free_bytes


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
