"""Applying one stack, or destroying it: plan, guard, question, apply, and what comes after."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.cli.runs.plan_question import require_yes
from stackyard.cli.views.plan_document import plan_document
from stackyard.engine.tofu import PlanMode
from stackyard.guard.destruction import ALLOW_DESTROY
from stackyard.path.saved_plans import open_plan, save_plan
from stackyard.path.stacks.apply import apply_stack_plan, record_stack
from stackyard.path.stacks.files import StackFiles
from stackyard.path.stacks.plan import load_stack_plan, make_stack_plan
from stackyard.path.stacks.publish import is_published, publish_stack
from stackyard.path.stacks.verify import verify_stack
from stackyard.state.inside import EncryptedStateError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.cli.runs.stacks.chosen import ChosenStack, StackCommand
    from stackyard.engine.tofu import Applied
    from stackyard.path.plan_request import PlanRequest
    from stackyard.path.stacks.plan import StackPlan
    from stackyard.path.stacks.run import StackRun
    from stackyard.path.verify import GuestUp

__all__ = ["AppliedStack", "apply_stack"]


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
        saved: What a plan that was only made is found by, where it was to be saved.
    """

    run: StackRun
    made: StackPlan
    applied: Applied | None = None
    up: tuple[GuestUp, ...] = ()
    down: tuple[StackyardError, ...] = ()
    inventory: str | None = None
    problem: StackyardError | None = None
    saved: str | None = None

    @property
    def is_destroying(self) -> bool:
        """Whether everything in the stack was to be destroyed."""
        return self.made.binding.mode == PlanMode.DESTROY.value

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
    is_dry = values["dry_run"]
    verb = "plan" if is_dry else "destroy" if is_destroying else "apply"
    async with chosen.run(verb, is_locked=not is_dry) as opened:
        # Before the plan: what is committed while it is made is not what it is made of.
        commit = "" if is_dry or is_destroying else await _require_clean(command, opened)
        async with _open_plan(opened, plan_request, values.get("plan_file")) as (run, made):
            if is_acknowledged:
                made = replace(made, verdict=made.verdict.permit_all(ALLOW_DESTROY))
            ended = AppliedStack(run=run, made=made)
            if is_dry:
                return replace(ended, saved=_save(ended, values.get("out")))
            target = str(run.resolved.target)
            made.verdict.raise_refusal(f"The destruction of {target}" if is_destroying else target)
            if not made.is_nothing:
                await _ask(command, ended, asking)
            if not made.is_nothing or run.resolved.is_reencrypted():
                ended = replace(ended, applied=await apply_stack_plan(run, made))
            await _record(ended, commit)
            if values.get("no_verify"):
                return ended
            ended = await _follow_up(ended)
            chosen.note_failures([*ended.down, *([] if ended.problem is None else [ended.problem])])
            return ended


def _save(ended: AppliedStack, out: str | None) -> str | None:
    """Save a plan where that is asked for, and return what it is found by."""
    if not out:
        return None
    shown = {**plan_document(ended.made), "notes": list(ended.made.notes)}
    return save_plan(ended.run, ended.made.saved(shown), out)


async def _ask(command: StackCommand, ended: AppliedStack, asking: asyncio.Lock | None) -> None:
    """Ask at a terminal, unless the user said yes or saved the plan before.

    Raises:
        NotConfirmedError: The answer was no; nothing was changed.
    """
    if command.values.get("plan_file") or command.values["yes"]:
        return
    target = ended.run.resolved.target
    question = f"Destroy everything in {target}?" if ended.is_destroying else f"Apply this plan to {target}?"
    async with asking or contextlib.nullcontext():
        await require_yes(command.session, ended.run, ended.made, question)


async def _record(ended: AppliedStack, commit: str) -> None:
    """Write down what was applied; a plan for a part of the stack leaves the rest to be applied."""
    is_whole = not ended.made.notes
    if ended.applied is not None or not ended.is_destroying:
        await record_stack(
            ended.run,
            is_applied=is_whole,
            commit=commit,
            is_destroyed=ended.is_destroying and is_whole,
        )


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


async def _require_clean(command: StackCommand, run: StackRun) -> str:
    """Return the commit that is applied; refuse files that are those of none, unless the user permits it.

    Raises:
        DirtyCheckoutError: Some are not committed.
        OutdatedCheckoutError: Some were changed on the default branch.
    """
    resolved = run.resolved
    files = StackFiles(resolved.repository, resolved.stack)
    checkout = await command.checkout_for(resolved.repository, files)
    if not command.values.get("is_dirty_allowed") and not command.source.is_generated:
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
