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

__all__ = ["Background", "Record", "ServerRunningError", "ServerUnstoppableError"]


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
class Record:
    """A running server: its process, and what it said when it was ready."""

    pid: int
    ready: Mapping[str, Any] = field(repr=False)


class Background:
    """The place of one server, whether it runs or not.

    Args:
        folder: Where it keeps what others have to know of it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pid_file = folder / "pid"
        self._record = folder / "ready.json"
        self._place = PidLock(folder)

    def claim(self, ready: Mapping[str, Any]) -> None:
        """Hold the place until this process ends, and tell others of this user how to reach the server.

        Raises:
            ServerRunningError: Another one holds it.
            FileError: The folder cannot be written.
        """
        if not self._place.claim():
            raise ServerRunningError(f"Another server holds {self.folder}.")
        files.replace_file(self.pid_file, f"{os.getpid()}\n".encode())
        files.replace_file(self._record, orjson.dumps({"pid": os.getpid(), "ready": dict(ready)}))

    def withdraw(self) -> None:
        """Take back what was told: there is nobody to be reached."""
        self._record.unlink(missing_ok=True)
        self.pid_file.unlink(missing_ok=True)

    def read(self) -> Record | None:
        """Return the server that runs here, None if there is none."""
        if not self._place.is_held():
            return None
        try:
            content = parse_json(self._record.read_bytes())
            return Record(pid=int(content["pid"]), ready=dict(content["ready"]))
        except FileNotFoundError:
            return None
        except OSError as err:
            raise FileError.from_os_error(err, "read", self._record) from err

    async def stop(self, record: Record, *, grace_s: float = 5.0) -> None:
        """Ask the server to stop, wait for its end, and kill it if that takes too long.

        Raises:
            ServerUnstoppableError: The system does not let us.
        """
        try:
            has_ended = await self._place.end(record.pid, grace_s=grace_s)
        except PermissionError as err:
            raise ServerUnstoppableError(f"Process {record.pid} is not ours to stop.") from err
        if not has_ended:
            raise ServerUnstoppableError(f"Process {record.pid} still runs although it was killed.")
        self.withdraw()
