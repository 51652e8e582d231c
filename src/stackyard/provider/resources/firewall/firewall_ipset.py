"""`proxmox_virtual_environment_firewall_ipset`: addresses, networks and aliases under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.create_once import ObjectExistsError, create_object, note_seen
from stackyard.provider.kinds import Resource
from stackyard.provider.resources.firewall.addresses import is_set_entry, same_entry
from stackyard.provider.resources.firewall.ipset_entries import (
    check_entries,
    keep_same_entries,
    read_entries,
    set_entries,
)
from stackyard.provider.resources.firewall.names import (
    adopt_same,
    kept_comment,
    rename_once,
    same_comment,
    set_name,
)
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
    from collections.abc import Iterator, Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft
    from stackyard.provider.problems import Problem
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_AGE_S = 0.5


def _list(state: Object) -> str:
    return f"{scope_of(state).path}/ipset"


def _path(state: Object) -> str:
    return f"{_list(state)}/{proxmox.quote(state['id'])}"


def _identity(state: Object, name: str) -> str:
    return f"{scope_of(state).name}/{name}"


async def _find(work: Work, state: Object, name: str) -> Mapping[str, Any] | None:
    listed = await work.client.get(_list(state), max_age_s=_AGE_S)
    return next((row for row in listed if row.get("name") == name), None)


async def _create(work: Work, planned: Object) -> Object:
    name, comment = planned["name"], planned.get("comment") or ""
    state = {**planned, "id": name}
    try:
        await create_object(
            work,
            _identity(planned, name),
            sent={"comment": comment},
            make=lambda: work.client.post(_list(planned), {"name": name, "comment": comment}),
            look=lambda: _find(work, planned, name),
        )
    except ObjectExistsError as err:
        await adopt_same(work, planned, await _read(work, state), err)
    return await _set(work, state)


async def _set(work: Work, state: Object) -> Object:
    """Give a set its entries."""
    # The set is there from now on; the next read tells which entries it has.
    work.keep({**state, "cidr": []})
    await set_entries(work, _path(state), state.get("cidr") or [])
    found = await _read(work, state)
    return state if found is None else found


async def _read(work: Work, state: Object) -> Object | None:
    name = state["id"]
    await note_seen(work, _identity(state, name))
    found = await _find(work, state, name)
    if found is None:
        return None
    entries = await read_entries(work, _path(state), state.get("cidr") or [])
    return {**state, "name": name, "comment": found.get("comment") or "", "cidr": entries}


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    old, new, comment = prior["id"], planned["name"], planned.get("comment") or ""
    if (old, prior.get("comment") or "") != (new, comment):
        await rename_once(
            work,
            _identity(planned, new),
            sent={"comment": comment},
            send=lambda: work.client.post(_list(planned), {"name": new, "rename": old, "comment": comment}),
            is_done=lambda: _is_renamed(work, planned, old),
        )
    return await _set(work, {**planned, "id": new})


async def _is_renamed(work: Work, planned: Object, old: str) -> bool:
    new = planned["name"]
    found = await _find(work, planned, new)
    is_gone = old == new or await _find(work, planned, old) is None
    if found is None or not is_gone:
        return False
    return kept_comment(found.get("comment")) == kept_comment(planned.get("comment"))


async def _delete(work: Work, state: Object) -> None:
    name = state["id"]
    await note_seen(work, _identity(state, name))
    try:
        # With its entries: Proxmox removes no other than an empty set unless it is forced.
        await work.client.delete(_path(state), {"force": True})
    except proxmox.RefusedError:
        if await _find(work, state, name) is not None:
            raise


def _identify(given: str) -> Object:
    named = identify_scope(given, ("cluster/NAME", *(f"{form}/NAME" for form in GUEST_FORMS)))
    return {**named, "id": named["name"]}


def _plan(draft: PlanDraft) -> None:
    keep_same_entries(draft)
    replace_if_moved(draft)


def _check(config: Object) -> Iterator[Problem]:
    yield from check_set_owner(config)
    yield from check_entries(config)


RESOURCE = Resource(
    names=("proxmox_virtual_environment_firewall_ipset",),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=_identify,
    rules={
        **GUEST_RULES,
        "name": Rule(check=set_name),
        "comment": Rule(default="", same=same_comment),
        # bpg replaces the whole set when an entry changes, and the rules that use it fail for that time.
        "cidr.name": Rule(check=is_set_entry, same=same_entry),
        "cidr.nomatch": Rule(default=False),
        "cidr.comment": Rule(default="", same=same_comment),
    },
    plan=_plan,
    validate=_check,
)
