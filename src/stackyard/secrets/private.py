"""A file in clear that does not outlive its use: for an editor, and for nothing else.

It lies in a folder that only its owner can enter, in memory where the system has a place for that. A process
of its own waits for our end, however that comes, and wipes the folder then; should that be killed too, the
next use finds what was left, because no one holds its lock, and wipes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories, process
from stackyard.base.errors import FileError
from stackyard.base.locks import FileLock, open_file_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PrivateFolder", "private_folder", "wait_and_wipe", "wipe", "wipe_leftovers"]

_PREFIX = "stackyard-edit-"
_LOCK = ".lock"
_LOG = ".log"
_READY = "ready"
_READY_TIMEOUT_S = 60.0
_IN_MEMORY = ("tmpfs", "ramfs")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateFolder:
    """A folder for one plain text.

    Attributes:
        path: Where it is.
        is_in_memory: Whether it is gone with the power.
    """

    path: Path
    is_in_memory: bool


@contextlib.contextmanager
def private_folder() -> Iterator[PrivateFolder]:
    """Make a folder that is gone when the block ends, and also if we are killed in it.

    Raises:
        FileError: No folder can be created.
    """
    base, is_in_memory = _base()
    wipe_leftovers(base)
    folder, lock = _create_locked_folder(base)
    try:
        _start_watcher(folder)
        yield PrivateFolder(path=folder, is_in_memory=is_in_memory)
    finally:
        wipe(folder)
        lock.close()


def _create_locked_folder(base: Path) -> tuple[Path, FileLock]:
    """Make a folder and take its lock, before it has the name by which others look for leftovers."""
    try:
        made = Path(tempfile.mkdtemp(prefix=".stackyard-new-", dir=base))
        lock = open_file_lock(made / _LOCK)
        lock.acquire()
        folder = base / f"{_PREFIX}{made.name.rpartition('-')[2]}"
        made.rename(folder)
    except OSError as err:
        raise FileError.from_os_error(err, "make a private folder in", base) from err
    return folder, lock


def _base() -> tuple[Path, bool]:
    """Return the best place for a plain text: the user's memory, everyone's memory, the user's disk."""
    for name in (os.environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm"):  # noqa: S108 - a private folder goes there
        if name.startswith("/") and os.access(name, os.W_OK | os.X_OK) and _is_in_memory(Path(name)):
            return Path(name), True
    return directories.ensure_private(directories.state_folder() / "edit"), False


def _is_in_memory(folder: Path) -> bool:
    """Return whether a folder is on a file system in memory, by the longest mount point above it."""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return False
    mounts = [line.split()[1:3] for line in lines]
    real = os.path.realpath(folder)
    above = [(point, kind) for point, kind in mounts if f"{real}/".startswith(f"{point.rstrip('/')}/")]
    return max(above, key=lambda mount: len(mount[0]), default=("", ""))[1] in _IN_MEMORY


def _start_watcher(folder: Path) -> None:
    """Start the process that wipes the folder when the lock is let go."""
    command = process.Command(
        argv=(sys.executable, "-I", "-m", "stackyard.secrets.private", str(folder)),
        env=process.environment(),
        timeout_s=_READY_TIMEOUT_S,
    )
    asyncio.run(process.start_detached(command, log=folder / _LOG, is_ready=lambda line: line == _READY))


def wait_and_wipe(folder: Path) -> None:
    """Say that we are ready, wait until the holder of the lock has ended, and wipe the folder."""
    try:
        sys.stdout.write(f"{_READY}\n")
        sys.stdout.flush()
        with open_file_lock(folder / _LOCK) as lock:
            lock.acquire()
            wipe(folder)
    except (OSError, FileError):
        return


def wipe_leftovers(base: Path) -> list[Path]:
    """Wipe the folders of ours that no one uses any more; return them."""
    wiped = []
    for folder in base.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, FileError):
            if folder.stat().st_uid != os.getuid() or folder.is_symlink():
                continue
            with open_file_lock(folder / _LOCK) as lock:
                if lock.try_acquire():
                    wipe(folder)
                    wiped.append(folder)
    return wiped


def wipe(folder: Path) -> None:
    """Overwrite every file of a folder and remove it; what is gone already is no error."""
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                _overwrite(Path(root) / name)
    shutil.rmtree(folder, ignore_errors=True)


def _overwrite(path: Path) -> None:
    if path.is_symlink() or not path.is_file():
        return
    with open(path, "r+b", buffering=0) as stream:
        stream.write(b"\0" * path.stat().st_size)
        os.fsync(stream.fileno())


if __name__ == "__main__":
    wait_and_wipe(Path(sys.argv[1]))
