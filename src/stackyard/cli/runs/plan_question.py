"""The question whether a plan is to be applied."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stackyard.cli.confirmation import NotConfirmedError, can_ask, confirm
from stackyard.cli.views.changes import show_verdict
from stackyard.cli.views.handovers import show_handovers
from stackyard.cli.views.planned_changes import list_destroyed, show_changes

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.plan import Plan
    from stackyard.path.run import Run
    from stackyard.path.stacks.plan import StackPlan
    from stackyard.path.stacks.run import StackRun

__all__ = ["require_yes"]

# How many things a question names that are destroyed.
_MOST_LOST = 12


async def require_yes(session: Session, run: Run | StackRun, made: Plan | StackPlan, question: str) -> None:
    """Show a plan at a terminal and ask for a yes; where there is no terminal, nobody is asked.

    Raises:
        NotConfirmedError: The answer was no; nothing was changed.
    """
    if not can_ask(session):
        return

    def show(writer: TextWriter) -> None:
        show_handovers(writer, made.handovers)
        show_changes(writer, made.shown, run.workdir.redactor)
        # What is permitted is what the question names.
        show_verdict(writer, replace(made.verdict, permitted=()))
        writer.line()
        lost = list_destroyed(made.shown)
        for text in lost[:_MOST_LOST]:
            writer.line(f"This {text}.", style="red")
        if len(lost) > _MOST_LOST:
            writer.line(f"And {len(lost) - _MOST_LOST} more are destroyed or replaced.", style="red")

    if not await confirm(session, question, show):
        raise NotConfirmedError(f"The plan of {run.resolved.target} was not applied. Nothing was changed.")
