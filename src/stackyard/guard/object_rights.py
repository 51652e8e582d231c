"""Which privileges it takes to make, change and remove the objects of clusters and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.engine.changes import Action
from stackyard.guard.rights import Grant, Right
from stackyard.guard.subjects import describe, is_proxmox, node_of, owner_of, short_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.engine.changes import Change, Changes

__all__ = ["list_object_rights"]

_NOT_DONE = (Action.NOTHING, Action.READ, Action.FORGET)
_CHANGE = "Sys.Modify"
# Path and privilege by how a kind begins.
_RIGHTS: Mapping[str, tuple[str, str]] = {
    "storage_": ("/storage", "Datastore.Allocate"),
    "group": ("/access/groups", "Group.Allocate"),
    "role": ("/access", _CHANGE),
    "realm_ldap": ("/access/realm", "Realm.Allocate"),
    "realm_openid": ("/access/realm", "Realm.Allocate"),
    "backup_job": ("/", _CHANGE),
    "metrics_server": ("/", _CHANGE),
    "cluster_options": ("/", _CHANGE),
    "cluster_firewall": ("/", _CHANGE),
    "acme_dns_plugin": ("/", _CHANGE),
}
_OF_NODES = (
    *("dns", "hosts", "time", "node_config", "node_firewall", "certificate", "acme_certificate"),
    *("apt_repository", "apt_standard_repository"),
)
# Whoever may allocate what is below a path may also give rights on it.
_ALLOCATES = {"storage": "Datastore.Allocate", "pool": "Pool.Allocate", "vms": "VM.Allocate"}


def list_object_rights(changes: Changes) -> Iterator[Right]:
    """Return what has to be allowed for what a plan does to objects that are no guests and no networks."""
    for change in changes.planned:
        is_imported_only = change.imported_as is not None and not change.differences
        if is_proxmox(change) and change.action not in _NOT_DONE and not is_imported_only:
            for ways in _list_ways(change):
                yield Right(ways=ways, why=f"the {describe(change)}")


def _list_ways(change: Change) -> Iterator[tuple[tuple[Grant, ...], ...]]:
    kind, values = short_kind(change), change.after or change.before or {}
    node = node_of(change) or values.get("node")
    if kind == "user":
        yield from _user(change, values)
    elif kind == "acl":
        # What another resource will tell is a mark, and no text.
        if isinstance(path := values.get("path"), str):
            yield _acl(path)
    elif kind.startswith("hardware_mapping_"):
        above = f"/mapping/{kind.rpartition('_')[2]}"
        path = above if change.action is Action.CREATE else f"{above}/{values.get('name')}"
        yield ((Grant(path, "Mapping.Modify"),),)
    elif kind in _OF_NODES and isinstance(node, str):
        yield ((Grant(f"/nodes/{node}", _CHANGE),),)
    elif kind.startswith("firewall_") and owner_of(change) is None:
        yield ((Grant(f"/nodes/{node}" if isinstance(node, str) else "/", _CHANGE),),)
    else:
        found = next((right for start, right in _RIGHTS.items() if kind.startswith(start)), None)
        if found is not None and not kind.startswith("firewall_"):
            yield ((Grant(*found),),)


def _user(change: Change, values: Mapping[str, Any]) -> Iterator[tuple[tuple[Grant, ...], ...]]:
    name = values.get("user_id")
    if change.action is Action.CREATE and isinstance(name, str):
        yield ((Grant(f"/access/realm/{name.rpartition('@')[2]}", "Realm.AllocateUser"),),)
    groups = [one for one in values.get("groups") or () if isinstance(one, str)]
    paths = ("/access/groups", *(f"/access/groups/{one}" for one in groups))
    yield tuple((Grant(path, "User.Modify"),) for path in paths)


def _acl(path: str) -> tuple[tuple[Grant, ...], ...]:
    more = _ALLOCATES.get(path.strip("/").partition("/")[0])
    return tuple((Grant(path, name),) for name in ("Permissions.Modify", more) if name)
