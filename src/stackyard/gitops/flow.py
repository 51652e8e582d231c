"""The way of a pull request: planned and shown, approved, merged, applied. The door of this package.

What is true is asked of the forge and of git each time; what was done is in the store. So each function may
be called as often as anyone likes, by a server, by a job of a CI, or again after a kill.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from stackyard.base.errors import BusyError, InvalidInputError, StackyardError
from stackyard.clients.forge.model import PullState
from stackyard.clients.git.merge import MergeConflictError
from stackyard.gitops.apply import apply_targets
from stackyard.gitops.fit import reopen_unsure
from stackyard.gitops.fork_point import find_before, find_fork_point
from stackyard.gitops.lease import hold_pull
from stackyard.gitops.locks import TargetLocks
from stackyard.gitops.markdown import code
from stackyard.gitops.matrix import drop_parts
from stackyard.gitops.model import PullPlan, TargetState
from stackyard.gitops.opening import open_work, why_not
from stackyard.gitops.pull_files import PullCommits, make_plan, plan_files, read_record, with_plan
from stackyard.gitops.record import PullRecord, PullRecords
from stackyard.gitops.show import PullWork, save, show
from stackyard.gitops.targets import find_changed_targets

if TYPE_CHECKING:
    from stackyard.gitops.context import GitopsContext

__all__ = ["PullMovingError", "apply_pull", "plan_pull", "read_pull", "unlock_pull"]

# Another pull request changed the same target, and was merged later.
_OUTDATED = "E-STACK-OUTDATED"
# How often a plan is made again because the pull request changed meanwhile.
_ATTEMPTS = 3


class PullMovingError(BusyError):
    """A pull request, or its base branch, changes faster than it can be planned."""

    code = "E-GITOPS-MOVING"
    summary = "The pull request changed while it was planned"
    default_remedy = "Wait until nobody pushes, and plan it again."


async def read_pull(context: GitopsContext, number: int) -> PullPlan | None:
    """Return what is known of a pull request, without asking its forge; None where that is nothing.

    Raises:
        StoreError: The store cannot say.
    """
    repository = await context.forge.repository()
    record = await asyncio.to_thread(PullRecords(context.store, repository.name).get, number)
    return None if record is None else record.plan


async def plan_pull(context: GitopsContext, number: int, *, force: bool = False) -> PullPlan:
    """Plan the targets of a pull request that have no fitting plan, edit its comment and set its statuses.

    Args:
        context: What the work needs.
        number: The pull request.
        force: Whether targets that have a fitting plan are planned again.

    Raises:
        PullBusyError: Another process works on it.
        PullMovingError: It changes faster than it can be planned.
        GitopsSettingsError: The rules of the base branch cannot be read.
        ForgeError: The forge does not answer.
        StoreError: The store cannot be used.
    """
    repository = await context.forge.repository()
    async with hold_pull(context, repository.name, number):
        for _ in range(_ATTEMPTS):
            work = await open_work(context, number)
            if work.pull.base_branch != repository.default_branch:
                return await _leave(work)
            if work.pull.state is not PullState.OPEN:
                return await _plan_closed(work, force=force)
            record = await _plan_open(work, force=force)
            if await _is_current(work, record):
                # Before it is shown: a forge that is away then costs no plan.
                return (await show(work, await _save_open(work, record))).plan
    raise PullMovingError(f"Pull request {number} changed {_ATTEMPTS} times while it was planned.")


async def apply_pull(context: GitopsContext, number: int, *, only: frozenset[str] | None = None) -> PullPlan:
    """Apply what was reviewed of a pull request, as far as it may be, and say what became of it.

    Args:
        context: What the work needs.
        number: The pull request.
        only: The targets to apply; all of them when absent.

    Raises:
        StackyardError: As for `plan_pull`.
    """
    repository = await context.forge.repository()
    async with hold_pull(context, repository.name, number):
        work = await open_work(context, number)
        if work.pull.base_branch != repository.default_branch:
            return await _leave(work)
        if work.pull.state is PullState.MERGED:
            return await _apply_merged(work, only)
        if work.pull.state is PullState.OPEN and work.settings.is_before_merge:
            record = await _plan_open(work, force=False)
            if await _is_current(work, record):
                return await _apply_open(work, await show(work, await _save_open(work, record)), only)
    return await plan_pull(context, number)


async def _leave(work: PullWork) -> PullPlan:
    """Plan and apply nothing: whoever may push to that branch would make the rules and what is trusted."""
    pull = work.pull
    note = f"It is for the branch {code(pull.base_branch)}: only those for the default branch are planned."
    commits = PullCommits(head=pull.head, base=pull.base, tree="")
    plan = make_plan(work, commits, notes=(note,))
    await asyncio.to_thread(work.locks.release, pull.number)
    known = await asyncio.to_thread(work.records.get, pull.number)
    if known is None or known.plan.merged:
        return plan
    return (await show(work, await save(work, replace(known, plan=plan)))).plan


async def unlock_pull(context: GitopsContext, number: int) -> tuple[str, ...]:
    """Give back every target that a pull request has before its merge, and return them.

    Raises:
        StoreError: The store cannot be used.
    """
    repository = await context.forge.repository()
    locks = TargetLocks(context.store, repository.name)
    return await asyncio.to_thread(locks.release, number)


# --- Before the merge


async def _is_current(work: PullWork, record: PullRecord) -> bool:
    """Return whether what was planned is still what would be merged."""
    forge = work.context.forge
    now = await forge.pull(work.pull.number)
    tip = await forge.branch_tip(now.base_branch)
    plan = record.plan
    return (now.head, tip, now.state) == (plan.head, plan.base, work.pull.state)


async def _plan_open(work: PullWork, *, force: bool) -> PullRecord:
    pull, checkouts = work.pull, work.context.checkouts
    known = await read_record(work)
    commits = PullCommits(head=pull.head, base=pull.base, tree="")
    refused = why_not(work)
    if refused:
        return with_plan(known, make_plan(work, commits, notes=(refused,)))
    try:
        tree = await checkouts.find_merge_tree(pull.base, pull.head)
    except MergeConflictError as err:
        files = ", ".join(map(code, err.files[:20]))
        note = f"It cannot be merged: resolve the conflicts in {files}."
        return with_plan(known, make_plan(work, commits, notes=(note,)))
    commits = replace(commits, tree=tree)
    place = checkouts.merge_result(pull.base, pull.head, branch=pull.base_branch)
    try:
        return await plan_files(work, known, commits, place, force=force)
    except InvalidInputError as err:
        # Of the files of the pull request: stackyard.yaml, the order of stacks.
        found = "".join(f"\n> - {code(one.detail)}" for one in err.diagnostics[:20])
        note = f"It cannot be planned: {code(err.detail)}{found}"
        return with_plan(known, make_plan(work, commits, notes=(note,)))


async def _save_open(work: PullWork, record: PullRecord) -> PullRecord:
    """Save what was planned; what jobs of a matrix left of it is then no longer needed."""
    saved = await save(work, record)
    await drop_parts(work, saved)
    return saved


async def _apply_open(work: PullWork, record: PullRecord, only: frozenset[str] | None) -> PullPlan:
    """Apply before the merge; each target that is applied is this pull request's until its end."""
    plan, checkouts = record.plan, work.context.checkouts
    if not plan.targets:
        return plan
    for _ in range(len(plan.targets) + 1):
        before = _list_states(record)
        place = checkouts.merge_result(plan.base, plan.head, branch=plan.base_branch)
        async with place as checkout:
            record = await apply_targets(work, checkout, record, only=only)
        if before == _list_states(record):
            break
    return record.plan


