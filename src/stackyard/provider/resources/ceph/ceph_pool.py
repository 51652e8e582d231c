"""`proxmox_ceph_pool`: a pool of the Ceph cluster, which Proxmox makes, changes and removes in tasks.

With erasure coding Proxmox makes two pools: NAME-data, and NAME-metadata for what cannot be coded. The number
of copies, how many of them there have to be, and the rule of placement are those of the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.clients import proxmox
from stackyard.provider.checks import between, one_of
from stackyard.provider.create_once import note_seen
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field, params, values
from stackyard.provider.kinds import Resource
from stackyard.provider.problems import ImportIdError
from stackyard.provider.schema import Rule
from stackyard.provider.task_objects import TaskCreation, create_in_task, remove_in_task
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE", "PartialPoolError"]

_TIMEOUT_S = 600.0


class PartialPoolError(StackyardError):
    """Somebody removed one of the two pools that make up an erasure coded one."""

    code = "E-PROVIDER-CEPH-POOL"
    summary = "A Ceph pool is incomplete"
    default_remedy = "Save what is needed of the pool that is left, remove it, and repeat."


_APPLICATION = "rbd"
# With erasure coding these are settings of the pool of metadata.
_COPIES = (
    Field(attribute="size", form=NUMBER),
    Field(attribute="min_size", form=NUMBER),
    Field(attribute="crush_rule", form=TEXT),
)
_GROUPS = (
    Field(attribute="pg_autoscale_mode", form=TEXT),
    Field(attribute="pg_num", form=NUMBER),
    Field(attribute="pg_num_min", form=NUMBER),
)
# Proxmox shows other spellings of these, and never what they were made with.
_TARGETS = (
    Field(attribute="target_size", form=TEXT),
    Field(attribute="target_size_ratio", form=NUMBER),
)
_OWN = (Field(attribute="application", form=TEXT),)
_MADE_WITH = (
    Field(attribute="erasure_coding", key="erasure-coding", form=TEXT),
    Field(attribute="add_storages", form=FLAG),
)


def _list_path(state: Object) -> str:
    return f"/nodes/{proxmox.quote(state['node_name'])}/ceph/pool"


def _identity(state: Object) -> str:
    return f"{state['node_name']}/{state['name']}"


def _names(state: Object) -> tuple[str, str]:
    """Return the pool of copies and the pool of data, which are one without erasure coding."""
    name = str(state["name"])
    return (f"{name}-metadata", f"{name}-data") if state.get("erasure_coding") else (name, name)


async def _find_pool(work: Work, state: Object, name: str) -> dict[str, Any] | None:
    path = f"{_list_path(state)}/{proxmox.quote(name)}/status"
    try:
        found: dict[str, Any] = await work.client.get(path, {"verbose": True})
    except proxmox.MissingError:
        return None
    return found


async def _find(work: Work, state: Object) -> dict[str, Any] | None:
    """Return the settings of a pool, or None.

    Raises:
        PartialPoolError: One of the two pools of erasure coding is gone.
    """
    names = _names(state)
    copies, data = [await _find_pool(work, state, name) for name in names]
    if copies is None and data is None:
        return None
    if copies is None or data is None:
        there, gone = names if data is None else names[::-1]
        raise PartialPoolError(
            f"Of the erasure coded pool {state['name']}, {gone} is gone and {there} is not."
        )
    return {**data, **{field.name: copies.get(field.name) for field in _COPIES}}


def _values(state: Object, found: dict[str, Any]) -> Object:
    read = values((*_COPIES, *_GROUPS), found)
    # A pool that was just made may have none yet.
    kept = state.get("application")
    fallback = _APPLICATION if kept in (None, UNKNOWN) else kept
    applications = sorted(found.get("application_list") or ())
    return {
        **state,
        "id": _identity(state),
        **read,
        "application": applications[0] if applications else fallback,
    }


async def _read_back(work: Work, planned: Object) -> Object:
    """Return what is there now; what was asked for counts as done, though Ceph may still be moving data."""
    found = await _find(work, planned)
    read = {**planned, "id": _identity(planned)} if found is None else _values(planned, found)
    asked = {name: value for name, value in planned.items() if value is not UNKNOWN}
    return {**read, **asked}


async def _create(work: Work, planned: Object) -> Object:
    state = {**planned, "id": _identity(planned)}
    fields = (*_OWN, *_COPIES, *_GROUPS, *_TARGETS, *_MADE_WITH)
    creation = TaskCreation(
        identity=_identity(planned),
        node=str(planned["node_name"]),
        kind="cephcreatepool",
        about=str(planned["name"]),
        path=_list_path(planned),
        params={"name": planned["name"], **params(fields, planned)},
        timeout_s=_TIMEOUT_S,
        look=lambda: _find(work, planned),
    )
    await create_in_task(work, creation, state)
    work.keep(state)
    return await _read_back(work, state)


async def _read(work: Work, state: Object) -> Object | None:
    await note_seen(work, _identity(state))
    found = await _find(work, state)
    return None if found is None else _values(state, found)


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    copies, data = _names(prior)
    if copies == data:
        await _set(work, prior, planned, copies, (*_OWN, *_COPIES, *_GROUPS, *_TARGETS))
    else:
        await _set(work, prior, planned, copies, (*_OWN, *_COPIES))
        await _set(work, prior, planned, data, (*_OWN, *_GROUPS, *_TARGETS))
    return await _read_back(work, {**planned, "id": prior["id"]})


async def _set(work: Work, prior: Object, planned: Object, name: str, fields: tuple[Field, ...]) -> None:
    """Change settings of one pool; to Ceph, a zero means that a target is not set."""
    if all(prior.get(field.attribute) == planned.get(field.attribute) for field in fields):
        return
    gone = [
        field for field in fields if field in _TARGETS and field.is_set(prior) and not field.is_set(planned)
    ]
    sent = {**params(fields, planned), **{field.name: 0 for field in gone}}
    upid = await work.client.put(f"{_list_path(prior)}/{proxmox.quote(name)}", sent)
    await proxmox.wait_for(work.client, upid, timeout_s=_TIMEOUT_S)


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, _identity(state))
    copies, data = _names(state)
    given = {"force": state["force_destroy"], "remove_ecprofile": state["remove_ecprofile"]}
    if data != copies:
        # The storage lists its disks in the pool of metadata, so that this one has to be there still.
        await _remove(work, state, data, given)
    await _remove(work, state, copies, {**given, "remove_storages": state["remove_storages"]})


async def _remove(work: Work, state: Object, name: str, given: dict[str, Any]) -> None:
    await remove_in_task(
        work,
        f"{_list_path(state)}/{proxmox.quote(name)}",
        given,
        look=lambda: _find_pool(work, state, name),
        timeout_s=_TIMEOUT_S,
    )


def _identify(given: str) -> Object:
    node, _, name = given.partition("/")
    if not (node and name):
        raise ImportIdError(f"The id of a Ceph pool has the form NODE/POOL, and {given!r} does not.")
    return {"id": given, "node_name": node, "name": name}


RESOURCE = Resource(
    names=("proxmox_ceph_pool",),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=_identify,
    rules={
        "id": Rule(keep=True),
        "name": Rule(replace=True),
        "node_name": Rule(replace=True),
        "application": Rule(keep=True, check=one_of("rbd", "cephfs", "rgw")),
        "crush_rule": Rule(keep=True),
        "erasure_coding": Rule(replace=True),
        "min_size": Rule(keep=True, check=between(1, 7)),
        "size": Rule(keep=True, check=between(1, 7)),
        "pg_autoscale_mode": Rule(keep=True, check=one_of("on", "off", "warn")),
        "pg_num": Rule(keep=True, check=between(1, 32768)),
        "pg_num_min": Rule(keep=True),
        "target_size_ratio": Rule(fraction=True),
        "add_storages": Rule(replace=True),
        "force_destroy": Rule(default=False),
        "remove_storages": Rule(default=False),
        "remove_ecprofile": Rule(default=True),
    },
)
