"""The run of `stackyard plan`, and what a human and a program see of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import ExitStatus
from stackyard.cli.result import Result
from stackyard.cli.runs.plan_options import make_plan_request
from stackyard.cli.runs.target import ChosenTarget
from stackyard.cli.views.changes import show_verdict
from stackyard.cli.views.handovers import show_handovers
from stackyard.cli.views.plan_document import describe_stored, plan_document
from stackyard.cli.views.planned_changes import show_changes
from stackyard.path.plan import Plan, make_plan
from stackyard.path.saved_plans import save_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.run import Run

__all__ = ["plan_result", "run_plan"]


async def run_plan(session: Session, values: dict[str, Any]) -> Result:
    """Plan the target that the options name."""
    out: str | None = values["out"]
    async with (
        ChosenTarget(session, values).run("plan") as run,
        make_plan(run, make_plan_request(values)) as made,
    ):
        if out and not made.is_planned:
            made.verdict.raise_refusal(str(run.resolved.target))
        if out:
            out = save_plan(run, made.saved(plan_document(made)), out)
    return plan_result(run, made, out=out or None, is_detailed=values["detailed_exitcode"])


def plan_result(run: Run, made: Plan, *, out: str | None = None, is_detailed: bool = False) -> Result:
    """Return what is shown of a plan that is not applied.

    Args:
        run: The target.
        made: The plan.
        out: Where it was saved.
        is_detailed: Whether the exit status tells that there are changes.
    """
    has_changes = bool(made.handovers) or not made.shown.is_empty
    status = ExitStatus.CHANGES if is_detailed and has_changes else ExitStatus.DONE
    return Result(
        document={**plan_document(made), "plan": out, **describe_stored(made, out)},
        show=lambda writer: _show(writer, made, out, run.workdir.redactor),
        status=ExitStatus.REFUSED if made.verdict.refused else status,
    )


def _show(writer: TextWriter, made: Plan, out: str | None, redact: Callable[[str], str]) -> None:
    show_handovers(writer, made.handovers)
    if made.is_planned:
        show_changes(writer, made.shown, redact)
    show_verdict(writer, made.verdict)
    if out:
        writer.line(f"Saved to {out}.")
