"""One end of a move, and what can go wrong there."""

from __future__ import annotations

import datetime
import getpass
import os
import socket
import uuid
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.errors import BusyError, InvalidInputError, StackyardError, UnreachableError
from stackyard.state.lockinfo import LockInfo, make_lock_info

if TYPE_CHECKING:
    from stackyard.state.document import StateDocument

__all__ = [
    "BackendError",
    "BackendLockedError",
    "MoveRefusedError",
    "NothingToMoveError",
    "StateLocation",
    "describe_lock",
    "is_marker",
    "make_marker",
]

_MARKER = "stackyard_moved_to"


class MoveRefusedError(StackyardError):
    """The destination holds another state, or a newer one than the source; nothing was written."""

    code = "E-STATE-MOVE"
    summary = "The state was not moved"
    default_remedy = "Compare both with `stackyard state diff`, and choose another destination."


class NothingToMoveError(InvalidInputError):
    """There is no state at the source of a move."""

    code = "E-STATE-MOVE-EMPTY"
    summary = "There is no state to move"
    default_remedy = "Check the source; a state that was moved before is at its destination."


class BackendLockedError(BusyError):
    """Someone holds the lock of the source or the destination of a move."""

    code = "E-STATE-MOVE-LOCKED"
    summary = "The source or destination of a move is locked"
    default_remedy = "Wait for the run that holds the lock, then repeat the command."


class BackendError(UnreachableError):
    """The source or destination of a move does not answer as a state backend does."""

    code = "E-STATE-MOVE-PLACE"
    summary = "The source or destination of a move cannot be used"
    default_remedy = "Check the address and the credentials, then repeat the command: it continues."


class StateLocation(Protocol):
    """Where a state is, or is to be. Every method raises a `StackyardError` when the place cannot be used."""

    @property
    def label(self) -> str:
        """What the place is called, always the same and without a secret."""

    def lock(self, info: LockInfo) -> None:
        """Keep everyone else from writing.

        Raises:
            BusyError: Someone else has it.
        """

    def unlock(self, info: LockInfo) -> None:
        """Let others write again; nothing happens where the lock is not ours."""

    def read(self) -> bytes | None:
        """Return the state; None where there is none, or none any more."""

    def write(self, data: bytes, info: LockInfo) -> None:
        """Store the state, durably, under the lock that we hold."""

    def retire(self, data: bytes, document: StateDocument, destination: str, info: LockInfo) -> str | None:
        """Put the place out of use for good, so that no one continues with what is there.

        Args:
            data: What was moved.
            document: The same, read.
            destination: Where it is now.
            info: The lock that we hold.

        Returns:
            What became of it, for a person; None where the place cannot be put out of use.
        """

    def close(self) -> None:
        """Let go of connections and files."""


def describe_lock(place: StateLocation, operation: str, info: str) -> LockInfo:
    """Return a new lock for a place, as an engine would describe it.

    Args:
        place: What is locked.
        operation: What for, in a few words.
        info: What else there is to say to whoever finds the lock.
    """
    now = datetime.datetime.now(datetime.UTC)
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    made = LockInfo(
        id=str(uuid.uuid4()),
        operation=operation,
        info=info,
        who=f"{user}@{socket.gethostname()}",
        version="stackyard",
        created=now.isoformat().replace("+00:00", "Z"),
        path=place.label.removeprefix("s3://").partition("?")[0],
    )
    return make_lock_info(made)


def make_marker(document: StateDocument, destination: str, backup: str) -> bytes:
    """Return what replaces a state that was moved: no engine takes it for a state, nor for none."""
    found = {
        _MARKER: destination,
        "moved_serial": document.serial,
        "moved_lineage": document.lineage,
        "copy_of_the_old_state": backup,
        "what_now": "Set the new backend in the configuration, then remove this file and run init.",
    }
    return orjson.dumps(found, option=orjson.OPT_INDENT_2) + b"\n"


def is_marker(data: bytes) -> bool:
    """Return whether this stands where a state was."""
    if _MARKER.encode() not in data[:200]:
        return False
    try:
        found: Any = parse_json(data, LARGE)
    except JsonError:
        return False
    return isinstance(found, dict) and _MARKER in found
