"""The runs of `stackyard stack adopt` and `stackyard stack leave`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.stacks.chosen import StackCommand
from stackyard.path.stacks.adoption import adopt_state, leave_store
from stackyard.path.stacks.apply import record_stack
from stackyard.path.stacks.backend import BackendKind

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.stacks.adoption import MovedState

__all__ = ["run_adopt", "run_leave"]


async def run_adopt(session: Session, values: dict[str, Any]) -> Result:
    """Move the state of a stack into our store."""
    command = StackCommand(session, values)
    chosen = await command.choose(values["target"])
    async with chosen.run("adopt", is_locked=True) as run:
        moved = await adopt_state(run)
        if moved.resources:
            await record_stack(run, is_applied=False)
    return _result(str(chosen.resolved.target), moved)


async def run_leave(session: Session, values: dict[str, Any]) -> Result:
    """Move the state of a stack out of our store, beside its code."""
    command = StackCommand(session, values)
    chosen = await command.choose(values["target"])
    if chosen.resolved.backend.kind is not BackendKind.STORE:
        where = chosen.resolved.backend.label
        raise UsageError(f"{chosen.resolved.target} does not use the store: its state is in {where}.")
    async with chosen.run("leave", is_locked=True) as run:
        moved = await leave_store(run)
    return _result(str(chosen.resolved.target), moved)


def _result(target: str, moved: MovedState) -> Result:
    def show(writer: TextWriter) -> None:
        if moved.before == moved.now:
            writer.line(f"The state of {target} is in {moved.now} already.")
            return
        if moved.resources is None:
            writer.line(f"{target} has no state yet.")
        else:
            writer.line(
                f"Moved the state of {target} ({moved.resources} resources): {moved.before} -> {moved.now}"
            )
        writer.line(f"Changed the backend in {moved.changed}: commit it.")
        if moved.kept:
            writer.line(f"The previous copy stays in {moved.kept}.")
        writer.line(f"Check it: stackyard plan {target}")

    return Result(
        document={
            "target": target,
            "resources": moved.resources,
            "before": moved.before,
            "now": moved.now,
            "changed": str(moved.changed),
            "kept": moved.kept or None,
        },
        show=show,
    )
