"""Statuses of a commit: one for each target, and one for all that branch protection can require."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from stackyard.clients.forge.model import CommitState, CommitStatus
from stackyard.gitops.comment import count_changes
from stackyard.gitops.model import TargetState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.clients.forge.model import ForgeLimits
    from stackyard.clients.forge.protocol import Forge
    from stackyard.gitops.model import PullPlan, TargetPlan

__all__ = ["STATUS", "list_statuses", "set_statuses", "tell_begin"]

# What branch protection requires.
STATUS = "stackyard"
# More rows than that say nothing to a person, and forges limit them.
_MOST_TARGETS = 40
_MARK_CHARS = 8
_BAD = (TargetState.FAILED, TargetState.BLOCKED, TargetState.REFUSED)
_BUSY = (TargetState.APPLYING,)
_WORDS = {
    TargetState.FAILED: "failed",
    TargetState.BLOCKED: "its code has to be allowed first",
    TargetState.REFUSED: "the guard refuses it",
    TargetState.WAITING: "waits for another target",
    TargetState.APPLYING: "is being applied",
    TargetState.APPLIED: "applied",
    TargetState.UNCHANGED: "nothing to change",
}


async def tell_begin(forge: Forge, head: str, words: str) -> None:
    """Say at once that something is being done about a commit.

    Raises:
        ForgeError: The forge does not take it.
    """
    await forge.set_status(head, CommitStatus(context=STATUS, state=CommitState.PENDING, description=words))


async def set_statuses(
    forge: Forge, plan: PullPlan, needs: Mapping[str, Sequence[str]], *, url: str = ""
) -> None:
    """Say of the head of a pull request how far its targets are; what is said already is not said again.

    Args:
        forge: The repository.
        plan: The plan.
        needs: By target, what is still needed before it is applied.
        url: Where there is more.

    Raises:
        ForgeError: The forge does not take them.
    """
    there = {one.context: one for one in await forge.statuses(plan.head)}
    for status in list_statuses(plan, needs, forge.limits, url=url):
        before = there.get(status.context)
        if before is None or (before.state, before.description) != (status.state, status.description):
            await forge.set_status(plan.head, status)


def list_statuses(
    plan: PullPlan, needs: Mapping[str, Sequence[str]], limits: ForgeLimits, *, url: str = ""
) -> Iterator[CommitStatus]:
    """Yield the statuses of a plan, that of all targets last."""
    shown = [one for one in plan.targets if one.state is not TargetState.UNCHANGED][:_MOST_TARGETS]
    for one in shown:
        yield CommitStatus(
            context=_shorten(f"{STATUS}/{one.target}", limits.context_chars),
            state=_state_of(one, needs),
            description=_describe(one, needs)[: limits.description_chars],
            url=url,
        )
    state, words = _whole(plan, needs)
    yield CommitStatus(context=STATUS, state=state, description=words[: limits.description_chars], url=url)


def _state_of(target: TargetPlan, needs: Mapping[str, Sequence[str]]) -> CommitState:
    if target.state in _BAD:
        return CommitState.FAILURE
    if target.state in _BUSY:
        return CommitState.PENDING
    if target.state is TargetState.CHANGES and needs.get(target.target):
        return CommitState.PENDING
    return CommitState.SUCCESS


def _describe(target: TargetPlan, needs: Mapping[str, Sequence[str]]) -> str:
    if target.state in _WORDS:
        return _WORDS[target.state]
    counts = count_changes(target)
    numbers = f"+{counts['create']} ~{counts['update']} ±{counts['replace']} -{counts['delete']}"
    return f"{numbers}, needs approval or more" if needs.get(target.target) else numbers


def _whole(plan: PullPlan, needs: Mapping[str, Sequence[str]]) -> tuple[CommitState, str]:
    states = [_state_of(one, needs) for one in plan.targets]
    bad = states.count(CommitState.FAILURE)
    if bad:
        return CommitState.FAILURE, f"{bad} of {len(states)} targets cannot be applied: see the comment"
    pending = states.count(CommitState.PENDING)
    if pending:
        return CommitState.PENDING, f"{pending} of {len(states)} targets need something: see the comment"
    if plan.notes and not plan.targets:
        return CommitState.PENDING, "not planned: see the comment"
    return CommitState.SUCCESS, f"{len(states)} targets" if states else "no target changes"


def _shorten(context: str, most: int) -> str:
    """Return a name that a forge takes; what is cut off is in a mark, so that two never become one."""
    if len(context) <= most:
        return context
    mark = hashlib.sha256(context.encode()).hexdigest()[:_MARK_CHARS]
    return f"{context[: most - _MARK_CHARS - 1]}~{mark}"
