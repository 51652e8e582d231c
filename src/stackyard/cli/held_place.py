"""A place that one process holds: it is free again when nothing of that process is left.

The holder has a lock on a file as long as it lives, so that a killed one is never taken for a running one.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import threading
from typing import TYPE_CHECKING

from stackyard import directories, files
from stackyard.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["HeldPlace"]


class HeldPlace:
    """A folder with a lock in it, whether somebody holds it or not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = folder / "lock"

    def claim(self) -> bool:
        """Hold the place until this process ends; tell whether it was free.

        Raises:
            FileError: The folder cannot be written.
        """
        directories.ensure_private(self._folder)
        descriptor = self._open_lock()
        with self._door():
            if _try_lock(descriptor):
                return True
            os.close(descriptor)
            return False

    def is_held(self) -> bool:
        """Tell whether a process holds it.

        Raises:
            FileError: It cannot be looked at.
        """
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

    async def end(self, pid: int, *, grace_s: float) -> bool:
        """Ask the holder to stop, kill it if that takes too long, and tell whether it has ended.

        Raises:
            PermissionError: The process is not ours to stop.
        """
        ended = self._watch_end()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            done, _ = await asyncio.wait({ended}, timeout=grace_s)
            if done:
                return True
        return False

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
        threading.Thread(target=wait, name="place-end", daemon=True).start()
        return ended

    @contextlib.contextmanager
    def _door(self) -> Iterator[None]:
        """Let one in at a time: who only looks takes the lock too, and must not keep out who wants it."""
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
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
