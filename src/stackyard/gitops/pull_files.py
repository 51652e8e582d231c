"""The plan of the files of a pull request: of its merge, and of the base branch once it is merged."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.gitops.acknowledge import find_allowed_commit, list_current, read_comments
from stackyard.gitops.code_check import check_code
from stackyard.gitops.fit import keep_fitting
from stackyard.gitops.model import Credentials, PullPlan
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

__all__ = ["PullCommits", "make_plan", "plan_files", "read_record", "with_plan"]


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
    if known is not None:
        known = replace(known, acknowledged=list_current(known, commits.head, commits.tree))
    is_same = known is not None and (known.plan.head, known.plan.tree) == (commits.head, commits.tree)
    fitting: Mapping[str, TargetPlan] = {}
    if known is not None and is_same and not force:
        fitting = await keep_fitting(context, known)
        if len(fitting) == len(known.plan.targets) and _is_shown_on(known.plan, commits.base):
            return known
    await tell_begin(context.forge, commits.head, "is being planned")
    async with place as checkout:
        order = await _make_order(work, known, commits, checkout, fitting)
        targets = await plan_targets(context, checkout, order)
    plan = replace(make_plan(work, commits), targets=targets)
    return with_plan(known, plan)


async def _make_order(
    work: PullWork,
    known: PullRecord | None,
    commits: PullCommits,
    checkout: Checkout,
    fitting: Mapping[str, TargetPlan],
) -> PlanOrder:
    """Return what is to be planned in a checkout, and what in its code holds it up."""
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


def _is_shown_on(plan: PullPlan, base: str) -> bool:
    """Return whether a plan is of a commit of the base branch, and was not held back."""
    return plan.base == base and not plan.notes


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
