"""A server of ours in the background: who holds its place, how to reach it, and its end.

A server holds a lock on a file for as long as its process lives, so that a killed one is never taken for a
running one. Beside the lock it writes what it said when it was ready, for its owner only, and its process.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard import directories, files
from stackyard.errors import BusyError, FileError, StackyardError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
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
        self._lock = folder / "lock"

    def claim(self, ready: Mapping[str, Any]) -> None:
        """Hold the place until this process ends, and tell others of this user how to reach the server.

        Raises:
            ServerRunningError: Another one holds it.
            FileError: The folder cannot be written.
        """
        directories.ensure_private(self.folder)
        descriptor = self._open_lock()
        with self._door():
            if not _try_lock(descriptor):
                os.close(descriptor)
                raise ServerRunningError(f"Another server holds {self.folder}.")
        files.replace_file(self.pid_file, f"{os.getpid()}\n".encode())
        files.replace_file(self._record, orjson.dumps({"pid": os.getpid(), "ready": dict(ready)}))

    def withdraw(self) -> None:
        """Take back what was told: there is nobody to be reached."""
        self._record.unlink(missing_ok=True)
        self.pid_file.unlink(missing_ok=True)

    def read(self) -> Record | None:
        """Return the server that runs here, None if there is none."""
        if not self._is_held():
            return None
        try:
            content = orjson.loads(self._record.read_bytes())
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
        ended = self._watch_end()
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(record.pid, number)
            except ProcessLookupError:
                pass
            except PermissionError as err:
                raise ServerUnstoppableError(f"Process {record.pid} is not ours to stop.") from err
            done, _ = await asyncio.wait({ended}, timeout=grace_s)
            if done:
                self.withdraw()
                return
        raise ServerUnstoppableError(f"Process {record.pid} still runs although it was killed.")

    def _watch_end(self) -> asyncio.Future[None]:
        """Return a future that is done when nobody holds the place: the lock is free when its holder ends."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        descriptor = self._open_lock()

        def wait() -> None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            finally:
                os.close(descriptor)
            # The loop is closed when nobody was patient enough to wait for this.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_finish, ended)

        # A daemon: a wait that was given up must not keep our process from ending.
        threading.Thread(target=wait, name="server-end", daemon=True).start()
        return ended

    def _is_held(self) -> bool:
        try:
            with self._door():
                descriptor = os.open(self._lock, os.O_RDWR)
                try:
                    return not _try_lock(descriptor)
                finally:
                    os.close(descriptor)
        except FileNotFoundError:
            return False
        except OSError as err:
            raise FileError.from_os_error(err, "open", self._lock) from err

    @contextlib.contextmanager
    def _door(self) -> Iterator[None]:
        """Let one in at a time: who only looks takes the lock too, and must not keep out who wants it."""
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _open_lock(self) -> int:
        try:
            return os.open(self._lock, os.O_RDWR | os.O_CREAT, files.PRIVATE)
        except OSError as err:
            raise FileError.from_os_error(err, "open", self._lock) from err


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _finish(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)
