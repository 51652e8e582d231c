"""`proxmox_node_disk_zfs`: a ZFS pool on disks of a node that nothing used before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.checks import at_least, between, one_of
from stackyard.provider.create_once import note_seen
from stackyard.provider.kinds import Resource
from stackyard.provider.problems import ImportIdError, Problem
from stackyard.provider.schema import Rule
from stackyard.provider.task_objects import TaskCreation, create_in_task, remove_in_task
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_TIMEOUT_S = 600.0
_LEVELS = ("single", "mirror", "raid10", "raidz", "raidz2", "raidz3", "draid", "draid2", "draid3")
# What a pool is made of; Proxmox does not tell it afterwards in the words of the call.
_MADE_WITH = ("devices", "raidlevel", "ashift", "compression", "draid_config", "add_storage")


def _list_path(state: Object) -> str:
    return f"/nodes/{proxmox.quote(state['node_name'])}/disks/zfs"


def _path(state: Object) -> str:
    return f"{_list_path(state)}/{proxmox.quote(state['name'])}"


def _identity(state: Object) -> str:
    return f"{state['node_name']}/{state['name']}"


async def _find(work: Work, state: Object) -> dict[str, Any] | None:
    """Return what a node tells of a pool, or None if it has none of that name."""
    try:
        found: dict[str, Any] = await work.client.get(_path(state))
    except proxmox.RefusedError as err:
        # Of a pool that is not there a node says no more than that its command failed; its list tells.
        if err.status != 500 or await _is_listed(work, state):
            raise
        return None
    return found


async def _is_listed(work: Work, state: Object) -> bool:
    pools = await work.client.get(_list_path(state))
    return any(pool.get("name") == state["name"] for pool in pools)


def _values(state: Object, found: dict[str, Any]) -> Object:
    return {
        **state,
        "id": _identity(state),
        "state": str(found.get("state") or ""),
        "errors": str(found.get("errors") or ""),
    }


def _params(planned: Object) -> dict[str, Any]:
    draid = planned.get("draid_config")
    return {
        "name": planned["name"],
        "devices": ",".join(planned["devices"]),
        "raidlevel": planned["raidlevel"],
        "ashift": planned.get("ashift"),
        "compression": planned.get("compression"),
        "draid-config": f"data={draid['data']},spares={draid['spares']}" if draid else None,
        "add_storage": planned.get("add_storage"),
    }


async def _create(work: Work, planned: Object) -> Object:
    state = {**planned, "id": _identity(planned)}
    creation = TaskCreation(
        identity=_identity(planned),
        node=str(planned["node_name"]),
        kind="zfscreate",
        about=str(planned["name"]),
        path=_list_path(planned),
        params=_params(planned),
        timeout_s=_TIMEOUT_S,
        look=lambda: _find(work, planned),
    )
    await create_in_task(work, creation, state)
    work.keep(state)
    return _values(state, await work.client.get(_path(state)))


async def _read(work: Work, state: Object) -> Object | None:
    await note_seen(work, _identity(state))
    found = await _find(work, state)
    return None if found is None else _values(state, found)


async def _update(_work: Work, _prior: Object, planned: Object) -> Object:
    # How a pool is to go, and what it was made of, are known to the state alone.
    return planned


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, _identity(state))
    params = {"cleanup-config": state["cleanup_config"], "cleanup-disks": state["cleanup_disks"]}
    await remove_in_task(work, _path(state), params, look=lambda: _find(work, state), timeout_s=_TIMEOUT_S)


def _plan(planned: PlanDraft) -> None:
    """Replace a pool that is to be made of something else; what an import could not read is filled in."""
    prior = planned.prior or {}
    planned.replace += [
        (name,) for name in _MADE_WITH if prior.get(name) is not None and planned.changed(name)
    ]


def _check(config: Object) -> Iterator[Problem]:
    level, draid = config.get("raidlevel"), config.get("draid_config")
    if level is UNKNOWN or draid is UNKNOWN:
        return
    is_draid = str(level).startswith("draid")
    if is_draid and draid is None:
        yield Problem(path=("draid_config",), detail=f"`raidlevel` {level} needs `draid_config`.")
    if not is_draid and draid is not None:
        detail = f"`draid_config` is for the levels draid, draid2 and draid3, and `raidlevel` is {level}."
        yield Problem(path=("draid_config",), detail=detail)


def _identify(given: str) -> Object:
    node, _, name = given.partition("/")
    if not (node and name):
        raise ImportIdError(f"The id of a ZFS pool has the form NODE/POOL, and {given!r} does not.")
    return {"id": given, "node_name": node, "name": name}


RESOURCE = Resource(
    names=("proxmox_node_disk_zfs",),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=_identify,
    plan=_plan,
    validate=_check,
    rules={
        "id": Rule(keep=True),
        "node_name": Rule(replace=True),
        "name": Rule(replace=True),
        "raidlevel": Rule(check=one_of(*_LEVELS)),
        "ashift": Rule(check=between(9, 16)),
        "compression": Rule(check=one_of("on", "off", "gzip", "lz4", "lzjb", "zle", "zstd")),
        "draid_config.data": Rule(check=at_least(1)),
        "draid_config.spares": Rule(check=at_least(0)),
        "cleanup_config": Rule(default=False),
        "cleanup_disks": Rule(default=False),
        "state": Rule(keep=True),
        "errors": Rule(keep=True),
    },
)
