"""`proxmox_virtual_environment_firewall_alias`: a name for an address or network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.create_once import create_object, note_seen
from stackyard.provider.kinds import Resource
from stackyard.provider.resources.firewall.addresses import is_address_or_network, same_address
from stackyard.provider.resources.firewall.names import alias_name, kept_comment, rename_once, same_comment
from stackyard.provider.resources.firewall.scopes import (
    GUEST_FORMS,
    GUEST_RULES,
    check_set_owner,
    identify_scope,
    replace_if_moved,
    scope_of,
)
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_AGE_S = 0.5


def _list(state: Object) -> str:
    return f"{scope_of(state).path}/aliases"


def _identity(state: Object, name: str) -> str:
    # Proxmox keeps the letters of a name as they are, and knows only one alias whatever their case.
    return f"{scope_of(state).name}/{name.lower()}"


async def _find(work: Work, state: Object, name: str) -> Mapping[str, Any] | None:
    listed = await work.client.get(_list(state), max_age_s=_AGE_S)
    return next((row for row in listed if str(row.get("name")).lower() == name.lower()), None)


def _params(state: Object) -> dict[str, Any]:
    return {"cidr": state["cidr"], "comment": state.get("comment") or ""}


async def _create(work: Work, planned: Object) -> Object:
    name, params = planned["name"], _params(planned)
    was_there = await create_object(
        work,
        _identity(planned, name),
        sent=params,
        make=lambda: work.client.post(_list(planned), {"name": name, **params}),
        look=lambda: _find(work, planned, name),
    )
    state = {**planned, "id": name}
    return await _update(work, state, state) if was_there else await _read_back(work, state)


async def _read(work: Work, state: Object) -> Object | None:
    await note_seen(work, _identity(state, state["id"]))
    found = await _find(work, state, state["id"])
    return None if found is None else _make_state(state, found)


def _make_state(state: Object, found: Mapping[str, Any]) -> Object:
    name, cidr = str(found["name"]), str(found["cidr"])
    given = state.get("cidr")
    # The spelling of the configuration stays where it means the same.
    shown = given if given is not None and same_address(cidr, given) else cidr
    return {**state, "id": name, "name": name, "cidr": shown, "comment": found.get("comment") or ""}


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    old, new, params = prior["id"], planned["name"], _params(planned)
    # A name that differs only in the case of its letters is taken from the path, and not from `rename`.
    at = new if new.lower() == old.lower() else old
    await rename_once(
        work,
        _identity(planned, new),
        sent=params,
        send=lambda: work.client.put(
            f"{_list(planned)}/{proxmox.quote(at)}", {**params, "rename": new}, repeatable=False
        ),
        is_done=lambda: _is_renamed(work, planned, old),
    )
    return await _read_back(work, {**planned, "id": new})


async def _is_renamed(work: Work, planned: Object, old: str) -> bool:
    new = planned["name"]
    found = await _find(work, planned, new)
    if found is None or (old.lower() != new.lower() and await _find(work, planned, old) is not None):
        return False
    is_same = same_address(found.get("cidr"), planned["cidr"])
    return is_same and kept_comment(found.get("comment")) == kept_comment(planned.get("comment"))


async def _read_back(work: Work, state: Object) -> Object:
    work.keep(state)
    found = await _find(work, state, state["id"])
    return state if found is None else _make_state(state, found)


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, _identity(state, state["id"]))
    # Proxmox does not mind when it is gone already.
    await work.client.delete(f"{_list(state)}/{proxmox.quote(state['id'])}")


def _identify(given: str) -> Object:
    named = identify_scope(given, ("cluster/NAME", *(f"{form}/NAME" for form in GUEST_FORMS)))
    return {**named, "id": named["name"]}


RESOURCE = Resource(
    names=("proxmox_virtual_environment_firewall_alias",),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=_identify,
    rules={
        **GUEST_RULES,
        "name": Rule(check=alias_name),
        "cidr": Rule(check=is_address_or_network, same=same_address),
        "comment": Rule(default="", same=same_comment),
    },
    plan=replace_if_moved,
    validate=check_set_owner,
)
