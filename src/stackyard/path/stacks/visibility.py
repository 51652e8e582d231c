"""Not visible is not gone, for stacks: what a plan takes for gone must be shown to be gone.

Which cluster a stack works on, only its provider knows, once the engine has told it. So the engine plans
first, which changes nothing, and what it has not found is looked for after that. A plan that failed because
Proxmox refused a read is explained in the same way.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.engine.changes import Action
from stackyard.engine.tofu import PlanMode
from stackyard.guard.subjects import short_type
from stackyard.path.known_state import known_state_of
from stackyard.path.survey import survey
from stackyard.path.visibility import require_visible

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from stackyard.engine.changes import Changes
    from stackyard.engine.failures import TofuError
    from stackyard.path.stacks.run import StackRun

__all__ = ["explain_refused_plan", "require_visible_stack"]

# How Proxmox refuses what a token has no privilege for.
_REFUSED = "Permission check failed"


async def explain_refused_plan(run: StackRun, data: bytes | None, error: TofuError) -> None:
    """Look whether a plan failed because the token may not see what the state has; return if it did not.

    Raises:
        NotVisibleError: It did; with every finding.
    """
    if not any(_REFUSED in finding.detail for finding in error.findings):
        return
    # Whatever keeps us from looking says less than the engine did.
    with contextlib.suppress(proxmox.ProxmoxError, proxmox.ProxmoxUnreachableError):
        await _require(run, data, None)


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
    await _require(run, data, None if mode is PlanMode.DESTROY else _missing(changes))


async def _require(run: StackRun, data: bytes | None, missing: AbstractSet[str] | None) -> None:
    """Look for the objects at some addresses of a state, or for all of them."""
    client = None if run.served is None else run.served.client()
    if client is None:
        return
    known = known_state_of(data)
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
