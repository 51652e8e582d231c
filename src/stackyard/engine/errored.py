"""A state that could not be stored: found, checked, and offered for a push.

When its backend refuses the new state, the engine leaves it in `errored.tfstate` and says to push it by hand.
Until then another apply would start from the old state and forget what was made, so `apply` refuses. The file
is moved away once it is stored, and never deleted.
"""

from __future__ import annotations

import contextlib
import enum
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories, files
from stackyard.base.errors import FileError, Location, StackyardError
from stackyard.engine import statefile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.engine.workdir import Workdir

__all__ = [
    "ERRORED_STATE",
    "ErroredState",
    "ErroredStateError",
    "ErroredVerdict",
    "find_errored_state",
    "find_errored_state_in",
    "keep_errored_state",
    "move_away",
    "push_errored_state",
    "refuse_errored_state",
    "set_aside_errored_state",
]

# Where the engine leaves a state that its backend did not take: in the folder it ran in.
ERRORED_STATE = "errored.tfstate"


class ErroredVerdict(enum.StrEnum):
    """How a left-over state relates to the stored one."""

    NEWER = "newer"
    STORED = "stored"
    OLDER = "older"
    DIVERGED = "diverged"
    OTHER_LINEAGE = "other-lineage"
    ENCRYPTED = "encrypted"
    UNREADABLE = "unreadable"

    @property
    def pushable(self) -> bool:
        """Whether a push is right."""
        return self in {ErroredVerdict.NEWER, ErroredVerdict.STORED}


