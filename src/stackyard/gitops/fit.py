"""Which plans of a pull request still fit: what they are bound to is still as it was."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from stackyard.gitops.acknowledge import CODE
from stackyard.gitops.model import TargetState
from stackyard.path.stacks.plan import state_version_of
from stackyard.state import StateService
from stackyard.state.refusals import StateDeletedError

if TYPE_CHECKING:
    from stackyard.clients.objects import Objects
    from stackyard.gitops.context import GitopsContext
    from stackyard.gitops.model import TargetPlan
    from stackyard.gitops.record import PullRecord
    from stackyard.sources.store import ChosenStore

__all__ = ["keep_fitting", "reopen_unsure"]

_PLANNED = (TargetState.CHANGES, TargetState.UNCHANGED, TargetState.REFUSED)
_AT_ITS_END = (TargetState.APPLIED, TargetState.APPLYING, TargetState.FAILED)


async def keep_fitting(context: GitopsContext, record: PullRecord) -> dict[str, TargetPlan]:
    """Return by target what need not be planned again, for the same commit and the same merge.

    A plan fits while its state is at the same version, as far as the state is in our store, and while the
    same is allowed. One of a state elsewhere is compared when it is applied.

    Args:
        context: What the work needs.
        record: What is known of the pull request.

    Raises:
        StoreError: The store cannot say.
    """
    allowed = tuple(sorted({f"{one.what} {one.name}" for one in record.acknowledged if one.what != CODE}))
    found = {one.target: one for one in record.plan.targets if one.state in _AT_ITS_END}
    planned = [one for one in record.plan.targets if one.state in _PLANNED]
    states = await asyncio.to_thread(_read_versions, context.store, planned)
    for one in planned:
        if not one.plan:
            # Of a fork: made without the state, to be read only.
            continue
        is_allowed_the_same = one.allowed == allowed or one.state is not TargetState.REFUSED
        if is_allowed_the_same and states.get(one.target) in (None, _version_of(one)):
            found[one.target] = one
    return found


async def reopen_unsure(context: GitopsContext, targets: tuple[TargetPlan, ...]) -> tuple[TargetPlan, ...]:
    """Return targets at their merge: what had nothing to change is planned again if its state may have moved.

    Another pull request may have been applied since. A state elsewhere may always have moved.

    Args:
        context: What the work needs.
        targets: The targets, as they were shown before the merge.

    Raises:
        StoreError: The store cannot say.
    """
    same = [one for one in targets if one.state is TargetState.UNCHANGED]
    states = await asyncio.to_thread(_read_versions, context.store, same)
    moved = {one.target for one in same if states[one.target] != _version_of(one)}
    return tuple(
        replace(one, state=TargetState.WAITING, waits_for=()) if one.target in moved else one
        for one in targets
    )


def _version_of(target: TargetPlan) -> str:
    return str(target.document.get("bound_to", {}).get("state", ""))


def _read_versions(store: ChosenStore, targets: list[TargetPlan]) -> dict[str, str | None]:
    """Return by target the version of its state; None where the state is not in our store."""
    with contextlib.closing(store.read()) as objects:
        return {one.target: _read_version(objects, one) for one in targets}


def _read_version(objects: Objects, target: TargetPlan) -> str | None:
    name = target.document.get("state")
    if not name:
        return None
    try:
        content = StateService(objects).contents.read(str(name))
    except StateDeletedError:
        return None
    return None if content is None else state_version_of(content.body.data)
