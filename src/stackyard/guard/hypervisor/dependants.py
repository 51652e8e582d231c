"""Who still uses what a plan takes away: guests, jobs, interfaces, access, other states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind
from stackyard.clients.proxmox import quote
from stackyard.guard.facts import PERMISSIONS, ApiRead, guest_config
from stackyard.guard.findings import Finding
from stackyard.guard.hypervisor.cluster_uses import (
    ACL,
    BACKUPS,
    REPLICATIONS,
    STORAGES,
    USERS,
    VNETS,
    ZONES,
    interfaces_of,
    list_cluster_uses,
    pool_of,
    without_removed,
)
from stackyard.guard.hypervisor.guest_uses import keys_that_use
from stackyard.guard.hypervisor.taken import Sort, list_taken
from stackyard.guard.subjects import is_guest, vm_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stackyard.guard.cluster import Cluster, ClusterGuest
    from stackyard.guard.facts import Facts
    from stackyard.guard.hypervisor.taken import Taken
    from stackyard.guard.implied import ImpliedCalls

__all__ = [
    "STILL_USED",
    "USE_UNKNOWN",
    "ask_dependants",
    "describe_guest",
    "find_dependants",
    "join_users",
]

STILL_USED = Kind(
    code="E-GUARD-STILL-USED",
    summary="Something that others use would be taken away",
    remedy="Keep it; or change first what uses it: the finding lists that.",
)
USE_UNKNOWN = Kind(
    code="E-GUARD-USE-UNKNOWN",
    summary="Nothing shows whether something that would be taken away is still used",
    remedy="Give the token the privilege that the finding names, or start the node that does not answer. "
    "What cannot be seen counts as used.",
)

_BY_GUESTS = (Sort.STORAGE, Sort.INTERFACE, Sort.VNET, Sort.ZONE, Sort.MAPPING)
_MOST_LISTED = 20
_GUESTS = ("/vms", "VM.Audit")
_ENTRIES = ("/access", "Sys.Audit")
_ACCOUNTS = ("/access/groups", "Sys.Audit")
_NETWORKS = ("/sdn/zones", "SDN.Audit")
# What has to be allowed to see everyone who may use something: else Proxmox leaves rows out of its lists.
_SEES: Mapping[Sort, tuple[tuple[str, str], ...]] = {
    Sort.STORAGE: (_GUESTS, _ENTRIES, ("/storage", "Datastore.Audit")),
    Sort.INTERFACE: (_GUESTS, _NETWORKS),
    Sort.VNET: (_GUESTS, _ENTRIES),
    Sort.ZONE: (_GUESTS, _ENTRIES, _NETWORKS),
    Sort.MAPPING: (_GUESTS, _ENTRIES),
    Sort.POOL: (_GUESTS, ("/pool", "Pool.Audit")),
    Sort.USER: (_ENTRIES, _ACCOUNTS),
    Sort.GROUP: (_ENTRIES, _ACCOUNTS),
    Sort.ROLE: (_ENTRIES,),
    Sort.REALM: (_ACCOUNTS,),
}
_READS: Mapping[Sort, tuple[ApiRead, ...]] = {
    Sort.STORAGE: (BACKUPS, REPLICATIONS, STORAGES, ACL),
    Sort.INTERFACE: (ZONES,),
    Sort.VNET: (ACL,),
    Sort.ZONE: (VNETS, ACL),
    Sort.MAPPING: (ACL,),
    Sort.POOL: (BACKUPS, ACL),
    Sort.USER: (ACL, USERS),
    Sort.GROUP: (ACL, USERS),
    Sort.ROLE: (ACL,),
    Sort.REALM: (USERS,),
}


def ask_dependants(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Read everyone who may use what a plan takes away."""
    for taken in list_taken(implied.changes):
        yield PERMISSIONS
        yield from _READS[taken.sort]
        if taken.sort is Sort.INTERFACE and _is_online(cluster, taken.node):
            yield interfaces_of(taken.node)
        if taken.sort is Sort.POOL:
            yield pool_of(taken.name)
        if taken.sort is Sort.STORAGE and not taken.is_kept:
            yield from _contents(taken, cluster)
        for guest in _list_candidates(taken, implied, cluster):
            if _is_online(cluster, guest.node):
                yield guest_config(guest.node, guest.kind, guest.vm_id)


def _contents(taken: Taken, cluster: Cluster) -> Iterator[ApiRead]:
    """Read what lies on a storage: the volumes of snapshots are in no configuration."""
    for storage in cluster.storages:
        if storage.name == taken.name and _is_online(cluster, storage.node):
            path = f"/nodes/{quote(storage.node)}/storage/{quote(storage.name)}/content"
            yield ApiRead(path, is_optional=True)


def _is_online(cluster: Cluster, name: str) -> bool:
    node = cluster.node(name)
    return node is not None and node.is_online


