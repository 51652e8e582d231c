"""What of the cluster itself uses something: jobs, interfaces, networks, members, access."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.clients.proxmox import quote
from stackyard.guard.facts import ApiRead
from stackyard.guard.hypervisor.taken import Sort
from stackyard.guard.subjects import name_in, node_of, short_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stackyard.engine.changes import Change, Changes
    from stackyard.guard.facts import Facts
    from stackyard.guard.hypervisor.taken import Taken

__all__ = [
    "ACL",
    "BACKUPS",
    "REPLICATIONS",
    "STORAGES",
    "USERS",
    "VNETS",
    "ZONES",
    "acl_of",
    "interfaces_of",
    "list_cluster_uses",
    "lower_interfaces",
    "pool_of",
    "token_of",
    "without_removed",
]

ACL = ApiRead("/access/acl")
USERS = ApiRead("/access/users", (("full", "1"),))
BACKUPS = ApiRead("/cluster/backup")
REPLICATIONS = ApiRead("/cluster/replication")
STORAGES = ApiRead("/storage")
ZONES = ApiRead("/cluster/sdn/zones")
VNETS = ApiRead("/cluster/sdn/vnets")

Row = dict[str, Any]
_LOWER = ("bridge_ports", "slaves", "ovs_ports", "ovs_bonds", "vlan-raw-device")


def interfaces_of(node: str) -> ApiRead:
    """Return the question for the interfaces of a node."""
    return ApiRead(f"/nodes/{quote(node)}/network")


def pool_of(name: str) -> ApiRead:
    """Return the question for a pool with its members."""
    return ApiRead("/pools", (("poolid", name),))


def lower_interfaces(row: Mapping[str, Any]) -> set[str]:
    """Return the interfaces that one stands on."""
    name = str(row.get("iface"))
    listed = [part for key in _LOWER for part in re.split(r"[\s,;]+", str(row.get(key) or "")) if part]
    # A VLAN has the name of its interface in its own.
    above = {part.partition(".")[0] for part in (name, *listed)} - {name}
    return {*listed, *above}


def acl_of(values: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return path, holder and role of an entry of the access list, from the values of its resource."""
    holder = values.get("token_id") or values.get("user_id") or values.get("group_id")
    return str(values.get("path")), str(holder), str(values.get("role_id"))


def token_of(values: Mapping[str, Any]) -> str:
    """Return the id of a token, from the values of its resource."""
    return f"{values.get('user_id')}!{values.get('token_name')}"


def without_removed(facts: Facts, beside: Changes) -> Facts:
    """Return what the cluster tells, without the tokens and roles of tokens that a run removes itself."""
    going = [change.before or {} for change in beside.planned if change.destroys]
    tokens = {token_of(values) for values in going if "token_name" in values}
    entries = {acl_of(values) for values in going if "role_id" in values}
    if not going:
        return facts
    users = [_drop_tokens(row, tokens) for row in facts.rows(USERS)]
    lines = [
        row
        for row in facts.rows(ACL)
        if row.get("ugid") not in tokens
        and (row.get("path"), row.get("ugid"), row.get("roleid")) not in entries
    ]
    known = {question: rows for question, rows in ((USERS, users), (ACL, lines)) if question in facts.answers}
    return replace(facts, answers={**facts.answers, **known})


def _drop_tokens(row: Mapping[str, Any], tokens: set[str]) -> dict[str, Any]:
    kept = [
        one for one in row.get("tokens") or () if f"{row.get('userid')}!{one.get('tokenid')}" not in tokens
    ]
    return {**row, "tokens": kept}


@dataclass(frozen=True, slots=True)
class _Rest:
    """What stays of the cluster when a plan is applied."""

    changes: Changes

    def after(self, kind: str, name: str, node: str = "") -> Mapping[str, Any] | None:
        """Return the values that a plan gives something; nothing for what goes, None for what it leaves."""
        for change in self.changes.planned:
            if short_kind(change).startswith(kind) and node in ("", node_of(change)):
                before = change.before
                if before is not None and name_in(short_kind(change), before) == name:
                    return _final(change)
        return None

    def keeps(self, kind: str, name: str) -> bool:
        """Return whether something stays."""
        after = self.after(kind, name)
        return after is None or bool(after)

    def keeps_entry(self, row: Mapping[str, Any]) -> bool:
        """Return whether an entry of the access list stays."""
        entry = (str(row.get("path")), str(row.get("ugid")), str(row.get("roleid")))
        mine = [change for change in self.changes.planned if short_kind(change) == "acl"]
        is_gone = any(one.destroys and acl_of(one.before or {}) == entry for one in mine)
        return not is_gone or any(_final(one) and acl_of(_final(one)) == entry for one in mine)


