"""The managed copies of a tool: where they are kept, and how a new one gets there completely or not.

::

    <cache>/stackyard/tools/tofu/.lock           held while one process installs
    <cache>/stackyard/tools/tofu/.work-XXXXXXXX  where it works, gone when it ends
    <cache>/stackyard/tools/tofu/1.12.6/tofu     what it leaves
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories, files
from stackyard.engine.version import Version

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

__all__ = [
    "copies",
    "copy_path",
    "find_copy",
    "make_executable",
    "put_in_place",
    "remove_stale_work",
    "tool_folder",
    "work_folder",
]

_WORK_PREFIX = ".work-"
_EXECUTABLE = 0o755
# A removal that takes no longer is not worth a word.
_QUIET_S = 1.0


def tool_folder(tool: str) -> Path:
    """Return the folder that holds every managed copy of a tool."""
    return directories.cache_folder() / "tools" / tool


def copy_path(tool: str, version: Version) -> Path:
    """Return where the managed copy of a version is, whether or not it is there."""
    return tool_folder(tool) / str(version) / tool


def find_copy(tool: str, version: Version) -> Path | None:
    """Return the managed copy of a version if there is one that we may look at."""
    path = copy_path(tool, version)
    return path if os.path.isfile(path) else None


def copies(tool: str) -> tuple[Path, ...]:
    """Return the managed copies that are there and that we may look at, the newest version first."""
    found: list[tuple[Version, Path]] = []
    # Python's own search raises for some folders that it may not enter, and passes others over.
    with contextlib.suppress(OSError):
        for path in tool_folder(tool).glob(f"[0-9]*/{tool}"):
            with contextlib.suppress(ValueError):
                found.append((Version.parse(path.parent.name), path))
    return tuple(path for _, path in sorted(found, reverse=True))


@contextlib.asynccontextmanager
async def work_folder(tool: str, on_wait: Callable[[str], None]) -> AsyncIterator[Path]:
    """Make a folder to work in, beside the managed copies, and remove it whatever happens.

    Args:
        tool: The name of the tool.
        on_wait: Told what there is to wait for when the removal takes its time.
    """
    folder = Path(tempfile.mkdtemp(prefix=_WORK_PREFIX, dir=tool_folder(tool)))
    try:
        yield folder
    finally:
        await _remove(folder, on_wait)


async def remove_stale_work(tool: str, on_wait: Callable[[str], None]) -> None:
    """Remove what a killed installation left behind; only while holding the lock."""
    for folder in tool_folder(tool).glob(f"{_WORK_PREFIX}*"):
        await _remove(folder, on_wait)


async def _remove(folder: Path, on_wait: Callable[[str], None]) -> None:
    # In a thread: a build leaves tens of thousands of files, and an interrupt must be heard meanwhile.
    removal = asyncio.ensure_future(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))
    done, _ = await asyncio.wait({removal}, timeout=_QUIET_S)
    if not done:
        on_wait("the removal of files that are no longer needed")
        await removal


def make_executable(program: Path) -> None:
    """Let a new file be run, and make sure that all of it is on the disk."""
    with program.open("rb") as stream:
        os.fchmod(stream.fileno(), _EXECUTABLE)
        os.fsync(stream.fileno())


def put_in_place(tool: str, program: Path, version: Version) -> Path:
    """Move a finished program in one step to where the managed copy of its version is, and return that."""
    target = copy_path(tool, version)
    directories.ensure_private(target.parent)
    program.replace(target)
    files.sync_folder(target.parent)
    return target
