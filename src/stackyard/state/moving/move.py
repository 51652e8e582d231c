"""One move: lock, compare, copy, read back, put the source out of use; each step may be the last one."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.errors import StackyardError
from stackyard.state.document import StateDocument, read_document
from stackyard.state.moving.base import MoveRefusedError, NothingToMoveError, StateLocation, describe_lock
from stackyard.state.moving.journal import MoveEntry, MoveJournal, MovePhase

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.state.lockinfo import LockInfo

__all__ = ["Moved", "move_state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A state that is at its destination.

    Attributes:
        source: Where it was.
        destination: Where it is.
        lineage: Which state.
        serial: Which version, as both places had it.
        was_written: Whether it had to be written; False where it was there already.
        was_resumed: Whether an earlier, interrupted move was completed.
        outcome: What became of the source; None where it is as it was.
    """

    source: str
    destination: str
    lineage: str
    serial: int
    was_written: bool
    was_resumed: bool
    outcome: str | None


def move_state(
    source: StateLocation,
    destination: StateLocation,
    *,
    keep_source: bool = False,
    journal: MoveJournal | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Moved:
    """Take a state to another place; repeated after an interruption, it completes.

    Args:
        source: Where it is.
        destination: Where it is to be.
        keep_source: Whether to leave the source as it is.
        journal: Where to write down how far it has come; in the user's folder when absent.
        note: Told of each step, in words.

    Raises:
        NothingToMoveError: There is no state at the source.
        MoveRefusedError: The destination holds another lineage, a newer serial, or another content of the
            same serial.
        BusyError: One of both is locked, or the same move is under way.
        StackyardError: One of both cannot be used.
    """
    kept = journal or MoveJournal(source.label, destination.label)
    with kept.hold():
        return _Move(source, destination, kept, note, keep_source).run()


@dataclass(slots=True)
class _Move:
    """A move that is under way."""

    source: StateLocation
    destination: StateLocation
    journal: MoveJournal
    note: Callable[[str], None]
    keep_source: bool

    def run(self) -> Moved:
        entry = self.journal.read()
        is_repeat = entry.phase is MovePhase.WRITTEN or entry.source_lock is not None
        # Whoever made the earlier attempt is dead, or it would hold the journal: its locks are ours to free.
        self._unlock(entry)
        if self.source.read() is None:
            return self._complete(entry)
        entry = dataclasses.replace(
            entry, source_lock=_lock_info(self.source), destination_lock=_lock_info(self.destination)
        )
        self.journal.write(entry)
        moved = None
        try:
            moved = self._move_locked(entry)
        finally:
            if moved is None:
                # What ends the move matters more than a lock that is left: the journal knows of it.
                with contextlib.suppress(StackyardError):
                    self._unlock(entry)
        self._unlock(entry)
        return dataclasses.replace(moved, was_resumed=is_repeat)

    def _move_locked(self, entry: MoveEntry) -> Moved:
        """Move, with both places locked by us alone."""
        source_lock, destination_lock = _locks(entry)
        self.note(f"Locking {self.source.label}.")
        self.source.lock(source_lock)
        self.note(f"Locking {self.destination.label}.")
        self.destination.lock(destination_lock)
        data = self.source.read()
        if data is None:
            raise NothingToMoveError(f"There is no state at {self.source.label}.")
        document = read_document(data)
        is_moved_before = entry.phase is not MovePhase.BEGUN and entry.sha256 == _sha256(data)
        was_written = _needs_writing(self.destination, data, document, may_be_newer=is_moved_before)
        if was_written:
            self.note(f"Writing serial {document.serial} to {self.destination.label}.")
            self.destination.write(data, destination_lock)
            _verify(self.destination, data, document)
        entry = dataclasses.replace(
            entry,
            phase=MovePhase.WRITTEN,
            lineage=document.lineage,
            serial=document.serial,
            sha256=_sha256(data),
        )
        self.journal.write(entry)
        outcome = None
        if not self.keep_source:
            self.note(f"Putting {self.source.label} out of use.")
            outcome = self.source.retire(data, document, self.destination.label, source_lock)
        return self._end(entry, outcome, was_written=was_written)

    def _end(self, entry: MoveEntry, outcome: str | None, *, was_written: bool) -> Moved:
        done = dataclasses.replace(entry, phase=MovePhase.DONE, outcome=outcome)
        self.journal.write(done)
        return Moved(
            source=entry.source,
            destination=entry.destination,
            lineage=entry.lineage,
            serial=entry.serial,
            was_written=was_written,
            was_resumed=False,
            outcome=outcome,
        )

    def _complete(self, entry: MoveEntry) -> Moved:
        """Say that a move has been made, once the destination proves it."""
        if entry.phase is MovePhase.BEGUN:
            raise NothingToMoveError(f"There is no state at {self.source.label}.")
        there = self.destination.read()
        document = None if there is None else read_document(there)
        if document is None or document.lineage != entry.lineage or document.serial < entry.serial:
            raise MoveRefusedError(
                f"{self.source.label} was put out of use after it was moved with serial {entry.serial}, but"
                f" {self.destination.label} no longer holds it.",
                remedy="Take the copy of the old state that was kept at the source.",
            )
        moved = self._end(entry, entry.outcome or "out of use", was_written=False)
        return dataclasses.replace(moved, was_resumed=entry.phase is MovePhase.WRITTEN)

    def _unlock(self, entry: MoveEntry) -> None:
        """Let go of both places, and only then forget the locks: anyone who repeats the command must know."""
        if entry.source_lock is None or entry.destination_lock is None:
            return
        try:
            self.destination.unlock(entry.destination_lock)
        finally:
            self.source.unlock(entry.source_lock)
        known = self.journal.read()
        self.journal.write(dataclasses.replace(known, source_lock=None, destination_lock=None))


def _locks(entry: MoveEntry) -> tuple[LockInfo, LockInfo]:
    if entry.source_lock is None or entry.destination_lock is None:
        raise MoveRefusedError("The journal of the move names no locks. This is a bug in stackyard.")
    return entry.source_lock, entry.destination_lock


def _lock_info(place: StateLocation) -> LockInfo:
    return describe_lock(
        place, "stackyard state move", "A move; repeat it on the same machine if it was interrupted."
    )


def _needs_writing(
    destination: StateLocation, data: bytes, document: StateDocument, *, may_be_newer: bool
) -> bool:
    """Return whether the destination lacks the state, or stop where it holds something else.

    Args:
        destination: Where.
        data: The state.
        document: The same, read.
        may_be_newer: Whether this very state was written there before, and others may have gone on from it.
    """
    there = destination.read()
    if there is None:
        return True
    found = read_document(there)
    if found.lineage != document.lineage:
        raise MoveRefusedError(
            f"{destination.label} holds another state, of lineage {found.lineage}; this one is of lineage"
            f" {document.lineage}."
        )
    if found.serial > document.serial:
        if may_be_newer:
            return False
        raise MoveRefusedError(
            f"{destination.label} holds serial {found.serial}, which is newer than serial {document.serial}."
        )
    if found.serial == document.serial and not _is_same(there, data):
        raise MoveRefusedError(
            f"{destination.label} holds another content with the same serial {found.serial}."
        )
    return found.serial < document.serial


def _verify(destination: StateLocation, data: bytes, document: StateDocument) -> None:
    there = destination.read()
    found = None if there is None else read_document(there)
    if (
        there is None
        or found is None
        or (found.lineage, found.serial) != (document.lineage, document.serial)
        or not _is_same(there, data)
    ):
        raise MoveRefusedError(
            f"{destination.label} does not give back what was written to it.",
            remedy="Nothing was changed at the source; look at the destination.",
        )


def _is_same(one: bytes, other: bytes) -> bool:
    """Return whether two contents are the same; some backends write the same JSON in other bytes."""
    return one == other or bool(parse_json(one, LARGE) == parse_json(other, LARGE))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
