"""The JSON view of a plan, of targets of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.cli.views.changes import change_document, verdict_document
from stackyard.cli.views.handovers import handover_documents
from stackyard.engine.changes import Action

if TYPE_CHECKING:
    from stackyard.path.plan import Plan
    from stackyard.path.stacks.plan import StackPlan

__all__ = ["plan_document"]


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