def _final(change: Change) -> Mapping[str, Any]:
    return change.after or {}


def list_cluster_uses(taken: Taken, changes: Changes, facts: Facts) -> Iterator[str]:
    """Return everyone but guests who uses something, in words."""
    find = _FINDERS[taken.sort]
    yield from find(taken, _Rest(changes), facts)


def _storage(taken: Taken, rest: _Rest, facts: Facts) -> Iterator[str]:
    yield from _backups(taken, rest, facts)
    for row in facts.rows(REPLICATIONS):
        is_meant = taken.nodes is not None or bool(taken.but)
        if is_meant and taken.is_lost_on(str(row.get("target"))):
            yield from _replication(taken, row, facts)
    if taken.contents is None:
        for row in facts.rows(STORAGES):
            name = str(row.get("storage"))
            is_based = str(row.get("base") or "").startswith(f"{taken.name}:")
            if is_based and rest.keeps("storage_", name):
                yield f"storage {name}"
    yield from _files(taken, facts)
    if not taken.is_kept:
        yield from _entries(f"/storage/{taken.name}", rest, facts)


def _backups(taken: Taken, rest: _Rest, facts: Facts) -> Iterator[str]:
    """Return the backup jobs that keep backups on a storage, or changed blocks while they run."""
    # What a job has of a storage, with the content that it needs there.
    for key, content in (("storage", "backup"), ("fleecing", "images")):
        if taken.contents is not None and content not in taken.contents:
            continue
        for row in facts.rows(BACKUPS):
            node = str(row.get("node") or "")
            if _is_on(row.get(key), taken.name) and (not node or taken.is_lost_on(node)):
                after = rest.after("backup_job", str(row.get("id")))
                if after is None or _is_on(after.get(key), taken.name):
                    yield f"backup job {row.get('id')}" + (f" ({key})" if key != "storage" else "")


def _is_on(value: Any, storage: str) -> bool:
    """Return whether a setting of a backup job is a storage, or has it among its parts."""
    if isinstance(value, dict):
        return value.get("storage") == storage
    return value == storage or f"storage={storage}" in str(value or "").split(",")


def _replication(taken: Taken, row: Row | Mapping[str, Any], facts: Facts) -> Iterator[str]:
    for question, config in facts.answers.items():
        is_guest = question.path.endswith(f"/{row.get('guest')}/config") and isinstance(config, dict)
        if is_guest and any(str(value).startswith(f"{taken.name}:") for value in config.values()):
            yield f"replication job {row.get('id')} to {row.get('target')}"


def _files(taken: Taken, facts: Facts) -> Iterator[str]:
    for volume, state in sorted(facts.owners.files.items()):
        storage, _, name = volume.partition(":")
        is_meant = taken.contents is None or name.partition("/")[0] in taken.contents
        if storage == taken.name and is_meant and taken.nodes is None and not taken.but:
            yield f"file {volume}, of the state {state}"


def _interface(taken: Taken, rest: _Rest, facts: Facts) -> Iterator[str]:
    for row in facts.rows(interfaces_of(taken.node)):
        name = str(row.get("iface"))
        if name == taken.name or taken.name not in lower_interfaces(row):
            continue
        after = rest.after("network_linux_", name, taken.node)
        if after is None or _stands_on(after, taken.name):
            yield f"interface {name} of {taken.node}"
    for row in facts.rows(ZONES):
        nodes = str(row.get("nodes") or "")
        is_here = not nodes or taken.node in nodes.split(",")
        if row.get("bridge") == taken.name and is_here:
            after = rest.after("sdn_zone_", str(row.get("zone")))
            if after is None or after.get("bridge") == taken.name:
                yield f"SDN zone {row.get('zone')}"


def _stands_on(after: Mapping[str, Any], name: str) -> bool:
    own = str(after.get("name") or "").partition(".")[0]
    ports = [*(after.get("ports") or ()), *(after.get("slaves") or ()), after.get("interface"), own]
    return any(str(port) == name or str(port).startswith(f"{name}.") for port in ports)


def _zone(taken: Taken, rest: _Rest, facts: Facts) -> Iterator[str]:
    if taken.is_kept:
        return
    for row in facts.rows(VNETS):
        if row.get("zone") == taken.name:
            after = rest.after("sdn_vnet", str(row.get("vnet")))
            if after is None or after.get("zone") == taken.name:
                yield f"SDN vnet {row.get('vnet')}"
    yield from _entries(f"/sdn/zones/{taken.name}", rest, facts)


def _vnet(taken: Taken, rest: _Rest, facts: Facts) -> Iterator[str]:
    zone = (taken.change.before or {}).get("zone")
    yield from _entries(f"/sdn/zones/{zone}/{taken.name}", rest, facts)


