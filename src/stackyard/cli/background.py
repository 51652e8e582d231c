"""A server of ours in the background: who holds its place, how to reach it, and its end.

A server holds its place for as long as its process lives. There it writes what it said when it was ready, for
its owner only, and its process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import files
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import BusyError, FileError, StackyardError
from stackyard.cli.pid_lock import PidLock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Background", "RecordFile", "ServerRecord", "ServerRunningError", "ServerUnstoppableError"]


class ServerRunningError(BusyError):
    """A server of ours runs already in the place that another one wants."""

    code = "E-SERVER-RUNNING"
    summary = "The server is already running"
    default_remedy = "Stop the one that runs, or give the new one another port."


class ServerUnstoppableError(StackyardError):
    """A server of ours was asked to stop and did not, and the system does not let us kill it."""

    code = "E-SERVER-UNSTOPPABLE"
    summary = "The server could not be stopped"
    default_remedy = "Stop the process as the user that it runs as."


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """A running server: its process, and what it said when it was ready."""

    pid: int
    ready: Mapping[str, Any] = field(repr=False)


class RecordFile:
    """What a server tells others of this user; it counts only while the server's process lives.

    Args:
        folder: What the process holds.
        name: The file in it.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / name
        self._lock = PidLock(folder)

    def claim(self) -> bool:
        """Hold the folder until this process ends; tell whether it was free.

        Raises:
            FileError: The folder cannot be written.
        """
        return self._lock.claim()

    def write(self, content: Mapping[str, Any]) -> None:
        """Tell this of the server, for its owner only."""
        files.replace_file(self._path, orjson.dumps(content))

    def withdraw(self) -> None:
        """Take back what was told: there is nobody to be reached."""
        self._path.unlink(missing_ok=True)

    def read(self) -> dict[str, Any] | None:
        """Return what the server that runs here tells; None where none runs or is ready.

        Raises:
            FileError: It cannot be read.
        """
        if not self._lock.is_held():
            return None
        try:
            return dict(parse_json(self._path.read_bytes()))
        except FileNotFoundError:
            return None
        except OSError as err:
            raise FileError.from_os_error(err, "read", self._path) from err

    async def stop(self, pid: int, *, grace_s: float, failure: type[StackyardError]) -> None:
        """Ask the server to stop, wait for its end, and kill it if that takes too long.

        Raises:
            StackyardError: The system does not let us: the given failure.
        """
        try:
            has_ended = await self._lock.end(pid, grace_s=grace_s)
        except PermissionError as err:
            raise failure(f"Process {pid} is not ours to stop.") from err
        if not has_ended:
            raise failure(f"Process {pid} still runs although it was killed.")


class Background:
    """The place of one server, whether it runs or not.

    Args:
        folder: Where it keeps what others have to know of it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pid_file = folder / "pid"
        self._record = RecordFile(folder, "ready.json")

    def claim(self, ready: Mapping[str, Any]) -> None:
        """Hold the place until this process ends, and tell others of this user how to reach the server.

        Raises:
            ServerRunningError: Another one holds it.
            FileError: The folder cannot be written.
        """
        if not self._record.claim():
            raise ServerRunningError(f"Another server holds {self.folder}.")
        files.replace_file(self.pid_file, f"{os.getpid()}\n".encode())
        self._record.write({"pid": os.getpid(), "ready": dict(ready)})

    def withdraw(self) -> None:
        """Take back what was told: nothing answers any more."""
        self._record.withdraw()
        self.pid_file.unlink(missing_ok=True)

    def read(self) -> ServerRecord | None:
        """Return the server that runs here, None if there is none."""
        found = self._record.read()
        return None if found is None else ServerRecord(pid=int(found["pid"]), ready=dict(found["ready"]))

    async def stop(self, record: ServerRecord, *, grace_s: float = 5.0) -> None:
        """Ask the server to stop, wait for its end, and kill it if that takes too long.

        Raises:
            ServerUnstoppableError: The system does not let us.
        """
        await self._record.stop(record.pid, grace_s=grace_s, failure=ServerUnstoppableError)
        self.withdraw()
