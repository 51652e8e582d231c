"""A state in a file, locked as the engine's `local` backend does."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING

from stackyard.base import files
from stackyard.base.errors import FileError
from stackyard.state.lockinfo import LockInfo, parse_lock_info
from stackyard.state.moving.base import BackendLockedError, is_marker, make_marker
from stackyard.state.refusals import BodyRefusedError

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.state.document import StateDocument

__all__ = ["FileLocation"]

_REPLACED = b'{"replaced": "This state was replaced while you waited for its lock. Run the command again."}\n'


class FileLocation:
    """A state file such as `terraform.tfstate`.

    The engine locks the file itself (a POSIX record lock) and tells of it in a hidden file beside it. A
    record lock ends as soon as its process closes any descriptor of the file, so the file is read through the
    descriptor that holds the lock.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._info_path = self._path.with_name(f".{self._path.name}.lock.info")
        self._locked: int | None = None

    @property
    def label(self) -> str:
        """What the place is called."""
        return f"file:{self._path}"

    def lock(self, info: LockInfo) -> None:
        """Lock the file; one that is not there is created, and is empty, as the engine does."""
        try:
            self._locked = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, files.PRIVATE)
        except OSError as err:
            raise FileError.from_os_error(err, "open", self._path) from err
        try:
            fcntl.lockf(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as err:
            self.close()
            holder = self._holder()
            who = f" by {holder.who} ({holder.operation}), lock {holder.id}" if holder is not None else ""
            raise BackendLockedError(f"{self._path} is locked{who}.") from err
        if not self._is_locked_file():
            self.close()
            raise BackendLockedError(f"{self._path} was replaced while it was locked.")
        files.replace_file(self._info_path, info.body())

    def unlock(self, info: LockInfo) -> None:
        """Let go of the file, and remove what tells of our lock."""
        holder = self._holder()
        if holder is not None and holder.id == info.id:
            self._info_path.unlink(missing_ok=True)
        if self._locked is not None:
            with contextlib.suppress(OSError):
                if self._is_locked_file() and os.fstat(self._locked).st_size == 0:
                    self._path.unlink()
        self.close()

    def read(self) -> bytes | None:
        """Return the state; None where the file is missing, empty, or represents a state that was moved."""
        try:
            if self._locked is not None and self._is_locked_file():
                data = _read_all(self._locked)
            else:
                data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as err:
            raise FileError.from_os_error(err, "read", self._path) from err
        return None if not data.strip() or is_marker(data) else data

    def write(self, data: bytes, info: LockInfo) -> None:
        """Replace the file in one step."""
        del info
        self.replace(data)

    def replace(self, data: bytes) -> None:
        """Replace the file in one step, with the rights that it had.

        An engine that waits for the lock has opened the old file, and would go on with what it holds. So the
        old file gets a content that engines refuse.
        """
        is_ours = self._is_locked_file()
        mode = self._path.stat().st_mode & 0o777 if is_ours else files.PRIVATE
        files.replace_file(self._path, data, mode=mode)
        if self._locked is not None and is_ours:
            os.ftruncate(self._locked, 0)
            os.pwrite(self._locked, _REPLACED, 0)

    def retire(self, data: bytes, document: StateDocument, destination: str, info: LockInfo) -> str | None:
        """Keep a copy beside the file, and put something in its place that the engine refuses to read.

        A file that is missing would be an empty state: the engine would create everything again.
        """
        del info
        backup = self._path.with_name(f"{self._path.name}.moved-{document.serial}")
        files.replace_file(backup, data)
        self.replace(make_marker(document, destination, backup.name))
        return f"out of use: engines refuse to read it; the old state is in {backup.name}"

    def close(self) -> None:
        """Let go of the file, and with it of the lock."""
        if self._locked is not None:
            os.close(self._locked)
            self._locked = None

    def _is_locked_file(self) -> bool:
        """Tell whether the file that we hold is still the one of that name; it is not once we replaced it."""
        if self._locked is None:
            return False
        try:
            ours, there = os.fstat(self._locked), os.stat(self._path)
        except FileNotFoundError:
            return False
        return (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)

    def _holder(self) -> LockInfo | None:
        try:
            return parse_lock_info(self._info_path.read_bytes())
        except (OSError, BodyRefusedError):
            return None


def _read_all(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    parts, place = [], 0
    while place < size:
        part = os.pread(descriptor, size - place, place)
        if not part:
            break
        parts.append(part)
        place += len(part)
    return b"".join(parts)