def _list_candidates(taken: Taken, implied: ImpliedCalls, cluster: Cluster) -> Iterator[ClusterGuest]:
    """Return the guests that may use something, but for those that the plan removes."""
    if taken.sort not in _BY_GUESTS:
        return
    for guest in cluster.guests:
        if guest.vm_id not in implied.destroyed and taken.is_lost_on(guest.node):
            yield guest


def find_dependants(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report what is still used, with everyone who uses it; what cannot be seen is not known to be unused."""
    facts = without_removed(facts, implied.beside)
    unseen: dict[str, list[str]] = {}
    for taken in list_taken(implied.changes):
        users = [*_list_guests(taken, implied, facts), *list_cluster_uses(taken, implied.changes, facts)]
        if users:
            yield Finding(
                kind=STILL_USED,
                detail=f"The {taken} would be {taken.how}, and is used by: {join_users(users)}.",
                address=taken.change.address,
                label=taken.change.address,
            )
        for reason in _list_unseen(taken, implied, facts):
            unseen.setdefault(reason, []).append(str(taken))
    for reason, names in sorted(unseen.items()):
        yield Finding(kind=USE_UNKNOWN, detail=f"Whether the {', the '.join(names)} is used: {reason}.")


def _list_unseen(taken: Taken, implied: ImpliedCalls, facts: Facts) -> Iterator[str]:
    """Return why somebody who uses it may not be seen."""
    if PERMISSIONS in facts.answers:
        for path, privilege in _SEES[taken.sort]:
            if facts.may(path, privilege) is not True:
                yield f"all of it is shown only to {privilege} on {path}, which the token does not have"
        if _GUESTS in _SEES[taken.sort]:
            for path in _hidden_guests(facts.answers[PERMISSIONS]):
                yield f"{path} is shown only to VM.Audit on it, which the token does not have"
    asleep = sorted(
        {
            guest.node
            for guest in _list_candidates(taken, implied, facts.cluster)
            if not _is_online(facts.cluster, guest.node)
        }
    )
    if asleep:
        yield f"{', '.join(asleep)} does not answer, and guests are there"


def _hidden_guests(permissions: Any) -> Iterator[str]:
    listed: Mapping[str, Any] = permissions if isinstance(permissions, dict) else {}
    yield from (path for path, held in listed.items() if path.startswith("/vms/") and "VM.Audit" not in held)


def _list_guests(taken: Taken, implied: ImpliedCalls, facts: Facts) -> Iterator[str]:
    vnets = [str(row.get("vnet")) for row in facts.rows(VNETS) if row.get("zone") == taken.name]
    after = {vm_id_of(change): change.after for change in implied.changes.planned if is_guest(change)}
    for guest in _list_candidates(taken, implied, facts.cluster):
        config = facts.answers.get(guest_config(guest.node, guest.kind, guest.vm_id))
        if not isinstance(config, dict):
            continue
        keys = sorted(keys_that_use(taken, config, guest.kind, vnets))
        planned = after.get(guest.vm_id)
        if planned is not None and not _mentions(planned, {taken.name, *vnets}):
            # The plan moves it away before.
            continue
        if keys:
            yield f"{describe_guest(guest, facts)} ({', '.join(keys)})"
        elif volumes := _volumes_of(taken, guest, facts):
            yield f"{describe_guest(guest, facts)} ({', '.join(volumes)})"


def join_users(users: list[str]) -> str:
    """Return those who use something, as part of a sentence."""
    more = len(users) - _MOST_LISTED
    return "; ".join(users[:_MOST_LISTED]) + (f"; and {more} more" if more > 0 else "")


def describe_guest(guest: ClusterGuest, facts: Facts) -> str:
    """Return what a guest is called, with the state that has it."""
    kind = "VM" if guest.kind == "qemu" else "container"
    state = facts.owners.states.get(guest.vm_id)
    return f"{kind} {guest.vm_id} {guest.name} on {guest.node}" + (f", of the state {state}" if state else "")


def _volumes_of(taken: Taken, guest: ClusterGuest, facts: Facts) -> list[str]:
    """Return volumes of a guest that no key names, as those of its snapshots."""
    if taken.sort is not Sort.STORAGE:
        return []
    found: set[str] = set()
    for question in _contents(taken, facts.cluster):
        for row in facts.rows(question):
            is_disk = row.get("content") in ("images", "rootdir")
            if is_disk and str(row.get("vmid", "")) == str(guest.vm_id):
                found.add(str(row.get("volid")))
    return sorted(found)


def _mentions(value: Any, names: Iterable[str]) -> bool:
    wanted = set(names)
    if isinstance(value, str):
        return value in wanted or value.partition(":")[0] in wanted
    if isinstance(value, dict):
        return any(_mentions(part, wanted) for part in value.values())
    return isinstance(value, list) and any(_mentions(part, wanted) for part in value)