def _list_states(record: PullRecord) -> list[tuple[str, TargetState, str]]:
    return [(one.target, one.state, one.plan) for one in record.plan.targets]


# --- After the merge


async def _plan_closed(work: PullWork, *, force: bool) -> PullPlan:
    """Show what is known of a pull request that is merged or closed; one that was merged is planned again."""
    known = await read_record(work)
    if work.pull.state is PullState.MERGED:
        record = await _begin_merged(work, known)
        if force:
            record = await _plan_merged(work, record, moved=())
        return (await show(work, record)).plan
    await asyncio.to_thread(work.locks.release, work.pull.number)
    await drop_parts(work)
    if known is None:
        commits = PullCommits(head=work.pull.head, base=work.pull.base, tree="")
        return make_plan(work, commits)
    return known.plan


async def _apply_merged(work: PullWork, only: frozenset[str] | None) -> PullPlan:
    record = await _begin_merged(work, await read_record(work))
    plan = record.plan
    checkouts = work.context.checkouts
    for _ in range(len(plan.targets) + 1):
        before = _list_states(record)
        place = checkouts.at(plan.merged, branch=plan.base_branch, tip=work.pull.base)
        async with place as checkout:
            record = await apply_targets(work, checkout, record, only=only)
        if before == _list_states(record):
            break
    if any(one.error.get("code") == _OUTDATED for one in record.plan.targets):
        moved = f"{code(work.pull.base_branch)} has newer files of what was to be applied"
        record = await _plan_merged(work, record, moved=(moved,))
    await asyncio.to_thread(work.locks.release, work.pull.number)
    await drop_parts(work)
    return record.plan


