"""Whether the nodes, datastores and bridges of a model are there, and take what goes onto them."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind
from stackyard.desired import Vm
from stackyard.guard.declared import BRIDGE, POOL, STORAGE
from stackyard.guard.facts import VNETS, rights_on
from stackyard.guard.findings import Finding
from stackyard.guard.rights import bridge_path
from stackyard.render.names import label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.desired import Desired, Guest
    from stackyard.guard.cluster import Cluster, Storage
    from stackyard.guard.facts import ApiRead, Facts
    from stackyard.guard.implied import ImpliedCalls

__all__ = [
    "CONTENT",
    "NO_BRIDGE",
    "NO_NODE",
    "NO_POOL",
    "NO_STORAGE",
    "ask_bridges",
    "ask_datastores",
    "ask_nothing",
    "ask_pools",
    "content_detail",
    "find_bridges",
    "find_contents",
    "find_datastores",
    "find_nodes",
    "find_pools",
    "storages_of",
    "takes_not",
]

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
NO_POOL = Kind(
    code="E-GUARD-NO-SUCH-POOL",
    summary="A pool does not exist",
    remedy="Correct the pool, or declare it.",
)
CONTENT = Kind(
    code="E-PREFLIGHT-CONTENT",
    summary="A datastore does not take a content that is needed",
    remedy="Add the content to the datastore on the host, or name another datastore.",
)
_NAMED = 5
_SEEING = ("Datastore.Audit", "Datastore.AllocateSpace")


def ask_nothing(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask for nothing: what the cluster lists is enough."""
    del implied, cluster
    yield from ()