_REASONS = {
    ErroredVerdict.NEWER: "It is newer than the stored state: push it.",
    ErroredVerdict.STORED: "It is the stored state already: it can be moved away.",
    ErroredVerdict.OLDER: "The stored state is newer, stored by another run since.",
    ErroredVerdict.DIVERGED: "The stored state has the same serial and other content: another run stored it.",
    ErroredVerdict.OTHER_LINEAGE: "It belongs to another state.",
    ErroredVerdict.ENCRYPTED: "It is encrypted, and the engine pushes plain states alone.",
    ErroredVerdict.UNREADABLE: "It is no state file: empty, cut off or something else.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErroredState:
    """A left-over state.

    Attributes:
        path: Where it is.
        verdict: How it relates to the stored one.
        snapshot: What it is, when it can be read.
        stored: The stored state, when there is one.
    """

    path: Path
    verdict: ErroredVerdict
    snapshot: statefile.StateSnapshot | None
    stored: statefile.StateSnapshot | None

    @property
    def explanation(self) -> str:
        """What it is and what can be done with it, for a person."""
        what = f"{self.path} holds a state that could not be stored"
        if self.snapshot is not None:
            what += f" (serial {self.snapshot.serial}, {self.snapshot.resources} resources)"
        return f"{what}. {_REASONS[self.verdict]}"


class ErroredStateError(StackyardError):
    """The state of an earlier apply could not be stored and still waits in errored.tfstate."""

    code = "E-STATE-ERRORED"
    summary = "The state of an earlier apply is not stored yet"
    default_remedy = (
        "`stackyard state recover` compares the left-over state with the stored one and takes one of them."
    )


async def find_errored_state(workdir: Workdir) -> ErroredState | None:
    """Look for a left-over state, and compare it with the stored one.

    Raises:
        TofuError: The stored state cannot be read.
        FileError: The left-over file cannot be read.
    """
    path = _find_errored_state(workdir)
    if path is None:
        return None
    data = _read(path)
    try:
        snapshot = statefile.read_snapshot(data)
    except ValueError:
        return ErroredState(path=path, verdict=ErroredVerdict.UNREADABLE, snapshot=None, stored=None)
    stored = await statefile.state_pull(workdir)
    return ErroredState(path=path, verdict=_compare(snapshot, stored), snapshot=snapshot, stored=stored)


def _find_errored_state(workdir: Workdir) -> Path | None:
    return find_errored_state_in(workdir.folder, workdir.data_folder)


def find_errored_state_in(*folders: Path) -> Path | None:
    """Return the first left-over state in some folders.

    Raises:
        FileError: A folder may not be looked at.
    """
    # The engine writes beside the configuration; where it could not, `keep_errored_state` wrote elsewhere.
    for path in (folder / ERRORED_STATE for folder in folders):
        try:
            if path.is_file():
                return path
        except OSError as err:
            raise FileError.from_os_error(err, "look for", path) from err
    return None


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        # It holds secrets, and the engine makes it for everyone to read.
        os.chmod(path, files.PRIVATE)
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    return data


def _compare(snapshot: statefile.StateSnapshot, stored: statefile.StateSnapshot | None) -> ErroredVerdict:
    if snapshot.encrypted:
        return ErroredVerdict.ENCRYPTED
    if stored is None:
        return ErroredVerdict.NEWER
    if snapshot.lineage != stored.lineage:
        return ErroredVerdict.OTHER_LINEAGE
    if snapshot.serial == stored.serial:
        return ErroredVerdict.STORED if snapshot.holds_the_same(stored) else ErroredVerdict.DIVERGED
    return ErroredVerdict.NEWER if snapshot.serial > stored.serial else ErroredVerdict.OLDER


async def push_errored_state(workdir: Workdir, errored: ErroredState) -> Path:
    """Store a left-over state and move its file away; return where it is now.

    The engine checks lineage and serial once more, under the lock.

    Raises:
        ErroredStateError: It is not newer than the stored state; nothing was changed.
        TofuError: The engine refused it or could not store it; the file stays.
    """
    if not errored.verdict.pushable or errored.snapshot is None:
        raise ErroredStateError(errored.explanation, where=Location(str(errored.path)))
    if errored.verdict is ErroredVerdict.NEWER:
        await statefile.state_push(workdir, errored.snapshot.data)
    return move_away(_move_to_data(workdir, errored.path), "stored")


def set_aside_errored_state(errored: ErroredState) -> Path:
    """Move a left-over state away without storing it; return where it is now.

    Raises:
        FileError: It cannot be moved.
    """
    return move_away(errored.path, "set-aside")


def move_away(path: Path, ending: str) -> Path:
    """Rename a left-over state to a name that is free, and return that.

    Raises:
        FileError: It cannot be moved.
    """
    # A link fails where a rename would replace what has the name.
    number = 1
    try:
        while True:
            target = path.with_name(f"{path.name}.{ending}-{number}")
            try:
                os.link(path, target)
            except FileExistsError:
                number += 1
                continue
            os.unlink(path)
            files.sync_folder(path.parent)
            return target
    except OSError as err:
        raise FileError.from_os_error(err, "move", path) from err


def refuse_errored_state(workdir: Workdir) -> None:
    """Stop where a left-over state waits.

    Raises:
        ErroredStateError: There is one.
        FileError: The folder may not be looked at.
    """
    path = _find_errored_state(workdir)
    if path is not None:
        raise ErroredStateError(
            f"{path} holds a state that could not be stored; to apply now would forget what it records.",
            where=Location(str(path)),
        )


def keep_errored_state(workdir: Workdir, dumped: bytes | None) -> Path | None:
    """Make sure that a state that could not be stored is in a private file; return which.

    Args:
        workdir: Where the engine ran.
        dumped: The state that the engine printed because it could not write the file either.
    """
    path = None
    # It runs while another error is on its way, which must not be lost over this one.
    with contextlib.suppress(FileError):
        path = _find_errored_state(workdir)
    if path is not None:
        with contextlib.suppress(OSError):
            os.chmod(path, files.PRIVATE)
        return _move_to_data(workdir, path)
    if dumped is None:
        return None
    for folder in _folders_to_keep_in(workdir):
        with contextlib.suppress(FileError):
            directories.ensure_private(folder)
            files.replace_file(folder / ERRORED_STATE, dumped)
            return folder / ERRORED_STATE
    return None


def _move_to_data(workdir: Workdir, path: Path) -> Path:
    """Move a left-over state out of a folder that is the user's own; return where it is now.

    There it could be committed, and the next run in another workspace would take it for its own.
    """
    if workdir.data_dir is None or path.parent != workdir.folder:
        return path
    target = workdir.data_folder / ERRORED_STATE
    with contextlib.suppress(FileError, OSError):
        directories.ensure_private(target.parent)
        # They may be on two file systems; the first is removed when the second is whole.
        files.replace_file(target, path.read_bytes())
        path.unlink()
        return target
    return path


def _folders_to_keep_in(workdir: Workdir) -> Iterator[Path]:
    if workdir.data_dir is None:
        yield workdir.folder
    yield workdir.data_folder
    # Made only when the others refused; it is private, and it stays.
    with contextlib.suppress(OSError):
        yield Path(tempfile.mkdtemp(prefix="stackyard-state-"))
