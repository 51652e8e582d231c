"""Making an approved change of a state, under the lock of the stack: whole, or not.

The operation is done on a copy once more. What comes of it replaces the state in one write, and the former
state is kept. A run that was killed is repeated: what the state was to hold is stored before it is written.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import InvalidInputError, StackyardError
from stackyard.engine import statefile
from stackyard.path.plan_request import PlanRequest
from stackyard.path.stacks.backend import BackendKind
from stackyard.path.stacks.plan import make_stack_plan
from stackyard.path.stacks.state_change.approval import name_person, utc_now
from stackyard.path.stacks.state_change.content import digest_of, find_differences, version_of
from stackyard.path.stacks.state_change.document import plan_after_of
from stackyard.path.stacks.state_change.perform import perform_on_copy
from stackyard.path.stacks.state_change.records import ChangeRecords
from stackyard.state.moving.base import describe_lock
from stackyard.state.moving.file_location import FileLocation

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.path.stacks.run import StackRun
    from stackyard.path.stacks.state_change.document import PlanAfter, StateChange, StateVersion
    from stackyard.path.stacks.state_change.records import ChangeRecord

__all__ = ["AppliedChange", "OtherResultError", "StateMovedOnError", "apply_change"]


class StateMovedOnError(InvalidInputError):
    """The state is no longer the version that a change was proposed for; nothing was changed."""

    code = "E-STATE-CHANGE-STALE"
    summary = "The state has changed since the change was proposed"
    default_remedy = "Propose the change again, and let that be approved."


class OtherResultError(StackyardError):
    """The engine makes something else of the state than what was reviewed; nothing was changed."""

    code = "E-STATE-CHANGE-RESULT"
    summary = "The change would not be the one that was reviewed"
    default_remedy = "Propose the change again with this engine, and let that be approved."


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedChange:
    """A change that was made.

    Attributes:
        record: The change, with what the former state is found by.
        was_done: Whether an earlier run had made it.
        plan: What a plan says now.
        serial: The serial of the state now.
    """

    record: ChangeRecord
    was_done: bool
    plan: PlanAfter
    serial: int

    @property
    def is_as_reviewed(self) -> bool:
        """Whether the plan is the one of the document."""
        reviewed = self.record.change.plan
        return (self.plan.changes, self.plan.outputs) == (reviewed.changes, reviewed.outputs)


async def apply_change(run: StackRun, record: ChangeRecord) -> AppliedChange:
    """Make a change that was approved.

    Args:
        run: The stack, locked.
        record: The change.

    Raises:
        StateMovedOnError: The state is another version; nothing was changed.
        OtherResultError: The engine makes something else of it; nothing was changed.
        TofuError: The engine or the backend refuses it; nothing was changed.
        StoreError: The former state cannot be kept; nothing was changed.
    """
    records = ChangeRecords(run.settings.store, run.states.objects)
    data = await run.read_state()
    was_done = bool(record.expected) and digest_of(data) == record.expected
    if not was_done:
        if record.applied_at:
            raise StateMovedOnError(
                f"{record.applied_by} applied the change {record.change.id} at {record.applied_at}, and the "
                f"state of {run.resolved.target} has changed since."
            )
        require_version(run, record.change, data)
        async with perform_on_copy(run, data, record.change.operation) as (_, result):
            _require_result(record.change, data, result)
        kept = await asyncio.to_thread(_keep, run, records, record, data)
        record = await asyncio.to_thread(records.put, replace(record, expected=digest_of(result), kept=kept))
        with events.step(
            run.emit, f"state {record.change.id}", f"Writing the state of {run.resolved.target}"
        ):
            await _write(run, data, result)
        data = await run.read_state()
    if not record.applied_at:
        record = await asyncio.to_thread(
            records.put, replace(record, applied_by=name_person(), applied_at=utc_now())
        )
    async with make_stack_plan(run, PlanRequest()) as made:
        after = plan_after_of(made)
    return AppliedChange(record=record, was_done=was_done, plan=after, serial=version_of(data).serial)


def require_version(run: StackRun, change: StateChange, data: bytes | None) -> None:
    """Refuse a state that is not the one that a change was proposed for.

    Raises:
        StateMovedOnError: It is not.
    """
    now = version_of(data)
    if now != change.state:
        raise StateMovedOnError(
            f"The change {change.id} was proposed for {_describe(change.state)}; "
            f"the state of {run.resolved.target} has {_describe(now)}."
        )


def _describe(version: StateVersion) -> str:
    return f"serial {version.serial}, lineage {version.lineage or 'none'}, content {version.digest[:12]}"


def _require_result(change: StateChange, data: bytes | None, result: bytes) -> None:
    """Refuse a result that is not the one that was reviewed; an import is bound by its addresses."""
    differences = find_differences(data, result, change.operation)
    if differences != (change.moved, change.added, change.removed):
        raise OtherResultError(f"{change.operation} touches other addresses than the document names.")
    if change.result and digest_of(result) != change.result:
        raise OtherResultError(f"{change.operation} leads to another state than the document names.")


def _keep(run: StackRun, records: ChangeRecords, record: ChangeRecord, data: bytes | None) -> str:
    """Keep the state as it is now; return what it is found by. Our store has every version anyway."""
    if data is None:
        return ""
    if run.resolved.backend.kind is BackendKind.STORE:
        content = run.states.contents.read(run.resolved.target.state_name)
        return "" if content is None else str(content.version.number)
    records.keep_state(record, data)
    return record.change.id


async def _write(run: StackRun, data: bytes | None, result: bytes) -> None:
    """Replace the state in one write, with the lock that its backend has."""
    backend = run.resolved.backend
    if backend.kind is BackendKind.STORE and run.lock is not None:
        await asyncio.to_thread(run.lock.store, result)
    elif backend.path is not None:
        await asyncio.to_thread(_replace_file, run, backend.path, data, result)
    else:
        # It takes the lock of the backend, and refuses a state that somebody else wrote meanwhile.
        await statefile.state_push(run.workdir, result)


def _replace_file(run: StackRun, path: Path, data: bytes | None, result: bytes) -> None:
    place = FileLocation(path)
    info = describe_lock(place, "OperationTypeStateChange", "stackyard stack state apply")
    place.lock(info)
    try:
        if place.read() != data:
            raise StateMovedOnError(f"Somebody wrote the state of {run.resolved.target} just now.")
        place.write(result, info)
    finally:
        place.unlock(info)
