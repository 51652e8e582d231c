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
from stackyard.cli.confirmation import can_ask
from stackyard.cli.result import Result
from stackyard.cli.runs.plan import make_plan_request
from stackyard.cli.runs.stacks.chosen import StackCommand
from stackyard.cli.runs.stacks.one import apply_stack, show_plan, stack_document
from stackyard.cli.runs.stacks.removed import destroy_all_removed
from stackyard.cli.runs.stacks.selection import select_stacks
from stackyard.cli.runs.target import allowances
from stackyard.cli.views.planned_changes import SIGNS
from stackyard.engine.tofu import PlanMode
from stackyard.path.plan import PlanRequest
from stackyard.path.stacks.many import StackOutcome, StackStatus, run_stacks
from stackyard.path.stacks.plan import make_stack_plan
from stackyard.sources.stacks.walk import order_stacks

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
_COLOURS = {
    StackStatus.APPLIED: "green",
    StackStatus.UNCHANGED: "green",
    StackStatus.PLANNED: "yellow",
    StackStatus.WAITING: "yellow",
    StackStatus.SKIPPED: "yellow",
    StackStatus.REFUSED: "red",
    StackStatus.FAILED: "red",
}


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

    selected = await select_stacks(command.source, command.store, values)
    outcomes = await _walk(command, selected.names, plan, is_ordered=False)
    return _result(selected, outcomes, is_plan=True, is_detailed=values.get("detailed_exitcode", False))


async def run_stacks_drift(session: Session, values: dict[str, Any]) -> Result:
    """Find which of the selected stacks are no longer as they were applied."""
    return await run_stacks_plan(session, {**values, "out": None})


async def run_stacks_apply(session: Session, values: dict[str, Any]) -> Result:
    """Apply the stacks that the options select, each when those before it are applied."""
    if values.get("plan_file"):
        raise UsageError("--plan applies the plan of one stack: name it as TARGET.")
    command = StackCommand(session, values)
    plan_request = make_plan_request(values)
    selected = await select_stacks(command.source, command.store, values)
    outcomes = await _walk(command, selected.names, _applier(command, plan_request))
    if not values["dry_run"]:
        # Last: the others may have stopped using what these have.
        outcomes += await destroy_all_removed(command, selected.removed)
    return _result(selected, outcomes, is_plan=values["dry_run"])


async def run_stacks_destroy(session: Session, values: dict[str, Any]) -> Result:
    """Destroy the stacks that the options select, those that others depend on last."""
    command = StackCommand(session, values)
    plan_request = PlanRequest(mode=PlanMode.DESTROY, allowances=allowances(values, everything=True))
    selected = await select_stacks(command.source, command.store, values)
    outcomes = await _walk(command, selected.names, _applier(command, plan_request), is_reversed=True)
    return _result(selected, outcomes, is_plan=values["dry_run"])


def _applier(command: StackCommand, plan_request: PlanRequest) -> Callable[[str], Awaitable[StackOutcome]]:
    asking = asyncio.Lock()

    async def apply(name: str) -> StackOutcome:
        began_s = time.monotonic()
        outcome = await apply_stack(command, await command.choose(name), plan_request, asking=asking)
        status = StackStatus.UNCHANGED
        if command.values["dry_run"] and not outcome.made.is_nothing:
            status = StackStatus.PLANNED
        elif outcome.applied is not None:
            status = StackStatus.APPLIED if outcome.is_well else StackStatus.FAILED
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
        command.source.graph(), names, is_reversed=is_reversed, is_ordered=is_ordered
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
        status=_status(outcomes, is_detailed=is_detailed, has_removed=bool(selected.removed)),
    )


def _status(outcomes: Sequence[StackOutcome], *, is_detailed: bool, has_removed: bool) -> ExitStatus:
    statuses = {one.status for one in outcomes}
    if StackStatus.FAILED in statuses:
        return ExitStatus.FAILED
    if StackStatus.REFUSED in statuses or any(one.is_refused for one in outcomes):
        return ExitStatus.REFUSED
    if StackStatus.SKIPPED in statuses:
        return ExitStatus.FAILED
    has_changes = has_removed or bool(statuses & {StackStatus.PLANNED, StackStatus.WAITING})
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
    rows = [
        (f"stack:{one.name}", one.status.value, _explain(one), f"{one.elapsed_s:.1f} s") for one in outcomes
    ]
    if rows:
        writer.table(("stack", "status", "", "took"), rows)
    for record in selected.removed:
        writer.line(
            f"{record.target} was applied and is no longer there: stackyard destroy {record.target}",
            style="red",
        )


def _show_error(writer: TextWriter, name: str, error: StackyardError) -> None:
    writer.line(f"stack:{name}: {error.summary}: {error.detail}", style="red")
    for finding in error.diagnostics:
        writer.line(f"  {finding.detail}", style="red")
    if error.remedy:
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