def _mapping(taken: Taken, rest: _Rest, facts: Facts) -> Iterator[str]:
    if not taken.is_kept:
        kind = short_kind(taken.change).rpartition("_")[2]
        yield from _entries(f"/mapping/{kind}/{taken.name}", rest, facts)


def _pool(taken: Taken, rest: _Rest, facts: Facts) -> Iterator[str]:
    for pool in facts.rows(pool_of(taken.name)):
        for member in pool.get("members") or ():
            yield from _member(member, rest, facts)
    for one in facts.cluster.objects:
        is_inside = one.kind == "pool" and one.identity.startswith(f"{taken.name}/")
        if is_inside and rest.keeps("pool", one.identity):
            yield f"pool {one.identity}"
    for row in facts.rows(BACKUPS):
        if row.get("pool") == taken.name:
            after = rest.after("backup_job", str(row.get("id")))
            if after is None or after.get("pool") == taken.name:
                yield f"backup job {row.get('id')}"
    yield from _entries(f"/pool/{taken.name}", rest, facts)


def _member(member: Mapping[str, Any], rest: _Rest, facts: Facts) -> Iterator[str]:
    if "vmid" not in member:
        yield f"storage {member.get('storage')}"
        return
    vm_id = int(member["vmid"])
    planned = next(
        (one for one in rest.changes.planned if (one.before or {}).get("vm_id") == vm_id),
        None,
    )
    before = None if planned is None else planned.before
    if planned is not None and before is not None:
        is_same = _final(planned).get("pool_id") == before.get("pool_id")
        # What goes, and what the plan puts elsewhere, is no member any more.
        if not is_same or planned.after is None:
            return
    state = facts.owners.states.get(vm_id)
    kind = "container" if member.get("type") == "lxc" else "VM"
    yield f"{kind} {vm_id} {member.get('name')}" + (f", of the state {state}" if state else "")


def _user(taken: Taken, rest: _Rest, facts: Facts) -> Iterator[str]:
    for row in facts.rows(USERS):
        if row.get("userid") == taken.name:
            for token in row.get("tokens") or ():
                yield f"token {taken.name}!{token.get('tokenid')}"
    if not taken.is_kept:
        holders = (taken.name, f"{taken.name}!")
        yield from _held(lambda row: str(row.get("ugid")).startswith(holders), taken, rest, facts)


def _group(taken: Taken, rest: _Rest, facts: Facts) -> Iterator[str]:
    for row in facts.rows(USERS):
        name, listed = str(row.get("userid")), row.get("groups") or ""
        groups = listed if isinstance(listed, list) else str(listed).split(",")
        if taken.name in groups:
            after = rest.after("user", name)
            if after is None or taken.name in (after.get("groups") or ()):
                yield f"user {name}"
    yield from _held(lambda row: row.get("type") == "group", taken, rest, facts)


def _role(taken: Taken, rest: _Rest, facts: Facts) -> Iterator[str]:
    if taken.is_kept:
        return
    for row in facts.rows(ACL):
        if row.get("roleid") == taken.name and rest.keeps_entry(row):
            yield _describe_entry(row)


def _realm(taken: Taken, rest: _Rest, facts: Facts) -> Iterator[str]:
    for row in facts.rows(USERS):
        name = str(row.get("userid"))
        if name.endswith(f"@{taken.name}") and rest.keeps("user", name):
            yield f"user {name}"


def _held(
    is_meant: Callable[[Mapping[str, Any]], bool], taken: Taken, rest: _Rest, facts: Facts
) -> Iterator[str]:
    """Return the entries of the access list that a user or group has."""
    for row in facts.rows(ACL):
        holder = str(row.get("ugid")).partition("!")[0]
        if holder == taken.name and is_meant(row) and rest.keeps_entry(row):
            yield _describe_entry(row)


def _entries(path: str, rest: _Rest, facts: Facts) -> Iterator[str]:
    """Return the entries of the access list for a path and what is below it."""
    for row in facts.rows(ACL):
        listed = str(row.get("path"))
        if (listed == path or listed.startswith(f"{path}/")) and rest.keeps_entry(row):
            yield _describe_entry(row)


def _describe_entry(row: Mapping[str, Any]) -> str:
    return f"access of {row.get('ugid')} to {row.get('path')} as {row.get('roleid')}"


_FINDERS: Mapping[Sort, Callable[[Taken, _Rest, Facts], Iterator[str]]] = {
    Sort.STORAGE: _storage,
    Sort.INTERFACE: _interface,
    Sort.VNET: _vnet,
    Sort.ZONE: _zone,
    Sort.MAPPING: _mapping,
    Sort.POOL: _pool,
    Sort.USER: _user,
    Sort.GROUP: _group,
    Sort.ROLE: _role,
    Sort.REALM: _realm,
}