async def _begin_merged(work: PullWork, known: PullRecord | None) -> PullRecord:
    """Return the record of a pull request that was merged; its plan is kept if it is of the merged files."""
    pull = work.pull
    if known is not None and known.plan.merged:
        return known
    if not pull.merge_commit:
        raise StackyardError(f"The forge does not say which commit pull request {pull.number} became.")
    if known is None:
        return await _plan_merged(work, None, moved=())
    moved = _list_moved(known.plan, pull.head, await work.context.checkouts.find_tree(pull.merge_commit))
    if moved:
        return await _plan_merged(work, known, moved=moved)
    targets = await reopen_unsure(work.context, known.plan.targets)
    plan = replace(known.plan, merged=pull.merge_commit, moved=(), targets=targets)
    return await save(work, replace(known, plan=plan))


def _list_moved(plan: PullPlan, head: str, tree: str) -> tuple[str, ...]:
    """Return what is no longer as in the plan that was shown; the files of the merge decide."""
    found = []
    if plan.head != head:
        found.append(f"the branch was at {code(plan.head[:12])} and was merged at {code(head[:12])}")
    if plan.tree != tree:
        found.append(
            f"the merged files are {code(tree[:12])}, and those of the plan are "
            f"{code(plan.tree[:12] or 'none')}: the base branch moved since {code(plan.base[:12])}"
        )
    return tuple(found)


async def _find_own_targets(work: PullWork) -> set[str]:
    """Return the targets that the merge of a pull request changed, however it was merged."""
    pull, checkouts = work.pull, work.context.checkouts
    before = await find_before(checkouts, pull)
    async with checkouts.at(pull.merge_commit, branch=pull.base_branch) as checkout:
        changes = await find_changed_targets(checkouts, checkout, before, work.context.store)
    return {one.target for one in changes.targets}


async def _plan_merged(work: PullWork, known: PullRecord | None, *, moved: tuple[str, ...]) -> PullRecord:
    """Plan the base branch as it is now, because nothing of it was shown; it needs approvals of its own.

    What later pull requests mended is not broken again; what is applied stays so.
    """
    pull, checkouts = work.pull, work.context.checkouts
    base = known.plan.base if known is not None else await find_fork_point(checkouts, pull)
    tree = await checkouts.find_tree(pull.base)
    commits = PullCommits(head=pull.head, base=base, tree=tree, merged=pull.base)
    place = checkouts.at(pull.base, branch=pull.base_branch)
    record = await plan_files(work, known, commits, place, force=True)
    before = () if known is None else known.plan.targets
    done = {one.target: one for one in before if one.state is TargetState.APPLIED}
    # Of all that came to the branch since, only what this pull request is about: its last plan may be of an
    # older commit, or of a base branch that had less.
    mine = {one.target for one in before} | await _find_own_targets(work)
    targets = tuple(
        done.get(one.target, one) for one in record.plan.targets if not mine or one.target in mine
    )
    record = replace(record, plan=replace(record.plan, targets=targets, moved=moved))
    return await show(work, await save(work, record))
