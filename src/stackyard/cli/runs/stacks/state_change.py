"""The runs of `stackyard stack state`: propose a change of a state, approve it, apply it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base import files
from stackyard.base.errors import ExitStatus
from stackyard.cli.result import Result
from stackyard.cli.runs.stacks.chosen import StackCommand
from stackyard.cli.views.state_change import show_applied, show_change
from stackyard.path.stacks.source import make_target, split_workspace
from stackyard.path.stacks.state_change.apply import apply_change
from stackyard.path.stacks.state_change.approval import (
    NotApprovedError,
    OtherDocumentError,
    approve,
    find_merged,
    name_person,
    require_second_person,
    utc_now,
)
from stackyard.path.stacks.state_change.document import read_change_file
from stackyard.path.stacks.state_change.operation import make_operation
from stackyard.path.stacks.state_change.propose import propose_change
from stackyard.path.stacks.state_change.records import (
    Approval,
    ChangeRecord,
    ChangeRecords,
    ChangeUnknownError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.cli.session import Session
    from stackyard.path.stacks.state_change.document import StateChange
    from stackyard.path.stacks.state_change.operation import StateVerb

__all__ = [
    "run_state_apply",
    "run_state_approve",
    "run_state_discard",
    "run_state_list",
    "run_state_propose",
    "run_state_show",
]

_ENDINGS = (".yaml", ".yml", ".json")
_READABLE = 0o644


async def run_state_propose(
    session: Session, values: dict[str, Any], verb: StateVerb, words: tuple[str, ...]
) -> Result:
    """Propose a change, in the store and, where the options name one, in a file."""
    operation = make_operation(verb, words)
    command = StackCommand(session, values)
    chosen = await command.choose(values["target"])
    checkout = await command.checkout()
    commit = f"{checkout.commit}-dirty" if checkout.changed else checkout.commit
    async with chosen.run("propose") as run:
        record = await propose_change(run, operation, commit=commit)
        chosen.note({"state_change": record.change.id, "operation": str(operation)})
    out: str | None = values["out"]
    if out:
        data = record.change.encode(is_json=out.endswith(".json"))
        files.replace_file(Path(out), data, mode=_READABLE)
    return Result(
        document={**record.document(), "file": out},
        show=lambda writer: show_change(writer, record, out),
        status=ExitStatus.DONE,
    )


async def run_state_apply(session: Session, values: dict[str, Any]) -> Result:
    """Make a change that was approved, by its id or its file."""
    command = StackCommand(session, values)
    record = await _find_approved(command, values["change"])
    chosen = await command.choose(record.change.stack)
    async with chosen.run("state", is_locked=True) as run:
        # What was stored while another run was waited for counts.
        records = ChangeRecords(run.settings.store, run.states.objects)
        stored = await asyncio.to_thread(records.get, record.state, record.change.id)
        if stored is not None:
            _require_same(stored, record.change)
            record = replace(stored, approval=record.approval)
        require_second_person(record, is_protected=_is_protected(command, record))
        done = await apply_change(run, record)
        chosen.note({"state_change": record.change.id, "operation": str(record.change.operation)})
    return Result(
        document={
            **done.record.document(),
            "was_done": done.was_done,
            "plan_now": done.plan.document(),
            "is_as_reviewed": done.is_as_reviewed,
        },
        show=lambda writer: show_applied(writer, done),
        status=ExitStatus.DONE if done.is_as_reviewed else ExitStatus.FAILED,
    )


async def _find_approved(command: StackCommand, named: str) -> ChangeRecord:
    """Return a change that may be made.

    Raises:
        NotApprovedError: No one approved it, and the default branch does not have its file.
        OtherDocumentError: The store has another change of this id.
    """
    if not _is_file(named):
        record = await asyncio.to_thread(_find, command, named)
        if not record.is_approved:
            raise NotApprovedError(f"No one approved the change {record.change.id}.")
        return record
    path = Path(named)
    record, data = await asyncio.to_thread(_read_file, command, path)
    if record.is_approved:
        return record
    branch = await find_merged(path, data, command.source.repository.tree)
    change = record.change
    merged = Approval(by=f"branch {branch}", at=utc_now(), document=change.digest)
    return replace(record, approval=merged)


def _read_file(command: StackCommand, path: Path) -> tuple[ChangeRecord, bytes]:
    """Return the change of a file, with what the store knows of it, and the bytes of the file.

    Raises:
        OtherDocumentError: The store has another change of this id.
    """
    change, data = read_change_file(path)
    # It is a name until a stack of the repository has it.
    name, workspace = split_workspace(change.stack)
    command.source.repository.find(name)
    state = make_target(name, workspace).state_name
    with _open(command) as records:
        stored = records.get(state, change.id)
    if stored is not None:
        _require_same(stored, change)
    return stored or ChangeRecord(change=change, state=state), data


def _require_same(stored: ChangeRecord, change: StateChange) -> None:
    if stored.change != change:
        raise OtherDocumentError(f"The store has another change {change.id} of stack:{change.stack}.")


def run_state_approve(session: Session, named: str, *, is_alone: bool) -> Result:
    """Approve a change."""
    command = _command(session)
    record = _read_file(command, Path(named))[0] if _is_file(named) else _find(command, named)
    if record.tag is None:
        # Who proposed it is then what its file says, which anybody writes.
        raise ChangeUnknownError(
            f"The store has no proposed change {record.change.id}: nothing here shows who proposed it.",
            remedy="Approve it where it was proposed, or merge its file by a review.",
        )
    with _open(command) as records:
        is_protected = _is_protected(command, record)
        record = records.put(approve(record, name_person(), is_alone=is_alone, is_protected=is_protected))
    text = f"Approved {record.change.id}. To make the change: stackyard stack state apply {record.change.id}"
    return Result(document=record.document(), show=lambda writer: writer.line(text, style="green"))


def run_state_list(session: Session) -> Result:
    """List the proposed changes."""
    with _open(_command(session)) as records:
        found = list(records.list())
    rows = [
        (one.change.id, one.change.stack, str(one.change.operation), one.change.proposed_by, one.status)
        for one in found
    ]
    return Result(
        document={"changes": [one.document() for one in found]},
        show=lambda writer: (
            writer.table(("change", "stack", "operation", "proposed by", "status"), rows)
            if rows
            else writer.line("There are no changes of states.")
        ),
    )


def run_state_show(session: Session, named: str) -> Result:
    """Show a proposed change, of the store or of a file."""
    command = _command(session)
    record = _read_file(command, Path(named))[0] if _is_file(named) else _find(command, named)
    return Result(document=record.document(), show=lambda writer: show_change(writer, record, None))


def run_state_discard(session: Session, named: tuple[str, ...]) -> Result:
    """Remove changes from the store."""
    with _open(_command(session)) as records:
        found = [records.find(one) for one in named]
        for record in found:
            records.discard(record)
    ids = [record.change.id for record in found]
    return Result(document={"discarded": ids}, show=lambda writer: writer.line(f"Removed: {', '.join(ids)}."))


def _is_protected(command: StackCommand, record: ChangeRecord) -> bool:
    return command.source.repository.find(split_workspace(record.change.stack)[0]).settings.protected


def _is_file(named: str) -> bool:
    return "/" in named or named.endswith(_ENDINGS)


def _command(session: Session) -> StackCommand:
    return StackCommand(session, {})


def _find(command: StackCommand, named: str) -> ChangeRecord:
    with _open(command) as records:
        return records.find(named)


@contextlib.contextmanager
def _open(command: StackCommand) -> Iterator[ChangeRecords]:
    with contextlib.closing(command.store.open()) as objects:
        yield ChangeRecords(command.store, objects)
