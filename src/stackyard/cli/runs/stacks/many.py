"""The runs of plan, apply, destroy and drift on several stacks, in the order of their dependencies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from stackyard.base import process
from stackyard.base.diagnostics import describe
from stackyard.base.errors import ExitStatus, StackyardError, UsageError
from stackyard.base.redaction import NOTHING_SECRET
from stackyard.cli.confirmation import can_ask
from stackyard.cli.result import Result
from stackyard.cli.runs.plan_options import allowances, make_plan_request, repeat_with_permits
from stackyard.cli.runs.stacks.apply_one import apply_stack
from stackyard.cli.runs.stacks.chosen import StackCommand
from stackyard.cli.runs.stacks.one import show_plan, stack_document
from stackyard.cli.runs.stacks.removed import destroy_all_removed
from stackyard.cli.runs.stacks.selection import select_stacks
from stackyard.cli.views.planned_changes import SIGNS
from stackyard.engine.tofu import PlanMode
from stackyard.guard import GuardRefusedError
from stackyard.path.plan_request import PlanRequest
from stackyard.path.recording import RunSubject, recorded
from stackyard.path.stacks.dependencies import has_resources
from stackyard.path.stacks.inputs import InputsMissingError
from stackyard.path.stacks.many import StackOutcome, StackStatus, run_stacks
from stackyard.path.stacks.plan import make_stack_plan
from stackyard.sources.stacks.kinds import KIND
from stackyard.sources.stacks.order import build_whole_graph, order_stacks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from stackyard.base.dag import Graph
    from stackyard.cli.runs.stacks.selection import SelectedStacks
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.engine.changes import Changes

__all__ = ["run_stacks_apply", "run_stacks_destroy", "run_stacks_drift", "run_stacks_plan"]

# A start of an engine takes a core for a tenth of a second, then it waits for others.
_AT_ONCE = 2 * (os.cpu_count() or 1)
_FAILED = (StackStatus.FAILED, StackStatus.REFUSED)


async def run_stacks_plan(session: Session, values: dict[str, Any]) -> Result:
    """Plan the stacks that the options select."""
    if values.get("out"):
        raise UsageError("--out saves the plan of one stack: name it as TARGET.")
    command = StackCommand(session, values)
    plan_request = make_plan_request(values)

    async def plan(name: str) -> StackOutcome:
        began_s = time.monotonic()
        async with (
            (await command.choose(name)).run("plan", is_recorded=False) as run,
            make_stack_plan(run, plan_request) as made,
        ):
            pass
        status = StackStatus.UNCHANGED if made.is_nothing else StackStatus.PLANNED
        return StackOutcome(
            name=name,
            status=status,
            plan=made,
            redact=run.workdir.redactor,
            elapsed_s=time.monotonic() - began_s,
        )

    selected = await select_stacks(command.source.repository, command.store, values)
    async with recorded(await _subject(command, "plan", len(selected.names)), command.session.emit) as record:
        outcomes = await _walk(command, selected.names, plan, is_ordered=False)
        record.note_failures([one.error for one in outcomes if one.error and one.status in _FAILED])
    return _result(selected, outcomes, is_plan=True, is_detailed=values.get("detailed_exitcode", False))


async def _subject(command: StackCommand, verb: str, count: int) -> RunSubject:
    """Return what one record says of a run that changes no stack."""
    checkout = await command.checkout()
    return RunSubject(
        verb=verb,
        target="1 stack" if count == 1 else f"{count} stacks",
        state=KIND,
        store=command.store,
        redactor=NOTHING_SECRET,
        commit=f"{checkout.commit}-dirty" if checkout.changed else checkout.commit,
    )


async def run_stacks_drift(session: Session, values: dict[str, Any]) -> Result:
    """Find which of the selected stacks are no longer as they were applied."""
    return await run_stacks_plan(session, {**values, "out": None})


async def run_stacks_apply(session: Session, values: dict[str, Any]) -> Result:
    """Apply the stacks that the options select, each when those before it are applied."""
    if values.get("plan_file"):
        raise UsageError("--plan applies the plan of one stack: name it as TARGET.")
    command = StackCommand(session, values)
    plan_request = make_plan_request(values)
    selected = await select_stacks(command.source.repository, command.store, values)
    outcomes = await _walk(command, selected.names, _applier(command, plan_request))
    if not values["dry_run"]:
        # Last: the others may have stopped using what these have.
        outcomes += await destroy_all_removed(command, selected.removed)
    return _result(selected, outcomes, is_plan=values["dry_run"])


async def run_stacks_destroy(session: Session, values: dict[str, Any]) -> Result:
    """Destroy the stacks that the options select, those that others depend on last."""
    command = StackCommand(session, values)
    plan_request = PlanRequest(mode=PlanMode.DESTROY, allowances=allowances(values, everything=True))
    selected = await select_stacks(command.source.repository, command.store, values)
    outcomes = await _walk(command, selected.names, _applier(command, plan_request), is_reversed=True)
    return _result(selected, outcomes, is_plan=values["dry_run"])


def _applier(command: StackCommand, plan_request: PlanRequest) -> Callable[[str], Awaitable[StackOutcome]]:
    asking = asyncio.Lock()

    async def apply(name: str) -> StackOutcome:
        began_s = time.monotonic()
        chosen = await command.choose(name)
        try:
            outcome = await apply_stack(command, chosen, plan_request, asking=asking)
        except InputsMissingError:
            # Nothing is left to destroy, and what gave the values may be destroyed as well.
            is_destroying = plan_request.mode is PlanMode.DESTROY
            if is_destroying and not await has_resources(
                chosen.resolved, command.settings(), command.engines
            ):
                return StackOutcome(name=name, status=StackStatus.UNCHANGED)
            raise
        status = StackStatus.UNCHANGED
        if not outcome.is_well:
            status = StackStatus.FAILED
        elif command.values["dry_run"] and not outcome.made.is_nothing:
            status = StackStatus.PLANNED
        elif outcome.applied is not None:
            status = StackStatus.APPLIED
        return StackOutcome(
            name=name,
            status=status,
            plan=outcome.made,
            applied=outcome.applied,
            error=outcome.problem or next(iter(outcome.down), None),
            redact=outcome.run.workdir.redactor,
            elapsed_s=time.monotonic() - began_s,
        )

    return apply


async def _walk(
    command: StackCommand,
    names: Sequence[str],
    work: Callable[[str], Awaitable[StackOutcome]],
    *,
    is_ordered: bool = True,
    is_reversed: bool = False,
) -> tuple[StackOutcome, ...]:
    graph: Graph[str] = order_stacks(
        build_whole_graph(command.source.repository), names, is_reversed=is_reversed, is_ordered=is_ordered
    )
    at_once = command.values.get("jobs") or _AT_ONCE
    if can_ask(command.session) and not command.values.get("yes", True):
        at_once = 1
    with process.watch_ends() if len(names) > at_once else contextlib.nullcontext():
        return await run_stacks(graph, work, parallel=at_once, emit=command.session.emit)


def _result(
    selected: SelectedStacks,
    outcomes: Sequence[StackOutcome],
    *,
    is_plan: bool = False,
    is_detailed: bool = False,
) -> Result:
    counts = {status.value: sum(one.status is status for one in outcomes) for status in StackStatus}
    return Result(
        document={
            "stacks": [_document(one, selected) for one in outcomes],
            "removed": [{"target": one.target, "path": one.path} for one in selected.removed],
            "counts": counts,
        },
        show=lambda writer: _show(writer, selected, outcomes, is_plan=is_plan),
        status=_status(outcomes, selected, is_plan=is_plan, is_detailed=is_detailed),
    )


def _status(
    outcomes: Sequence[StackOutcome], selected: SelectedStacks, *, is_plan: bool, is_detailed: bool
) -> ExitStatus:
    statuses = {one.status for one in outcomes}
    if StackStatus.FAILED in statuses:
        return ExitStatus.FAILED
    if StackStatus.REFUSED in statuses or any(one.is_refused for one in outcomes):
        return ExitStatus.REFUSED if is_plan else ExitStatus.FAILED
    # In a plan, a stack that waits is what is to come; in an apply, it was to be applied and was not.
    if StackStatus.SKIPPED in statuses or (StackStatus.WAITING in statuses and not is_plan):
        return ExitStatus.FAILED
    has_changes = bool(selected.removed) or bool(statuses & {StackStatus.PLANNED, StackStatus.WAITING})
    return ExitStatus.CHANGES if is_detailed and has_changes else ExitStatus.DONE


def _document(one: StackOutcome, selected: SelectedStacks) -> dict[str, Any]:
    return {
        "target": f"stack:{one.name}",
        "status": one.status.value,
        "reasons": list(selected.reasons.get(one.name, ())),
        "plan": None if one.plan is None else stack_document(one.plan),
        "applied": None
        if one.applied is None
        else {"add": one.applied.add, "change": one.applied.change, "remove": one.applied.remove},
        "waiting_for": [f"stack:{name}" for name in one.waiting_for],
        "error": None if one.error is None else describe(one.error),
        "elapsed_s": round(one.elapsed_s, 3),
    }


def _show(
    writer: TextWriter, selected: SelectedStacks, outcomes: Sequence[StackOutcome], *, is_plan: bool
) -> None:
    if not outcomes and not selected.removed:
        writer.line("No stack is selected.", style="green")
        return
    for one in outcomes:
        if one.plan is not None and (is_plan or one.plan.verdict.refused) and not one.plan.is_nothing:
            writer.line(f"stack:{one.name}", style="bold")
            show_plan(writer, one.plan, one.redact)
            writer.line()
    for one in outcomes:
        if one.error is not None and one.status is not StackStatus.WAITING:
            _show_error(writer, one.name, one.error)
    permits = {
        permit for one in outcomes if isinstance(one.error, GuardRefusedError) for permit in one.error.permits
    }
    if permits:
        # One command for all of them: a command for each stack would be refused for the others.
        writer.line(repeat_with_permits(sorted(permits)) or "")
    rows = [
        (f"stack:{one.name}", one.status.value, _explain(one), f"{one.elapsed_s:.1f} s") for one in outcomes
    ]
    if rows:
        writer.table(("stack", "status", "", "took"), rows)
    gone = {one.name for one in outcomes if one.status is StackStatus.APPLIED}
    for record in selected.removed:
        if record.name in gone:
            continue
        writer.line(
            f"{record.target} was removed, but its resources still exist. To destroy them: "
            f"stackyard destroy {record.target}",
            style="red",
        )


def _show_error(writer: TextWriter, name: str, error: StackyardError) -> None:
    writer.line(f"stack:{name}: {error.summary}: {error.detail}", style="red")
    for finding in error.diagnostics:
        place = "" if finding.where is None else f"{finding.where}: "
        writer.line(f"  {place}{finding.detail}", style="red")
    if error.remedy and not (isinstance(error, GuardRefusedError) and error.permits):
        writer.line(f"  {error.remedy}")


def _count(changes: Changes) -> str:
    counted = Counter(SIGNS[one.action].verb for one in changes.planned if one.action in SIGNS)
    return ", ".join(f"{number} to {verb}" for verb, number in counted.items())


def _explain(one: StackOutcome) -> str:
    if one.applied is not None:
        return f"{one.applied.add} created, {one.applied.change} changed, {one.applied.remove} destroyed"
    if one.status in (StackStatus.WAITING, StackStatus.SKIPPED):
        return f"waiting for {', '.join(f'stack:{name}' for name in one.waiting_for)}"
    if one.status is StackStatus.PLANNED and one.plan is not None:
        return _count(one.plan.changes)
    return "" if one.error is None else one.error.summary
