"""`proxmox_pool_membership`: a guest or a storage in a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.create_once import create_object, note_seen
from stackyard.provider.kinds import Resource, both_names
from stackyard.provider.problems import ImportIdError, Problem
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_AGE_S = 0.5
# The kinds of members: the attribute, the parameter of a change, and the name in the list.
_KINDS = {"vm": ("vm_id", "vms", "vmid"), "storage": ("storage_id", "storage", "storage")}


def _kind(state: Object) -> str:
    return "vm" if state.get("vm_id") is not None else "storage"


def _id(state: Object) -> str:
    kind = _kind(state)
    return f"{state['pool_id']}/{kind}/{state[_KINDS[kind][0]]}"


def _change(state: Object) -> dict[str, Any]:
    attribute, parameter, _ = _KINDS[_kind(state)]
    return {"poolid": state["pool_id"], parameter: state[attribute]}


async def _find(work: Work, state: Object) -> Mapping[str, Any] | None:
    try:
        pools = await work.client.get("/pools", {"poolid": state["pool_id"]}, max_age_s=_AGE_S)
    except proxmox.MissingError:
        # With its pool a membership is gone too.
        return None
    attribute, _, key = _KINDS[_kind(state)]
    members = [member for pool in pools for member in pool.get("members") or ()]
    return next((one for one in members if str(one.get(key)) == str(state[attribute])), None)


async def _create(work: Work, planned: Object) -> Object:
    # A guest that is in another pool moves here.
    moved = {"allow-move": True} if _kind(planned) == "vm" else {}
    await create_object(
        work,
        _id(planned),
        sent=_change(planned),
        make=lambda: work.client.put("/pools", {**_change(planned), **moved}),
        look=lambda: _find(work, planned),
    )
    return {**planned, "id": _id(planned), "type": _kind(planned)}


async def _read(work: Work, state: Object) -> Object | None:
    await note_seen(work, _id(state))
    if await _find(work, state) is None:
        return None
    return {**state, "id": _id(state), "type": _kind(state)}


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, _id(state))
    try:
        await work.client.put("/pools", {**_change(state), "delete": True})
    except proxmox.RefusedError:
        # A guest that was destroyed, or moved by hand, is not in the pool any more.
        if await _find(work, state) is not None:
            raise


def _identify(given: str) -> Object:
    pool, _, rest = given.partition("/")
    kind, _, member = rest.partition("/")
    is_number = kind != "vm" or member.isdecimal()
    if not pool or kind not in _KINDS or not member or "/" in member or not is_number:
        raise ImportIdError(
            "The id of a membership has the form POOL/vm/ID or POOL/storage/NAME, such as web/vm/100, and "
            f"{given!r} does not."
        )
    return {
        "id": given,
        "pool_id": pool,
        "type": kind,
        _KINDS[kind][0]: int(member) if kind == "vm" else member,
    }


def _check(config: Object) -> Iterator[Problem]:
    named = [attribute for attribute, _, _ in _KINDS.values() if config.get(attribute) is not None]
    if len(named) > 1:
        yield Problem(path=(named[1],), detail="Only one of vm_id and storage_id may be set.")
    elif not named:
        yield Problem(detail="One of vm_id and storage_id must be set.")


RESOURCE = Resource(
    names=both_names("pool_membership"),
    create=_create,
    read=_read,
    delete=_delete,
    identify=_identify,
    validate=_check,
    rules={
        "id": Rule(keep=True),
        **{name: Rule(replace=True) for name in ("pool_id", "storage_id", "vm_id")},
    },
)
