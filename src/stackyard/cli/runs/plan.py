"""The run of `stackyard plan`, and what a human and a program see of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import ExitStatus
from stackyard.cli.result import Result
from stackyard.cli.runs.target import ChosenTarget, allowances, list_recreated_guests
from stackyard.cli.views.changes import change_document, show_verdict, verdict_document
from stackyard.cli.views.handovers import handover_documents, show_handovers
from stackyard.cli.views.planned_changes import show_changes
from stackyard.engine.changes import Action
from stackyard.path.plan import Plan, PlanRequest, make_plan
from stackyard.path.saved_plans import IN_STORE, save_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.run import Run
    from stackyard.path.stacks.plan import StackPlan

# What a plan is made for, as far as a reader can compare it.
_BOUND_TO = ("input", "state", "code", "engine", "provider", "mode", "inputs")

__all__ = ["describe_stored", "make_plan_request", "plan_document", "plan_result", "run_plan"]


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


def make_plan_request(values: Mapping[str, Any]) -> PlanRequest:
    """Return what the options ask of a plan; options that a command does not have ask for nothing."""
    return PlanRequest(
        allowances=allowances(values),
        accept_renames=values.get("accept_renames", False),
        adopt=values.get("adopt", False),
        recreate=list_recreated_guests(values),
        are_names_first=True,
    )


def plan_document(made: Plan | StackPlan) -> dict[str, Any]:
    """Return the JSON view of a plan."""
    handovers = made.handovers if isinstance(made, Plan) else ()
    return {
        "target": made.binding.target,
        "state": made.binding.state_name,
        "has_changes": bool(handovers) or not made.shown.is_empty,
        # Only objects that moved from one target to another.
        **({"takes_over": handover_documents(handovers)} if handovers else {}),
        "changes": [
            change_document(change)
            for change in made.shown.planned
            if change.action is Action.READ or not change.is_nothing
        ],
        # Only own code has outputs that count as changes.
        **({"outputs": list(made.changes.outputs)} if made.changes.outputs else {}),
        "guard": verdict_document(made.verdict),
    }


def describe_stored(made: Plan | StackPlan, out: str | None) -> dict[str, Any]:
    """Return what a program sees besides of a plan that is saved in the store: what it was made for.

    Args:
        made: The plan.
        out: What it is found by.
    """
    if not out or not out.startswith(IN_STORE):
        return {}
    return {
        "bound_to": {name: getattr(made.binding, name) for name in _BOUND_TO},
        # What is no longer as it was applied, and will be as the input says.
        "overwrites": _list_overwritten(made),
    }


def _list_overwritten(made: Plan | StackPlan) -> list[dict[str, Any]]:
    """Return what somebody changed since the last apply, and the plan changes too."""
    planned = {one.address for one in made.changes.planned if not one.is_nothing}
    return [
        change_document(one)
        for one in made.changes.drifted
        if one.address in planned and (one.differences or one.after is None)
    ]


def _show(writer: TextWriter, made: Plan, out: str | None, redact: Callable[[str], str]) -> None:
    show_handovers(writer, made.handovers)
    if made.is_planned:
        show_changes(writer, made.shown, redact)
    show_verdict(writer, made.verdict)
    if out:
        writer.line(f"Saved to {out}.")