def find_nodes(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report nodes that the cluster does not have, or that are offline."""
    cluster, known = facts.cluster, ", ".join(node.name for node in facts.cluster.nodes)
    for name, users in sorted(_users_of_nodes(implied.desired).items()):
        node = cluster.node(name)
        names = sorted(users)
        who = f"{', '.join(names[:_NAMED])}{' and others' if len(names) > _NAMED else ''}"
        detail = None
        if node is None:
            detail = f"There is no node {name} for {who}; the cluster has {known or 'none'}."
        elif not node.is_online:
            detail = f"The node {name} for {who} is offline."
        if detail is not None:
            first = next((users[one] for one in names if users[one]), "")
            yield Finding(kind=NO_NODE, detail=detail, label=first, field=("node",))


def _users_of_nodes(desired: Desired) -> dict[str, dict[str, str]]:
    """Return who is to be on each node, with the labels of guests."""
    users: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for guest in desired.guests:
        users[guest.node][guest.name] = label(guest.key)
    for file in desired.files:
        users[file.node][file.key] = ""
    for interface in (*desired.bridges, *desired.vlans):
        users[interface.node][interface.name] = ""
    return users


def storages_of(guest: Guest) -> Iterator[tuple[str, int, tuple[str | int, ...]]]:
    """Return the datastores of a guest, with the GiB that it takes there and the field that says so."""
    if isinstance(guest, Vm):
        for index, disk in enumerate(guest.disks):
            yield disk.datastore, disk.size_gib, ("disks", index, "datastore")
        for name, small in (("efi_disk", guest.efi_disk), ("tpm", guest.tpm)):
            if small is not None:
                yield small.datastore, 0, (name, "datastore")
        if guest.cloud_init is not None and guest.cloud_init.datastore is not None:
            yield guest.cloud_init.datastore, 0, ("cloud_init", "datastore")
    else:
        if guest.root_disk is not None:
            yield guest.root_disk.datastore, guest.root_disk.size_gib, ("root_disk", "datastore")
        for index, mount in enumerate(guest.mounts):
            if mount.size_gib is not None:
                yield mount.volume, mount.size_gib, ("mounts", index, "volume")


def _missing_datastores(
    implied: ImpliedCalls, cluster: Cluster
) -> Iterator[tuple[str, str, str, str, tuple[str | int, ...]]]:
    """Return node, datastore, who needs it, the label of that guest, and the field."""
    wanted: dict[tuple[str, str], tuple[str, str, tuple[str | int, ...]]] = {}
    for guest in implied.desired.guests:
        for datastore, _, field in storages_of(guest):
            wanted.setdefault((guest.node, datastore), (guest.name, label(guest.key), field))
    for file in implied.desired.files:
        wanted.setdefault((file.node, file.datastore), (file.key, "", ()))
    for (node, datastore), (who, name, field) in sorted(wanted.items()):
        if cluster.node(node) is not None and cluster.storage(node, datastore) is None:
            yield node, datastore, who, name, field


def ask_datastores(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask, where a datastore is not listed, whether the token would see it."""
    for _, datastore, *_ in _missing_datastores(implied, cluster):
        yield from rights_on(f"/storage/{datastore}")


def find_datastores(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report datastores that a node does not have; of one that the token may not see, the rights tell."""
    for node, datastore, who, name, field in _missing_datastores(implied, facts.cluster):
        if facts.may(f"/storage/{datastore}", *_SEEING) is False:
            continue
        names = sorted(s.name for s in facts.cluster.storages if s.node == node)
        why = implied.declared.explain(STORAGE, datastore, node, names)
        known = ", ".join(names) or "none"
        detail = f"{who} needs the datastore {datastore} on {node}, which has {known}.{why}"
        yield Finding(kind=NO_STORAGE, detail=detail, label=name, field=field)


def find_contents(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report datastores that do not take what goes onto them."""
    said: set[tuple[str, str, str]] = set()
    for node, datastore, content, who, name, field in _contents(implied):
        storage = facts.cluster.storage(node, datastore)
        known = (node, datastore, content)
        if storage is not None and known not in said and takes_not(storage, content):
            said.add(known)
            yield Finding(kind=CONTENT, detail=content_detail(storage, content, who), label=name, field=field)


def takes_not(storage: Storage, content: str) -> bool:
    """Return whether a datastore is known not to take a content."""
    return bool(storage.contents) and content not in storage.contents


def content_detail(storage: Storage, content: str, who: str) -> str:
    """Say what a datastore takes, and how it gets to take a content."""
    has = ",".join(sorted(storage.contents))
    return (
        f"{storage.name} on {storage.node} takes {has}, and not {content}, which {who} needs; on the host: "
        f"pvesm set {storage.name} --content {has},{content}"
    )


def _contents(implied: ImpliedCalls) -> Iterator[tuple[str, str, str, str, str, tuple[str | int, ...]]]:
    """Return node, datastore, content, who needs it, the label of that guest, and the field."""
    for guest in implied.new_guests:
        content = "images" if isinstance(guest, Vm) else "rootdir"
        for datastore, _, field in storages_of(guest):
            if field[0] != "cloud_init":
                yield guest.node, datastore, content, guest.name, label(guest.key), field
    for file in implied.desired.files:
        if file.key in implied.files:
            content = "snippets" if file.kind == "snippet" else file.content
            yield file.node, file.datastore, content, file.key, label(file.key.partition("/")[0]), ()


def _missing_bridges(implied: ImpliedCalls, cluster: Cluster) -> Iterator[tuple[Guest, int]]:
    """Return guests with the number of a card whose bridge is neither listed nor declared."""
    desired = implied.desired
    declared = {(interface.node, interface.name) for interface in (*desired.bridges, *desired.vlans)}
    vnets = {vnet.name for vnet in desired.vnets}
    for guest in desired.guests:
        node = cluster.node(guest.node)
        if node is None or not node.is_online:
            continue
        for index, nic in enumerate(guest.nics):
            is_declared = nic.bridge in vnets or (node.name, nic.bridge) in declared
            if nic.bridge not in node.bridges and not is_declared:
                yield guest, index


def ask_bridges(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask, where a bridge is not listed, whether the token would see it."""
    for guest, index in _missing_bridges(implied, cluster):
        yield from rights_on(bridge_path(guest.nics[index].bridge, {}))
        yield VNETS


def find_bridges(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report bridges that a node does not have; of one that the token may not see, the rights tell."""
    for guest, index in _missing_bridges(implied, facts.cluster):
        nic, node = guest.nics[index], facts.cluster.node(guest.node)
        field = ("nics", index, "bridge")
        if facts.may(bridge_path(nic.bridge, facts.zones()), "SDN.Use", "SDN.Audit") is False:
            continue
        names = sorted(node.bridges if node is not None else ())
        why = implied.declared.explain(BRIDGE, nic.bridge, guest.node, names)
        known = ", ".join(names) or "none"
        detail = f"{guest.name} plugs into {nic.bridge} on {guest.node}, which has {known}.{why}"
        yield Finding(kind=NO_BRIDGE, detail=detail, label=label(guest.key), field=field)


def _missing_pools(implied: ImpliedCalls, cluster: Cluster) -> Iterator[tuple[Guest, str]]:
    """Return guests that come into a pool which is neither listed nor declared."""
    there = {one.identity for one in cluster.objects if one.kind == POOL}
    there |= {pool.name for pool in implied.desired.pools}
    for guest, changed in implied.touched_guests:
        if guest.pool is not None and guest.pool not in there and (changed is None or "pool_id" in changed):
            yield guest, guest.pool


def ask_pools(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask, where a pool is not listed, whether the token would see it."""
    for _, pool in _missing_pools(implied, cluster):
        yield from rights_on(f"/pool/{pool}")


def find_pools(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report pools that the cluster does not have; of one that the token may not see, the rights tell."""
    for guest, pool in _missing_pools(implied, facts.cluster):
        if not facts.may(f"/pool/{pool}", "Pool.Audit"):
            continue
        names = sorted(one.identity for one in facts.cluster.objects if one.kind == POOL)
        why = implied.declared.explain(POOL, pool, guest.node, names)
        known = ", ".join(names) or "none"
        detail = f"{guest.name} is to be in the pool {pool}; the cluster has {known}.{why}"
        yield Finding(kind=NO_POOL, detail=detail, label=label(guest.key), field=("pool",))
