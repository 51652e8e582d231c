"""Applying exactly one plan of a stack, and writing down what was applied."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from typing import TYPE_CHECKING

from stackyard.base import events, process
from stackyard.engine import tofu
from stackyard.path.stacks.management import keep_stack_way_back
from stackyard.state.targets import TargetRecord

if TYPE_CHECKING:
    from stackyard.path.stacks.plan import StackPlan
    from stackyard.path.stacks.run import StackRun

__all__ = ["apply_stack_plan", "record_stack"]

_SETTING = "-var"


async def apply_stack_plan(run: StackRun, made: StackPlan) -> tofu.Applied:
    """Apply a plan, and nothing else.

    Raises:
        TofuError: Some changes failed, each reported; the others were applied and stored.
        PlanStaleError: The state has changed since; nothing was applied.
        StoreError: What is applied cannot be written down; nothing was applied.
        NoWayBackError: The network of a node would change, and it cannot be put back; nothing was applied.
        NetworkRestoredError: A node did not answer after a change of its network, which was put back.
        StackyardError: What the model prepares failed; nothing was applied.
    """
    target, model = run.resolved.target, run.resolved.model
    if model is not None and model.prepare is not None:
        await model.prepare(made.changes, run.emit)
    await record_stack(run, is_applied=False)
    passed, workdir = run.resolved.arguments, made.workdir
    if not passed and _SETTING in made.binding.arguments:
        # A saved plan, made with values that nobody gives again: those of the files may contradict it.
        workdir = dataclasses.replace(workdir, var_files=())
    # If we are killed, the engine must live long enough to store what it has made.
    with process.watch_ends(), events.step(run.emit, f"apply {target}", f"Applying {target}"):
        async with keep_stack_way_back(run, made.verdict):
            applied = await tofu.apply(
                workdir,
                made.path,
                parallelism=run.settings.parallelism,
                passed_on=passed.values,
                emit=run.emit,
            )
    if run.served is not None:
        await run.served.journal.confirm_all()
    return applied


async def record_stack(
    run: StackRun, *, is_applied: bool, commit: str = "", is_destroyed: bool = False
) -> None:
    """Write down that a stack is about to be applied, or was.

    Args:
        run: The stack.
        is_applied: Whether all of it is applied now, so that only later changes count as changes.
        commit: The commit that was applied; empty where the files are those of no commit.
        is_destroyed: Whether nothing of it is left.

    Raises:
        StoreError: It cannot be stored.
    """
    resolved, target = run.resolved, run.resolved.target

    def decide(before: TargetRecord | None) -> TargetRecord:
        known = before or TargetRecord(
            state=target.state_name, kind=target.kind, name=target.name, node=target.node
        )
        changed = dataclasses.replace(
            known,
            source=str(resolved.repository.root),
            path=resolved.stack.path,
            backend=resolved.backend.label,
            applied_at=time.time(),
            is_destroyed=is_destroyed,
        )
        return dataclasses.replace(changed, commit=commit) if is_applied else changed

    await asyncio.to_thread(run.states.targets.change, target.state_name, decide)
