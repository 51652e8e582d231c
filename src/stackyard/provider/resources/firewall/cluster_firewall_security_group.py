"""`proxmox_virtual_environment_cluster_firewall_security_group`: rules under a name, for others to use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.clients import proxmox
from stackyard.provider.create_once import ObjectExistsError, create_object, note_seen
from stackyard.provider.kinds import Resource
from stackyard.provider.problems import Problem
from stackyard.provider.resources.firewall.names import (
    adopt_same,
    group_name,
    kept_comment,
    rename_once,
    same_comment,
)
from stackyard.provider.resources.firewall.rule_lists import (
    find_rules,
    read_rules,
    remove_rules,
    rules_state,
    set_rules,
)
from stackyard.provider.resources.firewall.rules import RULE_RULES, check_rules, number_rules, rules_of
from stackyard.provider.resources.firewall.scopes import GUEST_RULES, check_guest
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]

_GROUPS = "/cluster/firewall/groups"
_AGE_S = 0.5


def _path(name: str) -> str:
    return f"{_GROUPS}/{proxmox.quote(name)}"


async def _find(work: Work, name: str) -> Mapping[str, Any] | None:
    listed = await work.client.get(_GROUPS, max_age_s=_AGE_S)
    return next((row for row in listed if row.get("group") == name), None)


async def _create(work: Work, planned: Object) -> Object:
    name, comment = planned["name"], planned.get("comment") or ""
    try:
        await create_object(
            work,
            name,
            sent={"comment": comment},
            make=lambda: work.client.post(_GROUPS, {"group": name, "comment": comment}),
            look=lambda: _find(work, name),
        )
    except ObjectExistsError as err:
        await adopt_same(work, planned, await _read(work, {**planned, "id": name}), err)
    return await _set(work, {**planned, "id": name})


async def _set(work: Work, state: Object) -> Object:
    """Give a group its rules."""
    path = _path(state["name"])
    # The group is there from now on, with whatever rules it has when something fails.
    work.keep({**state, "rule": []})
    try:
        await set_rules(work, path, rules_of(state))
    except StackyardError:
        work.keep({**state, **rules_state(await find_rules(work, path) or [])})
        raise
    found = await _read(work, state)
    return state if found is None else found


async def _read(work: Work, state: Object) -> Object | None:
    name = state["id"]
    await note_seen(work, name)
    group = await _find(work, name)
    if group is None:
        return None
    rows = await read_rules(work, _path(name))
    return {**state, "id": name, "name": name, "comment": group.get("comment") or "", **rules_state(rows)}


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    old, new, comment = prior["id"], planned["name"], planned.get("comment") or ""
    if (old, prior.get("comment") or "") != (new, comment):
        await rename_once(
            work,
            new,
            sent={"comment": comment},
            send=lambda: work.client.post(_GROUPS, {"group": new, "rename": old, "comment": comment}),
            is_done=lambda: _is_renamed(work, old, new, comment),
        )
    return await _set(work, {**planned, "id": new})


async def _is_renamed(work: Work, old: str, new: str, comment: str) -> bool:
    found = await _find(work, new)
    is_gone = old == new or await _find(work, old) is None
    return found is not None and is_gone and (found.get("comment") or "") == kept_comment(comment)


async def _delete(work: Work, state: Object) -> None:
    name = state["id"]
    await note_seen(work, name)
    try:
        await remove_rules(work, _path(name), rules_of(state))
        await work.client.delete(_path(name))
    except proxmox.RefusedError:
        if await _find(work, name) is not None:
            raise


def _check(config: Object) -> Iterator[Problem]:
    yield from check_guest(config)
    yield from check_rules(config, in_group=True)
    for name in ("node_name", "vm_id", "container_id"):
        if config.get(name) is not None:
            detail = f"`{name}` has no effect: a security group belongs to the cluster."
            yield Problem(path=(name,), detail=detail, is_error=False)


RESOURCE = Resource(
    names=("proxmox_virtual_environment_cluster_firewall_security_group",),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=lambda given: {"id": given, "name": given},
    rules={
        **RULE_RULES,
        **GUEST_RULES,
        "name": Rule(check=group_name),
        "comment": Rule(default="", same=same_comment),
    },
    plan=number_rules,
    validate=_check,
)
