"""Proposing a change of a state: tried on a copy, planned with that copy, and written down."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError
from stackyard.path.plan_request import PlanRequest
from stackyard.path.stacks.plan import make_stack_plan
from stackyard.path.stacks.state_change.approval import name_person, utc_now
from stackyard.path.stacks.state_change.content import digest_of, find_differences, version_of
from stackyard.path.stacks.state_change.document import StateChange, plan_after_of
from stackyard.path.stacks.state_change.operation import StateVerb
from stackyard.path.stacks.state_change.perform import perform_on_copy
from stackyard.path.stacks.state_change.records import ChangeRecord, ChangeRecords

if TYPE_CHECKING:
    from stackyard.path.stacks.run import StackRun
    from stackyard.path.stacks.state_change.operation import StateOperation

__all__ = ["propose_change"]


async def propose_change(run: StackRun, operation: StateOperation, *, commit: str) -> ChangeRecord:
    """Try a change on a copy of the state, and store it as a proposal; the state stays as it is.

    Args:
        run: The stack.
        operation: What to do.
        commit: The commit of the checkout.

    Raises:
        UsageError: A word of it is a secret.
        NothingChangesError: Nothing would be different.
        TofuError: The engine refuses it.
        StoreError: The proposal cannot be stored.
    """
    if any(run.workdir.redactor(word) != word for word in operation.words):
        raise UsageError("A word of the change is a secret, which a document must not show.")
    target = run.resolved.target
    data = await run.read_state()
    async with (
        perform_on_copy(run, data, operation) as (copy, result),
        make_stack_plan(copy.run, PlanRequest()) as made,
    ):
        after = plan_after_of(made)
    moved, added, removed = find_differences(data, result, operation)
    change = StateChange(
        id=f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.urandom(3).hex()}",
        stack=target.name,
        operation=operation,
        state=version_of(data),
        # What an import finds may be different when it is made: only its addresses are bound.
        result="" if operation.verb is StateVerb.IMPORT else digest_of(result),
        moved=moved,
        added=added,
        removed=removed,
        plan=after,
        proposed_by=name_person(),
        proposed_at=utc_now(),
        commit=commit,
    )
    records = ChangeRecords(run.settings.store, run.states.objects)
    return await asyncio.to_thread(records.put, ChangeRecord(change=change, state=target.state_name))
