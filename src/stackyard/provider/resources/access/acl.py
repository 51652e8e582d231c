"""`proxmox_acl`: a role of a user, group or token on a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.create_once import create_object, note_seen
from stackyard.provider.kinds import Resource, both_names
from stackyard.provider.problems import ImportIdError, Problem
from stackyard.provider.resources.access.entries import Entry, find_entries, require_sight, set_entry
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_OWNERS = {"group": "group_id", "token": "token_id", "user": "user_id"}


def _entry(state: Object) -> Entry:
    kind = next(kind for kind, name in _OWNERS.items() if state.get(name) is not None)
    return Entry(state["path"], kind, state[_OWNERS[kind]], state["role_id"])


def _name(entry: Entry) -> str:
    return f"{entry.path}?{entry.owner}?{entry.role}"


async def _create(work: Work, planned: Object) -> Object:
    entry, propagate = _entry(planned), planned["propagate"]

    async def look() -> Object | None:
        found = (await find_entries(work)).get(entry)
        return None if found is None else {"propagate": found}

    was_there = await create_object(
        work,
        _name(entry),
        sent={"propagate": propagate},
        make=lambda: set_entry(work, entry, propagate=propagate),
        look=look,
    )
    if was_there:
        await set_entry(work, entry, propagate=propagate)
    return {**planned, "id": _name(entry)}


async def _read(work: Work, state: Object) -> Object | None:
    entry = _entry(state)
    await note_seen(work, _name(entry))
    found = (await find_entries(work)).get(entry)
    if found is None:
        await require_sight(work, entry.path)
        return None
    return {**state, "id": _name(entry), "propagate": found}


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    # The same entry once more takes the place of the one that is there.
    await set_entry(work, _entry(planned), propagate=planned["propagate"])
    return {**planned, "id": prior["id"]}


async def _delete(work: Work, state: Object) -> None:
    entry = _entry(state)
    await note_seen(work, _name(entry))
    try:
        await set_entry(work, entry, gone=True)
    except proxmox.MissingError:
        # With its user, group, token or role an entry goes too.
        return


def _identify(given: str) -> Object:
    parts = given.split("?")
    if len(parts) != 3 or not all(parts):
        raise ImportIdError(
            f"The id of an entry has the form PATH?OWNER?ROLE, such as /vms?ops@pve?PVEAdmin, and {given!r} "
            "does not."
        )
    path, owner, role = parts
    kind = "token" if "!" in owner else "user" if "@" in owner else "group"
    return {"id": given, "path": path, _OWNERS[kind]: owner, "role_id": role}


def _check(config: Object) -> Iterator[Problem]:
    named = [name for name in _OWNERS.values() if config.get(name) is not None]
    if len(named) > 1:
        yield Problem(path=(named[1],), detail=f"Only one of {', '.join(_OWNERS.values())} may be set.")
    elif not named:
        yield Problem(detail=f"One of {', '.join(_OWNERS.values())} must be set.")


RESOURCE = Resource(
    names=both_names("acl"),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=_identify,
    validate=_check,
    rules={
        "id": Rule(keep=True),
        "propagate": Rule(default=True),
        **{name: Rule(replace=True) for name in ("path", "role_id", *_OWNERS.values())},
    },
)
