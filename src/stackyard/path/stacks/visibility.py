"""Not visible is not gone, for stacks: what a plan takes for gone must be shown to be gone.

Which cluster a stack works on, only its provider knows, once the engine has told it. So the engine plans
first, which changes nothing, and what it has not found is looked for after that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stackyard.engine.changes import Action
from stackyard.engine.tofu import PlanMode
from stackyard.guard.subjects import short_type
from stackyard.path.known_state import known_state_of
from stackyard.path.survey import survey
from stackyard.path.visibility import require_visible

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from stackyard.engine.changes import Changes
    from stackyard.path.stacks.run import StackRun

__all__ = ["require_visible_stack"]


async def require_visible_stack(run: StackRun, data: bytes | None, changes: Changes, mode: PlanMode) -> None:
    """Make sure that whatever of the state a plan takes for gone is gone.

    Only the built-in provider tells which cluster it works on.

    Args:
        run: The stack, planned.
        data: The state that was planned with.
        changes: What the plan does.
        mode: What the plan is for. Nothing is said of something that was to be destroyed and was not found,
            so that all of it is looked for.

    Raises:
        NotVisibleError: The token may not look, or a node does not answer; with every finding.
        ProxmoxError: The cluster does not answer.
    """
    client = None if run.served is None else run.served.client()
    if client is None:
        return
    known = known_state_of(data)
    missing = None if mode is PlanMode.DESTROY else _missing(changes)
    instances = {
        address: one
        for address, one in known.instances.items()
        if short_type(one.type) != one.type and (missing is None or address in missing)
    }
    if instances:
        known = replace(known, instances=instances)
        await require_visible(client, known, await survey(client, (), known.vm_ids))


def _missing(changes: Changes) -> AbstractSet[str]:
    """Return the addresses that a plan creates, or has not found."""
    created = {one.address for one in changes.planned if one.action is Action.CREATE}
    return created | {one.address for one in changes.drifted if one.after is None}
