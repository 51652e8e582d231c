"""The run of `stackyard plan`, and what a human and a program see of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import ExitStatus
from stackyard.cli.result import Result
from stackyard.cli.runs.target import ChosenTarget, allowances, list_recreated_guests
from stackyard.cli.views.changes import change_document, show_changes, show_verdict, verdict_document
from stackyard.engine.changes import Action
from stackyard.path.plan import PlanRequest, make_plan
from stackyard.path.saved_plans import save_plan

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.plan import Plan

__all__ = ["plan_document", "run_plan"]


async def run_plan(session: Session, values: dict[str, Any]) -> Result:
    """Plan the target that the options name."""
    plan_request = PlanRequest(
        allowances=allowances(values),
        accept_renames=values["accept_renames"],
        adopt=values["adopt"],
        recreate=list_recreated_guests(values),
    )
    out: str | None = values["out"]
    async with ChosenTarget(session, values).run("plan") as run, make_plan(run, plan_request) as made:
        if out:
            out = save_plan(run, made.saved(plan_document(made)), out)
        has_changes = not made.changes.is_empty
    status = ExitStatus.CHANGES if has_changes and values["detailed_exitcode"] else ExitStatus.DONE
    if made.verdict.refused:
        status = ExitStatus.REFUSED
    return Result(
        document={**plan_document(made), "plan": out or None},
        show=lambda writer: _show(writer, made, out),
        status=status,
    )


def plan_document(made: Plan) -> dict[str, Any]:
    """Return the JSON view of a plan."""
    return {
        "target": made.binding.target,
        "state": made.binding.state_name,
        "has_changes": not made.changes.is_empty,
        "changes": [
            change_document(change)
            for change in made.changes.planned
            if change.action is Action.READ or not change.is_nothing
        ],
        "guard": verdict_document(made.verdict),
    }


def _show(writer: TextWriter, made: Plan, out: str | None) -> None:
    show_changes(writer, made.changes)
    show_verdict(writer, made.verdict)
    if out:
        writer.line(f"Saved to {out}.")
