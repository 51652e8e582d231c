"""The runs of plan, apply, destroy and drift on one stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import describe
from stackyard.base.errors import ExitStatus, UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.plan_options import allowances, make_plan_request
from stackyard.cli.runs.stacks.apply_one import AppliedStack, apply_stack
from stackyard.cli.runs.stacks.chosen import StackCommand
from stackyard.cli.runs.stacks.selection import find_removed
from stackyard.cli.views.changes import change_document, show_verdict
from stackyard.cli.views.plan_document import describe_stored, plan_document
from stackyard.cli.views.planned_changes import show_changes
from stackyard.engine.changes import Action, Changes
from stackyard.engine.tofu import PlanMode
from stackyard.guard import Permit
from stackyard.guard.destruction import ALLOW_DESTROY
from stackyard.path.plan_request import PlanRequest
from stackyard.path.saved_plans import save_plan
from stackyard.path.stacks.plan import make_stack_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.engine.tofu import Applied
    from stackyard.path.stacks.plan import StackPlan
    from stackyard.path.stacks.run import StackRun

__all__ = [
    "run_stack_apply",
    "run_stack_destroy",
    "run_stack_drift",
    "run_stack_plan",
    "show_plan",
    "stack_document",
]


async def run_stack_plan(session: Session, values: dict[str, Any]) -> Result:
    """Plan the stack that the options name."""
    command = StackCommand(session, values)
    out: str | None = values["out"]
    async with (
        (await command.choose(values["target"])).run("plan") as run,
        make_stack_plan(run, make_plan_request(values)) as made,
    ):
        if out:
            out = save_plan(run, made.saved(stack_document(made)), out)
    return _plan_result(run, made, out=out or None, is_detailed=values["detailed_exitcode"])


async def run_stack_apply(session: Session, values: dict[str, Any]) -> Result:
    """Apply the plan of the stack that the options name, or the one that was saved."""
    command = StackCommand(session, values)
    _refuse_guest_options(values)
    if values["plan_file"] and command.arguments:
        raise UsageError(
            "A saved plan has its arguments: give them to `stackyard plan --out`, and apply that."
        )
    chosen = await command.choose(values["target"])
    return _make_result(command, await apply_stack(command, chosen, make_plan_request(values)))


async def run_stack_destroy(session: Session, values: dict[str, Any]) -> Result:
    """Destroy what the stack that the options name has; one whose folder is gone is known by its name."""
    command = StackCommand(session, values)
    is_generated = command.source.is_generated
    gone = None if is_generated else find_removed(command.source.repository, command.store, values["target"])
    if gone is not None:
        from stackyard.cli.runs.stacks.removed import destroy_removed  # lazy: it needs this module

        # As with --all: who names the stack means everything in it.
        is_named = Permit(option=ALLOW_DESTROY, name=gone.target) in allowances(values).permits
        return _make_result(command, await destroy_removed(command, gone, is_acknowledged=is_named))
    plan_request = PlanRequest(mode=PlanMode.DESTROY, allowances=allowances(values, everything=True))
    return _make_result(
        command, await apply_stack(command, await command.choose(values["target"]), plan_request)
    )


def _make_result(command: StackCommand, ended: AppliedStack) -> Result:
    if command.values["dry_run"]:
        return _plan_result(ended.run, ended.made, out=ended.saved)
    return _nothing_result(ended) if ended.applied is None else _applied_result(ended, ended.applied)


async def run_stack_drift(session: Session, values: dict[str, Any]) -> Result:
    """Find what of the stack that the options name is no longer as it was applied."""
    command = StackCommand(session, values)
    async with (
        (await command.choose(values["target"])).run("drift") as run,
        make_stack_plan(run, PlanRequest(unchanged=True)) as made,
    ):
        managed = tuple(
            change for change in made.changes.planned if change.action not in (Action.NOTHING, Action.READ)
        )
    drifted = [change for change in made.changes.drifted if change.differences or change.after is None]
    is_there = bool(managed or drifted)
    return Result(
        document={
            "target": made.binding.target,
            "has_drift": is_there,
            "managed": [change_document(change) for change in managed],
            "drifted": [change_document(change) for change in drifted],
        },
        show=lambda writer: show_changes(
            writer, Changes(planned=managed), run.workdir.redactor, nothing=NOTHING_TO_CHANGE
        ),
        status=ExitStatus.CHANGES if is_there and values["detailed_exitcode"] else ExitStatus.DONE,
    )


NOTHING_TO_CHANGE = "Nothing to change: everything is as the code says."


def _refuse_guest_options(values: Mapping[str, Any]) -> None:
    """Refuse what is about guests that stackyard itself describes.

    Raises:
        UsageError: One is given.
    """
    for name, option in (
        ("accept_renames", "--accept-renames"),
        ("adopt", "--adopt"),
        ("recreate", "--recreate"),
    ):
        if values.get(name):
            raise UsageError(
                f"{option} is not for stacks: write `moved` and `import` blocks, or pass -replace=ADDRESS "
                "after `--`."
            )


def stack_document(made: StackPlan) -> dict[str, Any]:
    """Return the JSON view of a plan of a stack."""
    return {**plan_document(made), "notes": list(made.notes), "inputs": made.binding.inputs or None}


def _plan_result(
    run: StackRun, made: StackPlan, *, out: str | None = None, is_detailed: bool = False
) -> Result:
    status = ExitStatus.CHANGES if is_detailed and not made.changes.is_empty else ExitStatus.DONE
    return Result(
        document={**stack_document(made), "plan": out, **describe_stored(made, out)},
        show=lambda writer: show_plan(writer, made, run.workdir.redactor, out),
        status=ExitStatus.REFUSED if made.verdict.refused else status,
    )


def show_plan(
    writer: TextWriter, made: StackPlan, redact: Callable[[str], str], out: str | None = None
) -> None:
    """Write a plan of a stack."""
    show_changes(writer, made.changes, redact, nothing=NOTHING_TO_CHANGE)
    for note in made.notes:
        writer.line(note, style="yellow")
    show_verdict(writer, made.verdict)
    if out:
        writer.line(f"Saved to {out}.")


def _nothing_result(ended: AppliedStack) -> Result:
    made = ended.made

    def show(writer: TextWriter) -> None:
        show_changes(writer, made.changes, str, nothing=NOTHING_TO_CHANGE)
        _show_follow_up(writer, ended)

    return Result(
        document={**stack_document(made), "applied": None, **follow_up_document(ended)},
        show=show,
        status=ExitStatus.DONE if ended.is_well else ExitStatus.FAILED,
    )


def _applied_result(ended: AppliedStack, applied: Applied) -> Result:
    made = ended.made
    return Result(
        document={
            **stack_document(made),
            "applied": {"add": applied.add, "change": applied.change, "remove": applied.remove},
            **follow_up_document(ended),
        },
        show=lambda writer: _show_applied(writer, ended, applied),
        status=ExitStatus.DONE if ended.is_well else ExitStatus.FAILED,
    )


def follow_up_document(ended: AppliedStack) -> dict[str, Any]:
    """Return the JSON view of what came after an apply."""
    return {
        "guests": [
            {
                "address": up.key,
                "name": up.name,
                "vm_id": up.vm_id,
                "node": up.node,
                "addresses": up.addresses,
            }
            for up in ended.up
        ],
        "down": [describe(error) for error in ended.down],
        "inventory": {
            "where": ended.inventory,
            "error": None if ended.problem is None else describe(ended.problem),
        },
    }


def _show_applied(writer: TextWriter, ended: AppliedStack, applied: Applied) -> None:
    show_verdict(writer, ended.made.verdict)
    for note in ended.made.notes:
        writer.line(note, style="yellow")
    writer.line(
        f"Applied: {applied.add} created, {applied.change} changed, {applied.remove} destroyed.",
        style="green",
    )
    _show_follow_up(writer, ended)


def _show_follow_up(writer: TextWriter, ended: AppliedStack) -> None:
    if ended.up:
        rows = [
            (up.name, str(up.vm_id), up.node, ", ".join(up.addresses) or "-", f"{up.took_s:.1f} s")
            for up in sorted(ended.up, key=lambda up: up.name)
        ]
        writer.table(("guest", "vm id", "node", "addresses", "up after"), rows)
    for error in ended.down:
        writer.line(f"{error.detail} {error.remedy}", style="red")
    if ended.inventory is not None:
        writer.line(f"Inventory: {ended.inventory}")
    if ended.problem is not None:
        writer.line(f"{ended.problem.summary}: {ended.problem.detail}", style="red")
        for finding in ended.problem.diagnostics:
            writer.line(f"  {finding.detail} {finding.kind.remedy}", style="red")
