"""A lock between processes that costs nothing to wait for and that the kernel takes from a dead holder."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import threading
from typing import TYPE_CHECKING

from stackyard.errors import FileError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

__all__ = ["exclusive"]

_NOTE_BYTES = 500


@contextlib.asynccontextmanager
async def exclusive(path: Path, note: str, on_wait: Callable[[str], None]) -> AsyncIterator[None]:
    """Hold a lock file while the body runs; the file stays, because removing it would race with the next one.

    Args:
        path: The lock file.
        note: Who holds it and for what; it is written into the file for those who wait.
        on_wait: Called with the note of the holder, once, if there is somebody to wait for.

    Raises:
        FileError: The lock file cannot be used.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as err:
        raise FileError.from_os_error(err, "open the lock file", path) from err
    try:
        await _acquire(descriptor, path, on_wait)
        # The note is a courtesy: a full disk is reported where it hurts.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, note.encode()[:_NOTE_BYTES], 0)
        yield
    finally:
        os.close(descriptor)


async def _acquire(descriptor: int, path: Path, on_wait: Callable[[str], None]) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        on_wait(os.pread(descriptor, _NOTE_BYTES, 0).decode(errors="replace") or "another process")
        await _wait(descriptor, path)
    except OSError as err:
        raise FileError.from_os_error(err, "lock", path) from err


async def _wait(descriptor: int, path: Path) -> None:
    """Wait for the lock in a thread, which may be left behind when the wait is cancelled."""
    loop = asyncio.get_running_loop()
    acquired: asyncio.Future[OSError | None] = loop.create_future()
    # A copy of the descriptor shares its lock. If nobody waits any more when the thread gets it, the thread's
    # copy is the last one, and closing that gives the lock back.
    copy = os.dup(descriptor)

    def settle(problem: OSError | None) -> None:
        if not acquired.done():
            acquired.set_result(problem)

    def block() -> None:
        problem: OSError | None = None
        try:
            fcntl.flock(copy, fcntl.LOCK_EX)
        except OSError as err:
            problem = err
        finally:
            os.close(copy)
        # The loop is closed when the wait was cancelled and the program went on to its end.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, problem)

    # A daemon: the executor of the loop would keep the program alive until the lock is free.
    threading.Thread(target=block, name="stackyard-lock", daemon=True).start()
    if problem := await acquired:
        raise FileError.from_os_error(problem, "lock", path) from problem
