"""Programs that a guest's agent was told to run: they continue while the client asks how far they are.

They belong to the run of a guest, not to its records: a lab that starts again knows none of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["ExecutionOutcome", "Executions"]

_FIRST_PID = 700
_MOST_KEPT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOutcome:
    """How a program ended."""

    status: int
    stdout: bytes
    stderr: bytes


class Executions:
    """The programs of all guests, by guest and process number."""

    def __init__(self) -> None:
        self._running: dict[tuple[int, int], asyncio.Task[ExecutionOutcome]] = {}
        self._next = _FIRST_PID

    def start(self, vmid: int, program: Callable[[], Awaitable[ExecutionOutcome]]) -> int:
        """Run a program and return its process number."""
        pid, self._next = self._next, self._next + 1

        async def run() -> ExecutionOutcome:
            return await program()

        if len(self._running) >= _MOST_KEPT:
            # No one asked for the oldest one in all this time.
            self._running.pop(next(iter(self._running))).cancel()
        self._running[vmid, pid] = asyncio.get_running_loop().create_task(run(), name=f"exec-{vmid}-{pid}")
        return pid

    def is_known(self, vmid: int, pid: int) -> bool:
        """Return whether there is such a program whose end no one has seen yet."""
        return (vmid, pid) in self._running

    def collect(self, vmid: int, pid: int) -> ExecutionOutcome | None:
        """Return how a program ended, once; None while it runs."""
        task = self._running[vmid, pid]
        if not task.done():
            return None
        del self._running[vmid, pid]
        return task.result()

    async def close(self) -> None:
        """End all programs."""
        tasks = list(self._running.values())
        self._running.clear()
        for task in tasks:
            task.cancel()
        for task in tasks:
            # How they end does not matter any more; someone must look, or the loop complains.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({task})
                if not task.cancelled():
                    task.exception()
