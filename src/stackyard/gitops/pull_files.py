"""The plan of the files of a pull request: of its merge, and of the base branch once it is merged."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.gitops.acknowledge import find_allowed_commit, list_current, read_comments
from stackyard.gitops.code_check import check_code
from stackyard.gitops.fit import keep_fitting
from stackyard.gitops.model import Credentials, PullPlan, TargetState
from stackyard.gitops.plan import PlanOrder, plan_targets
from stackyard.gitops.record import PullRecord
from stackyard.gitops.runs import share_store
from stackyard.gitops.statuses import tell_begin
from stackyard.gitops.targets import find_changed_targets

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    from stackyard.gitops.model import Checkout, TargetPlan
    from stackyard.gitops.show import PullWork

__all__ = [
    "PullCommits",
    "find_fitting",
    "make_order",
    "make_plan",
    "plan_files",
    "read_record",
    "with_current",
    "with_plan",
]

_BEGUN = (TargetState.APPLIED, TargetState.APPLYING)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullCommits:
    """What is planned: a pull request on its base, or what it became on the base branch."""

    head: str
    base: str
    tree: str
    merged: str = ""


async def read_record(work: PullWork) -> PullRecord | None:
    """Return what is known, with what people said since."""
    known = await asyncio.to_thread(work.records.get, work.pull.number)
    if known is None:
        return None
    return await read_comments(work.context.forge, known, work.settings, author=work.pull.author)


async def plan_files(
    work: PullWork,
    known: PullRecord | None,
    commits: PullCommits,
    place: AbstractAsyncContextManager[Checkout],
    *,
    force: bool,
) -> PullRecord:
    """Plan what the files of a commit change, but for what has a plan that still fits."""
    context = work.context
    known = with_current(known, commits)
    fitting: Mapping[str, TargetPlan] = {}
    if not force:
        fitting = await find_fitting(work, known, commits)
        if known is not None and _is_all_there(known.plan, commits, fitting):
            return known
    await tell_begin(context.forge, commits.head, "is being planned")
    async with place as checkout:
        order = await make_order(work, known, commits, checkout, fitting)
        targets = await plan_targets(context, checkout, order)
    plan = replace(make_plan(work, commits), targets=targets)
    return with_plan(known, plan)


def with_current(known: PullRecord | None, commits: PullCommits) -> PullRecord | None:
    """Return what is known, with only what people named for these commits."""
    if known is None:
        return None
    return replace(known, acknowledged=list_current(known, commits.head, commits.tree))


async def find_fitting(
    work: PullWork, known: PullRecord | None, commits: PullCommits
) -> dict[str, TargetPlan]:
    """Return by target what need not be planned again; what a job of a matrix planned last is newer.

    Args:
        work: The work.
        known: What is known, with only what people named for these commits.
        commits: What is planned.

    Raises:
        StoreError: The store cannot say.
    """
    context, wanted = work.context, (commits.head, commits.tree)
    fitting = {}
    if known is not None and (known.plan.head, known.plan.tree) == wanted:
        fitting = await keep_fitting(context, known)
    found = await asyncio.to_thread(work.parts.list)
    parts = tuple(one.target for one in found if (one.head, one.tree) == wanted)
    if not parts:
        return fitting
    record = with_plan(known, replace(make_plan(work, commits), targets=parts))
    newer = await keep_fitting(context, record)
    # Which another target holds up is known only by trying; it was tried on these files.
    newer |= {one.target: one for one in parts if one.state is TargetState.WAITING}
    applied = {name for name, one in fitting.items() if one.state in _BEGUN}
    return fitting | {name: one for name, one in newer.items() if name not in applied}


async def make_order(
    work: PullWork,
    known: PullRecord | None,
    commits: PullCommits,
    checkout: Checkout,
    fitting: Mapping[str, TargetPlan],
) -> PlanOrder:
    """Return what is to be planned in a checkout, and what in its code holds it up.

    Args:
        work: The work.
        known: What is known, with only what people named for these commits.
        commits: What is planned.
        checkout: The files.
        fitting: What need not be planned again.

    Raises:
        InvalidInputError: Files of the pull request are not valid.
        StoreError: The store cannot say what was applied.
    """
    context = work.context
    is_allowed = known is not None and find_allowed_commit(known, commits.head)
    is_trusted = is_allowed or not work.pull.is_fork
    if is_trusted:
        # Before anything is looked at, so that what is remembered of the files is kept.
        share_store(context, checkout)
    changes = await find_changed_targets(context.checkouts, checkout, commits.base, context.store)
    findings = {} if is_allowed else await check_code(context.checkouts, checkout, commits.base, changes)
    return PlanOrder(
        targets=changes.targets,
        takes_outputs=changes.takes_outputs,
        findings=findings,
        acknowledged=() if known is None else known.acknowledged,
        credentials=Credentials.PLAN if is_trusted else Credentials.NONE,
        known=fitting,
    )


def _is_all_there(plan: PullPlan, commits: PullCommits, fitting: Mapping[str, TargetPlan]) -> bool:
    """Return whether a plan is of these commits, was not held back, and nothing is newer than it."""
    is_same = (plan.head, plan.tree, plan.base) == (commits.head, commits.tree, commits.base)
    return is_same and not plan.notes and fitting == {one.target: one for one in plan.targets}


def make_plan(work: PullWork, commits: PullCommits, *, notes: tuple[str, ...] = ()) -> PullPlan:
    """Return the plan of a pull request without its targets."""
    pull = work.pull
    return PullPlan(
        repository=pull.repository,
        number=pull.number,
        head=commits.head,
        base_branch=pull.base_branch,
        base=commits.base,
        tree=commits.tree,
        targets=(),
        merged=commits.merged,
        notes=notes,
    )


def with_plan(known: PullRecord | None, plan: PullPlan) -> PullRecord:
    """Return what is known of a pull request with another plan."""
    return PullRecord(plan=plan) if known is None else replace(known, plan=plan)
