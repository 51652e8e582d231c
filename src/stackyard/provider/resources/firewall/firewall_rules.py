"""`proxmox_virtual_environment_firewall_rules`: the rules of the cluster, a node or a guest, as one list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.provider.create_once import ObjectExistsError, note_seen
from stackyard.provider.kinds import Resource
from stackyard.provider.resources.firewall.rule_lists import (
    create_rules,
    find_rules,
    read_rules,
    remove_rules,
    rules_state,
    set_rules,
)
from stackyard.provider.resources.firewall.rules import RULE_RULES, check_rules, number_rules, rules_of
from stackyard.provider.resources.firewall.scopes import (
    GUEST_FORMS,
    GUEST_RULES,
    NODE_FORM,
    check_guest,
    hash_id,
    identify_scope,
    replace_if_moved,
    scope_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft
    from stackyard.provider.problems import Problem
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]


def _path(state: Object) -> str:
    return f"{scope_of(state).path}/rules"


def _id(state: Object) -> str:
    return hash_id("rule", _path(state))


async def _create(work: Work, planned: Object) -> Object:
    state = {**planned, "id": _id(planned)}
    try:
        await create_rules(work, _path(planned), scope_of(planned).name, rules_of(planned))
    except ObjectExistsError:
        raise
    except StackyardError:
        await _keep(work, state)
        raise
    return await _read_back(work, state)


async def _read(work: Work, state: Object) -> Object | None:
    await note_seen(work, scope_of(state).name)
    return {**state, **rules_state(await read_rules(work, _path(state)))}


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    state = {**planned, "id": prior["id"]}
    try:
        await set_rules(work, _path(planned), rules_of(planned))
    except StackyardError:
        await _keep(work, state)
        raise
    return await _read_back(work, state)


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, scope_of(state).name)
    left = await remove_rules(work, _path(state), rules_of(state))
    if left:
        work.warn(
            "Firewall rules stay",
            f"{_path(state)} has {len(left)} rules that are not in the state: somebody added or changed them "
            "since the plan. They were not removed.",
        )


async def _read_back(work: Work, state: Object) -> Object:
    return {**state, **rules_state(await read_rules(work, _path(state)))}


async def _keep(work: Work, state: Object) -> None:
    """Note the rules that are there after a failure, if there are any."""
    rows = await find_rules(work, _path(state))
    if rows:
        work.keep({**state, **rules_state(rows)})


def _identify(given: str) -> Object:
    named = identify_scope(given, ("cluster", NODE_FORM, *GUEST_FORMS))
    return {**named, "id": _id(named)}


def _plan(draft: PlanDraft) -> None:
    number_rules(draft)
    replace_if_moved(draft)


def _check(config: Object) -> Iterator[Problem]:
    yield from check_guest(config)
    yield from check_rules(config)


RESOURCE = Resource(
    names=("proxmox_virtual_environment_firewall_rules",),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=_identify,
    rules={**RULE_RULES, **GUEST_RULES},
    plan=_plan,
    validate=_check,
)
