"""The run of `stackyard destroy` on a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import UsageError
from stackyard.cli.runs.apply import nothing_result, open_saved_or_make, outcome_result
from stackyard.cli.runs.plan import plan_result
from stackyard.cli.runs.plan_options import allowances
from stackyard.cli.runs.plan_question import require_yes
from stackyard.cli.runs.target import ChosenTarget
from stackyard.cli.views.plan_document import plan_document
from stackyard.desired import Credentials
from stackyard.engine.tofu import PlanMode
from stackyard.path.apply import apply_plan
from stackyard.path.plan_request import PlanRequest
from stackyard.path.saved_plans import save_plan

if TYPE_CHECKING:
    from stackyard.cli.result import Result
    from stackyard.cli.session import Session
    from stackyard.path.plan import Plan
    from stackyard.path.run import Run

__all__ = ["run_destroy"]


async def run_destroy(session: Session, values: dict[str, Any]) -> Result:
    """Destroy what the target that the options name has."""
    chosen = ChosenTarget(session, values, by_state=True)
    _require_named(chosen)
    plan_request = PlanRequest(
        mode=PlanMode.DESTROY,
        allowances=allowances(values, everything=True),
        # An older name means what its own state has.
        takes_more=chosen.kind != chosen.resolved.target.kind,
    )
    async with (
        chosen.run("plan" if values["dry_run"] else "destroy", may_be_empty=True) as opened,
        open_saved_or_make(opened, plan_request, values["plan_file"]) as (run, made),
    ):
        if values["dry_run"]:
            return plan_result(run, made, out=_save(run, made, values["out"]))
        if made.is_nothing:
            return nothing_result(made)
        made.verdict.raise_refusal(f"The destruction of {run.resolved.target}")
        if not values["yes"] and not values["plan_file"]:
            await require_yes(session, run, made, f"Destroy everything in {run.resolved.target}?")
        outcome = await apply_plan(run, made, is_verified=False)
    return outcome_result(made, outcome)


def _save(run: Run, made: Plan, out: str | None) -> str | None:
    """Save a plan where that is asked for, and return what it is found by."""
    if not out:
        return None
    if not made.is_planned:
        made.verdict.raise_refusal(f"The destruction of {run.resolved.target}")
    return save_plan(run, made.saved(plan_document(made)), out)


def _require_named(chosen: ChosenTarget) -> None:
    """Refuse to destroy more than the name of a target says: an older one may be for a part of another."""
    target, desired = chosen.resolved.target, chosen.resolved.desired
    if chosen.kind != target.kind and (desired.objects or desired.credentials != Credentials()):
        raise UsageError(
            f"What `{chosen.kind}:` names is a part of {target}, which has more than that. To destroy "
            f"all of it: stackyard destroy {target}. To remove a part, take it out of the input and apply."
        )
