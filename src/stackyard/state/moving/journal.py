"""The journal of a move: what was begun, so that a repeated command completes it."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import directories, files, locks
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.errors import BusyError, InvalidInputError, Location
from stackyard.state.lockinfo import LockInfo, parse_lock_info
from stackyard.state.refusals import BodyRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["JournalDamagedError", "MoveEntry", "MoveJournal", "MovePhase", "MoveUnderWayError"]

_FORMAT = 1


class MoveUnderWayError(BusyError):
    """The same state is being moved to the same place by another process right now."""

    code = "E-STATE-MOVE-BUSY"
    summary = "The same move is under way"
    default_remedy = "Wait for the other command to end."


class JournalDamagedError(InvalidInputError):
    """The journal of a move cannot be read."""

    code = "E-STATE-MOVE-JOURNAL"
    summary = "The journal of a move cannot be read"
    default_remedy = (
        "Look which of both places holds the state, remove the journal, and take away the locks of the move."
    )


class MovePhase(enum.StrEnum):
    """How far a move has come."""

    BEGUN = "begun"
    WRITTEN = "written"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveEntry:
    """What is known of a move.

    Attributes:
        source: Where from.
        destination: Where to.
        phase: How far it has come.
        source_lock: The lock of the source that may be held.
        destination_lock: The lock of the destination that may be held.
        lineage: The state that was written; empty before.
        serial: Its serial.
        sha256: Its hash.
        outcome: What became of the source.
    """

    source: str
    destination: str
    phase: MovePhase = MovePhase.BEGUN
    source_lock: LockInfo | None = None
    destination_lock: LockInfo | None = None
    lineage: str = ""
    serial: int = -1
    sha256: str = ""
    outcome: str | None = None


class MoveJournal:
    """The journal of one move, in a file of the user.

    Args:
        source: Where from.
        destination: Where to.
        folder: Where journals are kept.
    """

    def __init__(self, source: str, destination: str, *, folder: Path | None = None) -> None:
        base = folder or directories.state_folder() / "moves"
        name = hashlib.sha256(f"{source}\n{destination}".encode()).hexdigest()[:32]
        self._new = MoveEntry(source=source, destination=destination)
        self.path = base / f"{name}.json"

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other processes from making the same move; a process that dies lets go.

        Raises:
            MoveUnderWayError: One makes it already.
        """
        directories.ensure_private(self.path.parent)
        with locks.open_file_lock(self.path.with_suffix(".lock")) as lock:
            if not lock.try_acquire():
                new = self._new
                raise MoveUnderWayError(f"Another process moves {new.source} to {new.destination}.")
            yield

    def read(self) -> MoveEntry:
        """Return what was written down, or a new entry.

        Raises:
            JournalDamagedError: It is not valid.
        """
        if not self.path.exists():
            return self._new
        text = files.read_text(self.path)
        try:
            found: dict[str, Any] = parse_json(text)
            if found.pop("format") != _FORMAT:
                raise ValueError("its format is not known")
            for key in ("source_lock", "destination_lock"):
                found[key] = None if found[key] is None else parse_lock_info(found[key].encode())
            return MoveEntry(**{**found, "phase": MovePhase(found["phase"])})
        except (JsonError, BodyRefusedError, KeyError, TypeError, ValueError) as err:
            raise JournalDamagedError(
                f"{self.path} is damaged: {err}.", where=Location(str(self.path))
            ) from err

    def write(self, entry: MoveEntry) -> None:
        """Write down how far the move has come; it is on disk when this returns."""
        found: dict[str, Any] = {
            field.name: getattr(entry, field.name) for field in dataclasses.fields(entry)
        }
        for key in ("source_lock", "destination_lock"):
            found[key] = None if found[key] is None else found[key].raw
        files.replace_file(self.path, orjson.dumps({"format": _FORMAT, **found}))
