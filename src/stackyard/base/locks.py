"""Locks between processes, on a file or a folder: the kernel takes them from a holder that dies.

They are `flock` locks, which belong to an open descriptor: closing the last copy of it gives the lock back.
The file of a lock stays when the lock is given back, because removing it would race with the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import threading
from typing import TYPE_CHECKING

from stackyard.base.errors import FileError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path
    from types import TracebackType

__all__ = ["FileLock", "exclusive", "hold_file", "hold_folder", "open_file_lock"]

_PRIVATE = 0o600
_NOTE_BYTES = 4096


class FileLock:
    """A lock on something that is open. It is given back when this is closed, or the process ends."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path

    def __enter__(self) -> FileLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def descriptor(self) -> int:
        """The open descriptor; a program that has it (`pass_fds`) holds the lock for as long as it runs."""
        return self._descriptor

    def try_acquire(self) -> bool:
        """Take the lock if no one holds it, and return whether we have it now.

        Raises:
            FileError: The file system cannot lock it.
        """
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as err:
            raise FileError.from_os_error(err, "lock", self._path) from err
        return True

    def acquire(self) -> None:
        """Take the lock, after its holder.

        Raises:
            FileError: The file system cannot lock it.
        """
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        except OSError as err:
            raise FileError.from_os_error(err, "lock", self._path) from err

    async def wait(self) -> None:
        """Take the lock without stopping the event loop; a wait that is cancelled leaves nothing behind.

        Raises:
            FileError: The file system cannot lock it.
        """
        loop = asyncio.get_running_loop()
        acquired: asyncio.Future[FileError | None] = loop.create_future()
        # A copy of the descriptor shares its lock. If no one waits any more when the thread gets it, the
        # thread's copy is the last one, and closing that gives the lock back.
        copy = FileLock(os.dup(self._descriptor), self._path)

        def settle(problem: FileError | None) -> None:
            if not acquired.done():
                acquired.set_result(problem)

        def block() -> None:
            problem: FileError | None = None
            with copy:
                try:
                    copy.acquire()
                except FileError as err:
                    problem = err
            # The loop is closed when the wait was cancelled and the program continued to its end.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, problem)

        # A daemon: the executor of the loop would keep the program alive until the lock is free.
        threading.Thread(target=block, name="file-lock", daemon=True).start()
        if problem := await acquired:
            raise problem

    def read_note(self) -> str:
        """Return what the holder wrote about itself, or nothing."""
        return os.pread(self._descriptor, _NOTE_BYTES, 0).decode(errors="replace").strip()

    def write_note(self, note: str) -> None:
        """Say in the file who holds it, for those who find it held; only the holder may."""
        # A courtesy: a full disk is reported where it hurts.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, note.encode()[:_NOTE_BYTES], 0)

    def close(self) -> None:
        """Give the lock back."""
        os.close(self._descriptor)


def open_file_lock(path: Path, *, must_exist: bool = False) -> FileLock:
    """Open a file to lock it, made for its owner alone where it is missing.

    Raises:
        FileError: It cannot be opened, or is missing and has to exist.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | (0 if must_exist else os.O_CREAT)
    try:
        return FileLock(os.open(path, flags, _PRIVATE), path)
    except OSError as err:
        raise FileError.from_os_error(err, "open the lock file", path) from err


@contextlib.contextmanager
def hold_file(path: Path) -> Iterator[None]:
    """Hold the lock of a file while the body runs, after its holder.

    Raises:
        FileError: The file cannot be opened or locked.
    """
    with open_file_lock(path) as lock:
        lock.acquire()
        yield


@contextlib.contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Let one process and thread at a time read, change and write what is in a folder.

    The lock is on the folder itself, so that nothing is made for it. It is for short changes: whoever comes
    meanwhile waits. It does not keep others from reading or replacing.

    Raises:
        FileError: The folder cannot be opened or locked.
    """
    try:
        lock = FileLock(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), folder)
    except OSError as err:
        raise FileError.from_os_error(err, "use the folder", folder) from err
    with lock:
        lock.acquire()
        yield


@contextlib.asynccontextmanager
async def exclusive(path: Path, note: str, on_wait: Callable[[str], None]) -> AsyncIterator[FileLock]:
    """Hold the lock of a file while the body runs, and say whom it waits for.

    Args:
        path: The lock file.
        note: Who holds it and for what; it is written into the file for those who wait.
        on_wait: Called with the note of the holder, once, if there is someone to wait for.

    Raises:
        FileError: The lock file cannot be used.
    """
    with open_file_lock(path) as lock:
        if not lock.try_acquire():
            on_wait(lock.read_note() or "another process")
            await lock.wait()
        lock.write_note(note)
        yield lock
