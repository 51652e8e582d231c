"""A place that one process holds: it is free again when nothing of that process is left.

The holder has a lock on a file as long as it lives, so that a killed one is never taken for a running one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING

from stackyard.base import directories
from stackyard.base.errors import FileError
from stackyard.base.locks import hold_folder, open_file_lock

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PidLock"]


class PidLock:
    """A folder with a lock in it, whether someone holds it or not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = folder / "lock"

    def claim(self) -> bool:
        """Hold the place until this process ends; return whether it was free.

        Raises:
            FileError: The folder cannot be written.
        """
        directories.ensure_private(self._folder)
        lock = open_file_lock(self._lock)
        with hold_folder(self._folder):
            if lock.try_acquire():
                # Held by the descriptor, which nothing closes before the process ends.
                return True
        lock.close()
        return False

    def is_held(self) -> bool:
        """Return whether a process holds it.

        Raises:
            FileError: It cannot be looked at.
        """
        try:
            # One looks at a time: who looks takes the lock too, and must not keep out who wants it.
            with hold_folder(self._folder), open_file_lock(self._lock, must_exist=True) as lock:
                return not lock.try_acquire()
        except FileError as err:
            # It may go at any moment, with its holder.
            if isinstance(err.__cause__, FileNotFoundError):
                return False
            raise

    async def end(self, pid: int, *, grace_s: float) -> bool:
        """Ask the holder to stop, kill it if that takes too long, and return whether it has ended.

        Raises:
            PermissionError: The process is not ours to stop.
        """
        with open_file_lock(self._lock) as lock:
            # The lock is free when nothing of its holder is left.
            ended = asyncio.ensure_future(lock.wait())
            try:
                for number in (signal.SIGTERM, signal.SIGKILL):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                    done, _ = await asyncio.wait({ended}, timeout=grace_s)
                    if done:
                        return True
                return False
            finally:
                ended.cancel()
