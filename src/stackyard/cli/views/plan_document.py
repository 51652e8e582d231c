"""The JSON view of a plan, of targets of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.cli.views.changes import change_document, verdict_document
from stackyard.cli.views.handovers import handover_documents
from stackyard.engine.changes import Action
from stackyard.path.saved_plans import IN_STORE

if TYPE_CHECKING:
    from stackyard.path.plan import Plan
    from stackyard.path.stacks.plan import StackPlan

__all__ = ["describe_stored", "plan_document"]

# What a plan is made for, as far as a reader can compare it.
_BOUND_TO = ("input", "state", "code", "engine", "provider", "mode", "inputs")


def plan_document(made: Plan | StackPlan) -> dict[str, Any]:
    """Return the JSON view of a plan."""
    handovers = made.handovers
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
