"""One engine at a time works on a target: one that outlived its run is waited for.

A run that is killed takes its engine along, which still stores its state, or leaves it in `errored.tfstate`.
A run that began meanwhile would make a state of its own, beside that one. So every engine of a run inherits a
lock, and the kernel keeps it for as long as one of them lives.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from stackyard.base import directories, events
from stackyard.base.errors import BusyError
from stackyard.base.locks import open_file_lock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from stackyard.base.locks import FileLock
    from stackyard.engine.workdir import Workdir

__all__ = ["EngineLeftError", "work_alone"]

_LOCK = "engine.lock"


class EngineLeftError(BusyError):
    """The engine of a run that was killed still works on the target."""

    code = "E-ENGINE-LEFT"
    summary = "The engine of a run that was killed still works"
    default_remedy = "Wait until it has ended, or end it: then run the command again."


@contextlib.asynccontextmanager
async def work_alone(workdir: Workdir, folder: Path, emit: events.Emit) -> AsyncIterator[Workdir]:
    """Wait until no engine of an earlier run works on a target, and give where this run's engines work.

    Args:
        workdir: Where they work.
        folder: The folder of the target in which stackyard works.
        emit: Takes the events.

    Raises:
        EngineLeftError: One still works after the time that an engine has to store its state.
        FileError: The folder cannot be used.
    """
    directories.ensure_private(folder)
    with open_file_lock(folder / _LOCK) as lock:
        if not lock.try_acquire():
            await _wait(lock, folder, workdir.limits.grace_s, emit)
        yield replace(workdir, descriptors=(*workdir.descriptors, lock.descriptor))


async def _wait(lock: FileLock, folder: Path, patience_s: float, emit: events.Emit) -> None:
    with events.step(emit, "engine.left", "Waiting for the engine of a run that was killed") as running:
        running.waiting("it to store its state")
        try:
            async with asyncio.timeout(patience_s):
                await lock.wait()
        except TimeoutError as err:
            raise EngineLeftError(f"It has worked in {folder} for {patience_s:.0f} s more.") from err
