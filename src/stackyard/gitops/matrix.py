"""Jobs of a matrix: which targets of a pull request are to be planned, and planning some of them.

Any number of such jobs run at the same time. Each leaves its plans in the store, and changes neither the
record of the pull request nor its comment: `plan_pull` takes them from there, and plans what is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError
from stackyard.clients.forge.model import PullState
from stackyard.clients.git.merge import MergeConflictError
from stackyard.gitops.lease import hold_pull
from stackyard.gitops.model import Credentials, TargetState
from stackyard.gitops.opening import open_work, why_not
from stackyard.gitops.part_store import PlannedPart
from stackyard.gitops.plan import is_open, plan_targets
from stackyard.gitops.pull_files import PullCommits, find_fitting, make_order, make_plan, read_record
from stackyard.gitops.pull_files import with_current as keep_current
from stackyard.gitops.statuses import tell_begin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from stackyard.gitops.context import GitopsContext
    from stackyard.gitops.model import Checkout, PullPlan, TargetPlan
    from stackyard.gitops.plan import PlanOrder
    from stackyard.gitops.record import PullRecord
    from stackyard.gitops.show import PullWork

__all__ = ["Share", "TargetNotChangedError", "drop_parts", "plan_some", "select_targets"]


class TargetNotChangedError(InvalidInputError):
    """A target that is to be planned is none of those that the pull request changes."""

    code = "E-GITOPS-TARGET"
    summary = "The pull request does not change this target"
    default_remedy = "`stackyard gitops targets NUMBER` lists those that are to be planned."


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Which targets one job plans.

    Attributes:
        targets: Those that are named; where there is none, a part of all.
        part: Which part of all, from 1.
        parts: Among how many jobs they are divided.
    """

    targets: frozenset[str] = frozenset()
    part: int = 1
    parts: int = 1

    def has(self, target: str, index: int) -> bool:
        """Return whether a target is planned by this job; the index is that among all that are changed."""
        if self.targets:
            return target in self.targets
        return index % self.parts == self.part - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A pull request that can be planned, and its files."""

    work: PullWork
    known: PullRecord | None
    commits: PullCommits
    checkout: Checkout
    order: PlanOrder


async def select_targets(context: GitopsContext, number: int, *, force: bool = False) -> tuple[str, ...]:
    """Return the targets of a pull request that jobs can plan now, in their order; no engine is run.

    Targets whose plan fits are left out, and so is what waits for others, and code that has to be allowed.

    Args:
        context: What the work needs.
        number: The pull request.
        force: Whether targets that have a fitting plan are planned again.

    Raises:
        ForgeError: The forge does not answer.
        StoreError: The store cannot be used.
    """
    async with _open(context, number, force=force) as opened:
        names = () if opened is None else tuple(_list_plannable(opened.order))
        if opened is not None and names:
            await tell_begin(context.forge, opened.commits.head, "is being planned")
    return names


async def plan_some(
    context: GitopsContext, number: int, share: Share, *, force: bool = False
) -> PullPlan | None:
    """Plan some targets of a pull request for `plan_pull` to show; None where it is not planned.

    Args:
        context: What the work needs.
        number: The pull request.
        share: Which targets.
        force: Whether targets that have a fitting plan are planned again.

    Raises:
        TargetNotChangedError: It does not change a target that is named.
        ForgeError: The forge does not answer.
        StoreError: The store cannot be used.
    """
    async with _open(context, number, force=force) as opened:
        if opened is None:
            return None
        names = [one.target for one in opened.order.targets]
        if absent := share.targets.difference(names):
            raise TargetNotChangedError(f"Pull request {number} does not change {', '.join(sorted(absent))}.")
        mine = {name for index, name in enumerate(names) if share.has(name, index)}
        plannable = [name for name in _list_plannable(opened.order) if name in mine]
        planned = {one.target: one for one in await _plan(opened, plannable, force=force)}
        there = {**opened.order.known, **planned}
        plan = make_plan(opened.work, opened.commits)
        return replace(plan, targets=tuple(there[name] for name in names if name in mine and name in there))


async def _plan(opened: _Opened, names: list[str], *, force: bool) -> tuple[TargetPlan, ...]:
    work, commits = opened.work, opened.commits
    repository = work.pull.repository
    async with contextlib.AsyncExitStack() as leases:
        for name in sorted(names):
            hold = hold_pull(work.context, repository, work.pull.number, target=name)
            await leases.enter_async_context(hold)
        # Another job may have had them before.
        fitting = {} if force else await _find_fitting(work, opened.known, commits)
        targets = [one for one in opened.order.targets if one.target in names]
        order = replace(opened.order, targets=targets, takes_outputs={}, known=fitting)
        planned = await plan_targets(work.context, opened.checkout, order)
        for one in planned:
            if one.target not in fitting:
                part = PlannedPart(head=commits.head, tree=commits.tree, target=one)
                await asyncio.to_thread(work.parts.put, part)
    return planned


@contextlib.asynccontextmanager
async def _open(context: GitopsContext, number: int, *, force: bool) -> AsyncIterator[_Opened | None]:
    """Give the files of a pull request and what is to be planned of them; None where it is not planned."""
    repository = await context.forge.repository()
    async with contextlib.AsyncExitStack() as places:
        work = await open_work(context, number)
        # Whoever may push to another branch would make the rules and what is trusted.
        is_ours = work.pull.base_branch == repository.default_branch
        yield await _enter(work, places, force=force) if is_ours else None


async def _enter(work: PullWork, places: contextlib.AsyncExitStack, *, force: bool) -> _Opened | None:
    pull, checkouts = work.pull, work.context.checkouts
    if pull.state is not PullState.OPEN or why_not(work):
        return None
    try:
        tree = await checkouts.find_merge_tree(pull.base, pull.head)
        commits = PullCommits(head=pull.head, base=pull.base, tree=tree)
        known = keep_current(await read_record(work), commits)
        place = checkouts.merge_result(pull.base, pull.head, branch=pull.base_branch)
        checkout = await places.enter_async_context(place)
        fitting = {} if force else await _find_fitting(work, known, commits)
        order = await make_order(work, known, commits, checkout, fitting)
    except (MergeConflictError, InvalidInputError):
        # What is wrong is shown by `plan_pull`.
        return None
    return _Opened(work=work, known=known, commits=commits, checkout=checkout, order=order)


async def _find_fitting(
    work: PullWork, known: PullRecord | None, commits: PullCommits
) -> dict[str, TargetPlan]:
    """Return what fits; what failed is tried again by each run of a workflow."""
    fitting = await find_fitting(work, known, commits)
    return {name: one for name, one in fitting.items() if one.state is not TargetState.FAILED}


def _list_plannable(order: PlanOrder) -> list[str]:
    """Return what can be planned by a job that sees no other target's plan.

    A pull request from a fork, without its secrets, is planned by one job, and nothing of it is saved.
    """
    if order.credentials is Credentials.NONE:
        return []

    def is_settled(name: str) -> bool:
        return name in order.known and not is_open(order.known[name])

    return [
        one.target
        for one in order.targets
        if one.target not in order.known
        and not order.findings.get(one.target)
        and all(map(is_settled, order.takes_outputs.get(one.target, ())))
    ]


async def drop_parts(work: PullWork, record: PullRecord | None = None) -> None:
    """Remove the plans that jobs left and that a record has by now, and those of other commits.

    Args:
        work: The work.
        record: What was saved; None removes all of them.

    Raises:
        StoreError: The store cannot be used.
    """
    await asyncio.to_thread(work.parts.drop, _tell_taken(record))


def _tell_taken(record: PullRecord | None) -> Callable[[PlannedPart], bool]:
    def is_taken(part: PlannedPart) -> bool:
        if record is None or (part.head, part.tree) != (record.plan.head, record.plan.tree):
            return True
        mine = record.find_target(part.target.target)
        return mine is not None and _bare(mine) == _bare(part.target)

    return is_taken


def _bare(target: TargetPlan) -> TargetPlan:
    return replace(target, reasons=(), after=())
