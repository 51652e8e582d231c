"""Applying what was reviewed: each target along the graph, exactly the plan that was shown and approved.

How far each target is, is recorded before and after. A run that was killed is continued by the next one: a
saved plan is applied only on the state that it was made for, so that nothing is applied twice.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import describe
from stackyard.base.errors import ExitStatus, StackyardError
from stackyard.clients.forge.model import PullState
from stackyard.gitops.approval import find_needs, read_facts
from stackyard.gitops.markdown import code
from stackyard.gitops.model import ChangedTarget, Credentials, TargetState
from stackyard.gitops.plan import PlanOrder, permit_words, plan_targets
from stackyard.gitops.runs import TargetRun, run_verb
from stackyard.gitops.show import save, show

if TYPE_CHECKING:
    from stackyard.gitops.approval import PullFacts
    from stackyard.gitops.model import Checkout, TargetPlan
    from stackyard.gitops.record import PullRecord
    from stackyard.gitops.runs import VerbAnswer
    from stackyard.gitops.show import PullWork

__all__ = ["apply_targets"]

_DONE = (TargetState.APPLIED, TargetState.UNCHANGED)
_TO_APPLY = (TargetState.CHANGES, TargetState.APPLYING)
_FRESH_S = 5.0
# The saved plan no longer fits, or is no longer there.
_MOVED = frozenset(("E-PLAN-MOVED", "E-PLAN-UNKNOWN", "E-PLAN-FILE"))


@dataclass(slots=True)
class _FreshFacts:
    """What the forge says, asked again where it was a while ago: an approval may have been taken back."""

    work: PullWork
    known: PullFacts | None = None
    read_at: float = 0.0

    async def get(self, record: PullRecord) -> PullFacts:
        if self.known is None or time.monotonic() - self.read_at > _FRESH_S:
            work = self.work
            context = work.context
            self.known = await read_facts(context.forge, context.checkouts, work.pull, work.settings, record)
            self.read_at = time.monotonic()
        return self.known


@dataclass(frozen=True, slots=True)
class _Step:
    """One target that is applied, and where."""

    work: PullWork
    checkout: Checkout
    target: TargetPlan


async def apply_targets(
    work: PullWork, checkout: Checkout, record: PullRecord, *, only: frozenset[str] | None = None
) -> PullRecord:
    """Apply every target that may be, in the order of the graph, and return what became of them.

    Args:
        work: The work.
        checkout: The files that were planned.
        record: What is known of the pull request.
        only: The targets to apply; all of them when absent.

    Raises:
        ForgeError: The forge cannot say whether it may be applied.
        StoreError: It cannot be recorded how far it is.
    """
    facts = _FreshFacts(work)
    for name in [one.target for one in record.plan.targets]:
        target = record.find_target(name)
        if target is None or target.state in _DONE or (only is not None and name not in only):
            continue
        if not _is_first(record, target):
            continue
        if target.state is TargetState.WAITING:
            record = await _plan_again(work, checkout, record, target)
            continue
        if target.state not in _TO_APPLY:
            continue
        if find_needs(work.settings, record, await facts.get(record), target):
            continue
        if await _take_lock(work, target):
            record = await _apply_one(_Step(work, checkout, target), record)
    return await show(work, record)


def _is_first(record: PullRecord, target: TargetPlan) -> bool:
    """Return whether everything that comes before a target is applied."""
    before = (record.find_target(name) for name in (*target.after, *target.waits_for))
    return all(one is None or one.state in _DONE for one in before)


async def _take_lock(work: PullWork, target: TargetPlan) -> bool:
    """Return whether a target is this pull request's; before the merge, another one may have it."""
    if work.pull.state is PullState.MERGED:
        return True
    lock = await asyncio.to_thread(work.locks.take, target.target, work.pull.number)
    return lock.holder == work.pull.number


async def _apply_one(step: _Step, record: PullRecord) -> PullRecord:
    work, target = step.work, step.target
    was_begun = target.state is TargetState.APPLYING
    record = await save(work, record.with_target(replace(target, state=TargetState.APPLYING)))
    run = TargetRun(
        verb="destroy" if target.is_removed else "apply",
        target=target.target,
        host=target.host,
        words=("--plan", target.plan, *permit_words(record.acknowledged)),
        credentials=Credentials.APPLY,
    )
    try:
        answer = await run_verb(work.context, step.checkout, run)
    except StackyardError as err:
        failed = replace(target, state=TargetState.FAILED, error=describe(err))
        return await save(work, record.with_target(failed))
    if answer.error.get("code") in _MOVED:
        return await _take_moved(step, record, answer, was_begun=was_begun)
    return await save(work, record.with_target(_read_end(target, answer)))


def _read_end(target: TargetPlan, answer: VerbAnswer) -> TargetPlan:
    if answer.error:
        return replace(target, state=TargetState.FAILED, error=answer.error)
    is_well = answer.status == ExitStatus.DONE
    state = TargetState.APPLIED if is_well else TargetState.FAILED
    outcome = {name: answer.document.get(name) for name in ("applied", "guests", "down", "inventory")}
    down = outcome.get("down") or ()
    error = {} if is_well or not down else dict(down[0])
    return replace(target, state=state, outcome=_plain(outcome), error=error)


def _plain(outcome: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in outcome.items() if value is not None}


async def _take_moved(step: _Step, record: PullRecord, answer: VerbAnswer, *, was_begun: bool) -> PullRecord:
    """Plan again what no longer fits; it is shown, and needs approvals of its own.

    Where a run before was killed in the middle, and nothing is left to do, that run had applied it.
    """
    target = step.target
    record = await _plan_again(step.work, step.checkout, record, target)
    now = record.find_target(target.target)
    if was_begun and now is not None and now.state is TargetState.UNCHANGED:
        done = replace(target, state=TargetState.APPLIED, outcome={"is_continued": True})
        return await save(step.work, record.with_target(done))
    why = f"{code(target.target)}: {code(str(answer.error.get('detail', '')))}"
    plan = replace(record.plan, moved=tuple(dict.fromkeys((*record.plan.moved, why))))
    return await save(step.work, replace(record, plan=plan))


async def _plan_again(
    work: PullWork, checkout: Checkout, record: PullRecord, target: TargetPlan
) -> PullRecord:
    """Plan a target on the merged files: what it waited for is applied, or its plan no longer fits."""
    changed = ChangedTarget(
        target=target.target,
        reasons=target.reasons,
        after=target.after,
        is_removed=target.is_removed,
        host=target.host,
    )
    order = PlanOrder(targets=(changed,), acknowledged=record.acknowledged)
    (planned,) = await plan_targets(work.context, checkout, order)
    return await save(work, record.with_target(planned))
