"""The runs of plan, apply, destroy and drift on one stack."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import describe
from stackyard.base.errors import ExitStatus, StackyardError, UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.apply import require_yes
from stackyard.cli.runs.plan import make_plan_request, plan_document
from stackyard.cli.runs.stacks.chosen import StackCommand
from stackyard.cli.runs.stacks.selection import find_removed
from stackyard.cli.runs.target import allowances
from stackyard.cli.views.changes import change_document, show_verdict
from stackyard.cli.views.planned_changes import show_changes
from stackyard.engine.changes import Action, Changes
from stackyard.engine.tofu import PlanMode
from stackyard.guard.destruction import ALLOW_DESTROY
from stackyard.path.plan import PlanRequest
from stackyard.path.saved_plans import open_plan, save_plan
from stackyard.path.stacks.apply import apply_stack_plan, record_stack
from stackyard.path.stacks.files import StackFiles
from stackyard.path.stacks.plan import load_stack_plan, make_stack_plan
from stackyard.path.stacks.publish import is_published, publish_stack
from stackyard.path.stacks.verify import verify_stack
from stackyard.state.inside import EncryptedStateError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from stackyard.cli.runs.stacks.chosen import ChosenStack
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.engine.tofu import Applied
    from stackyard.path.stacks.plan import StackPlan
    from stackyard.path.stacks.run import StackRun
    from stackyard.path.verify import GuestUp

__all__ = [
    "AppliedStack",
    "apply_stack",
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
    gone = find_removed(command.source, command.store, values["target"])
    if gone is not None:
        from stackyard.cli.runs.stacks.removed import destroy_removed  # lazy: it needs this module

        return _make_result(command, await destroy_removed(command, gone))
    plan_request = PlanRequest(mode=PlanMode.DESTROY, allowances=allowances(values, everything=True))
    return _make_result(
        command, await apply_stack(command, await command.choose(values["target"]), plan_request)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedStack:
    """What became of a stack that was to be applied or destroyed.

    Attributes:
        run: The stack.
        made: Its plan.
        applied: What was changed; None where there was nothing to change, or only the plan was wanted.
        up: Guests that were seen to be up.
        down: What is wrong with guests that were not.
        inventory: The file with the inventory, where there are hosts.
        problem: Why the inventory was not written.
    """

    run: StackRun
    made: StackPlan
    applied: Applied | None = None
    up: tuple[GuestUp, ...] = ()
    down: tuple[StackyardError, ...] = ()
    inventory: str | None = None
    problem: StackyardError | None = None

    @property
    def is_well(self) -> bool:
        """Whether everything that was changed is up and in the inventory."""
        return not self.down and self.problem is None


async def apply_stack(
    command: StackCommand,
    chosen: ChosenStack,
    plan_request: PlanRequest,
    *,
    asking: asyncio.Lock | None = None,
    is_acknowledged: bool = False,
) -> AppliedStack:
    """Plan a stack, ask, and apply exactly that plan.

    Args:
        command: The command.
        chosen: The stack.
        plan_request: What is asked of the plan.
        asking: Held while a person is asked.
        is_acknowledged: Whether the user named the stack as one that may be destroyed as a whole.

    Raises:
        GuardRefusedError: The plan is refused; nothing was changed.
        DirtyCheckoutError: The files are those of no commit.
        StackyardError: The engine, the store or the backend cannot be used.
    """
    values, is_destroying = command.values, plan_request.mode is PlanMode.DESTROY
    verb = "plan" if values["dry_run"] else "destroy" if is_destroying else "apply"
    async with (
        chosen.run(verb, is_locked=not values["dry_run"]) as opened,
        _open_plan(opened, plan_request, values.get("plan_file")) as (run, made),
    ):
        if values["dry_run"]:
            return AppliedStack(run=run, made=made)
        target = run.resolved.target
        if is_acknowledged:
            made = replace(made, verdict=made.verdict.permit_all(ALLOW_DESTROY))
        made.verdict.raise_refusal(f"The destruction of {target}" if is_destroying else str(target))
        commit = "" if is_destroying else await _require_clean(command, run)
        applied = None
        if not made.is_nothing:
            if not values.get("plan_file") and not values["yes"]:
                what = (
                    f"Destroy everything in {target}?" if is_destroying else f"Apply this plan to {target}?"
                )
                async with asking or contextlib.nullcontext():
                    await require_yes(command.session, run, made, what)
            applied = await apply_stack_plan(run, made)
        is_whole = not made.notes
        if applied is not None or not is_destroying:
            await record_stack(
                run, is_applied=is_whole, commit=commit, is_destroyed=is_destroying and is_whole
            )
        ended = AppliedStack(run=run, made=made, applied=applied)
        if not values.get("no_verify"):
            ended = await _follow_up(ended)
            chosen.note_failures([*ended.down, *([] if ended.problem is None else [ended.problem])])
        return ended


async def _follow_up(ended: AppliedStack) -> AppliedStack:
    """Wait for the guests that were touched, and write the inventory.

    A run before may have ended between its apply and that: where nothing is applied, it is done unless the
    inventory is as the state has it.
    """
    run = ended.run
    base, target = run.settings.base, run.resolved.target
    if ended.applied is None and is_published(base, target, await run.read_state()):
        return ended
    up: tuple[GuestUp, ...] = ()
    down: tuple[StackyardError, ...] = ()
    if ended.made.binding.mode == PlanMode.NORMAL.value:
        up, down = await verify_stack(run, ended.made)
    if down:
        # The inventory before stays: it names only guests that were seen to be up.
        return replace(ended, up=up, down=down)
    try:
        seen = {one.key: one.addresses for one in up}
        path = publish_stack(base, target, await run.read_state(), seen)
    except EncryptedStateError:
        # Only the engine can look into it.
        return replace(ended, up=up, down=down)
    except StackyardError as err:
        # What was applied stays applied; a report that fails is a failure of its own.
        return replace(ended, up=up, down=down, problem=err)
    return replace(ended, up=up, down=down, inventory=None if path is None else str(path))


def _make_result(command: StackCommand, ended: AppliedStack) -> Result:
    if command.values["dry_run"]:
        return _plan_result(ended.run, ended.made)
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
                "behind `--`."
            )


async def _require_clean(command: StackCommand, run: StackRun) -> str:
    """Return the commit that is applied; refuse files that are those of none, unless the user permits it.

    Raises:
        DirtyCheckoutError: Some are not committed.
        OutdatedCheckoutError: Some were changed on the default branch.
    """
    checkout = await command.checkout()
    resolved = run.resolved
    files = StackFiles(resolved.repository, resolved.stack)
    if not command.values.get("is_dirty_allowed"):
        checkout.require_clean(str(resolved.target), files)
    return checkout.commit_of(files)


@contextlib.asynccontextmanager
async def _open_plan(
    run: StackRun, plan_request: PlanRequest, plan_file: str | None
) -> AsyncIterator[tuple[StackRun, StackPlan]]:
    """Give the plan to apply, and the run with the key that opens it."""
    if plan_file is None:
        async with make_stack_plan(run, plan_request) as made:
            yield run, made
        return
    saved = await asyncio.to_thread(open_plan, run, plan_file)
    fitting = run if saved.key is None else run.with_key(saved.key)
    async with load_stack_plan(fitting, saved, plan_request) as made:
        yield fitting, made


def stack_document(made: StackPlan) -> dict[str, Any]:
    """Return the JSON view of a plan of a stack."""
    return {**plan_document(made), "notes": list(made.notes), "inputs": made.binding.inputs or None}


def _plan_result(
    run: StackRun, made: StackPlan, *, out: str | None = None, is_detailed: bool = False
) -> Result:
    status = ExitStatus.CHANGES if is_detailed and not made.changes.is_empty else ExitStatus.DONE
    return Result(
        document={**stack_document(made), "plan": out},
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
