"""What is highly available: `/cluster/ha/resources`, and orders to move it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.ha import config
from pvelab.world.ha.groups import GROUPS, are_migrated
from pvelab.world.ha.motion import motion_info
from pvelab.world.ha.requests import check_state
from pvelab.world.sections import Kind, SectionFile

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["create_resource", "delete_resource", "list_resources", "move_resource", "read_resource"]

LOCK = "ha"

_KIND = {"vm": "qemu", "ct": "lxc"}
_WORDS = {"vm": "a VM", "ct": "a container"}
_OPTIONS = frozenset(
    ("state", "group", "comment", "failback", "max_restart", "max_relocate", "auto-rebalance")
)
_MIGRATED = "invalid parameter 'group': ha groups have been migrated to rules"


@route("GET /cluster/ha/resources")
def list_resources(call: Call) -> Any:
    """List what is highly available, with what is wrong with its group."""
    wanted = call.params.get("type")
    found = [_format_resource(call, sid) for sid in call.store.items(config.RESOURCES)]
    for resource in found:
        group = resource.get("group")
        if group and call.store.get(GROUPS, group) is None:
            resource["errors"] = {"group": f"group '{group}' does not exist"}
    return [resource for resource in found if wanted in (None, resource["type"])]


@route("GET /cluster/ha/resources/{sid}")
def read_resource(call: Call) -> Any:
    """Answer one resource, named `vm:100` or by its vmid alone."""
    return _format_resource(call, config.full_sid(call.world.guests, call.params["sid"]))


@route("POST /cluster/ha/resources")
def create_resource(call: Call) -> Any:
    """Make a guest highly available."""
    world, params = call.world, call.params
    world.cluster.require_quorum()
    sid = config.full_sid(world.guests, params["sid"])
    kind, _, name = sid.partition(":")
    if params.get("type", kind) != kind:
        raise PveError("types does not match")
    if params.get("group") is not None and are_migrated(call.store):
        raise PveError(_MIGRATED)
    _check_guest(call, kind, name)
    given = {key: value for key, value in params.items() if key not in ("sid", "type")}
    settings = _kind(kind).validate(given, create=True)
    with world.cluster.lock_file(LOCK, "create resource failed"):
        if config.is_configured(call.store, sid):
            raise PveError(f"resource ID '{sid}' already defined")
        SectionFile(call.store, config.RESOURCES).put(sid, settings)


@route("PUT /cluster/ha/resources/{sid}")
def update_resource(call: Call) -> Any:
    """Change what is wanted of a resource: its state above all."""
    world, params = call.world, call.params
    sid = config.full_sid(world.guests, params["sid"])
    kind = sid.partition(":")[0]
    if params.get("group"):
        _check_group(call, str(params["group"]))
    check_state(world, sid, params.get("state"))
    with world.cluster.lock_file(LOCK, "update resources config failed"):
        file = SectionFile(call.store, config.RESOURCES)
        file.check_digest(params.get("digest"))
        old = file.get(sid)
        if old is None:
            raise PveError(f"no such resource '{sid}'")
        given = {key: value for key, value in params.items() if key not in ("sid", "digest", "delete")}
        changed = {**old, **_kind(kind).validate(given, create=False)}
        file.put(sid, _kind(kind).without(changed, split_list(params.get("delete", "")), {}))


@route("DELETE /cluster/ha/resources/{sid}")
def delete_resource(call: Call) -> Any:
    """Let go of a guest, which stays as it is."""
    sid = config.full_sid(call.world.guests, call.params["sid"])
    if not config.is_configured(call.store, sid):
        raise PveError(f"cannot delete service '{sid}', not HA managed!")
    with call.world.cluster.lock_file(LOCK, "delete resource failed"):
        config.forget_resource(call.store, sid, purge=bool(call.params.get("purge", 1)))


@route("POST /cluster/ha/resources/{sid}/migrate")
def move_resource(call: Call) -> Any:
    """Order a guest to another node; a VM keeps running."""
    return _order_migration(call, "migrate")


@route("POST /cluster/ha/resources/{sid}/relocate")
def relocate_resource(call: Call) -> Any:
    """Order a guest to another node; it is stopped here and started there."""
    return _order_migration(call, "relocate")


def _order_migration(call: Call, word: str) -> dict[str, Any]:
    world, target = call.world, str(call.params["node"])
    sid = config.full_sid(world.guests, call.params["sid"])
    config.require_managed(call.store, sid)
    check_state(world, sid)
    with world.cluster.lock_file(LOCK):
        config.order(call.store, f"{word} {sid} {target}")
    together, blocking = motion_info(world, sid)
    answer: dict[str, Any] = {"sid": sid, "requested-node": target}
    if together:
        answer["comigrated-resources"] = together
    if target in blocking:
        answer["blocking-resources"] = blocking[target]
    return answer


def _check_group(call: Call, group: str) -> None:
    if are_migrated(call.store):
        raise PveError(_MIGRATED)
    if call.store.get(GROUPS, group) is None:
        raise PveError(f"HA group '{group}' does not exist")


def _check_guest(call: Call, kind: str, name: str) -> None:
    if kind not in _KIND:
        raise PveError(f"no such resource type '{kind}'")
    if not re.fullmatch(r"[1-9][0-9]+", name):
        raise PveError("invalid VMID")
    guest = call.world.guests.get(name)
    if guest is None:
        raise PveError(f"resource '{kind}:{name}' does not exist in cluster")
    if guest["type"] != _KIND[kind]:
        raise PveError(f"resource '{kind}:{name}' - guest with ID {name} is not {_WORDS[kind]}")


def _kind(name: str) -> Kind:
    return Kind(name=name, optional=_OPTIONS)


def _format_resource(call: Call, sid: str) -> dict[str, Any]:
    found = call.store.get(config.RESOURCES, sid)
    if found is None:
        raise PveError(f"no such resource '{sid}'")
    digest = SectionFile(call.store, config.RESOURCES).digest
    return {"type": sid.partition(":")[0], **found, "sid": sid, "digest": digest}
