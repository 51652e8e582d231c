"""Transient timers of the nodes: they run whoever can reach the node, and end when it goes down."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pvelab.world.clock import LabClock

__all__ = ["Timers"]

# Runs a command at the shell of a node, as root.
Command = Callable[[str, list[str]], Awaitable[object]]


class Timers:
    """The timers of all nodes, by node and name.

    Args:
        clock: The time of the lab.
        run: What runs a command when its time has come.
    """

    def __init__(self, clock: LabClock, run: Command) -> None:
        self._clock = clock
        self._run = run
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._started: set[asyncio.Task[None]] = set()

    def is_set(self, node: str, name: str) -> bool:
        """Return whether a timer waits."""
        return (node, name) in self._tasks

    def names(self, node: str) -> list[str]:
        """Return the timers of a node that wait."""
        return sorted(name for where, name in self._tasks if where == node)

    def set(self, node: str, name: str, seconds: float, command: list[str]) -> None:
        """Run a command at the shell of a node after some time."""

        async def wait() -> None:
            await self._clock.sleep(seconds)
            # From here on it cannot be stopped with its timer.
            self._started.add(self._tasks.pop((node, name)))
            await self._run(node, command)

        task = asyncio.get_running_loop().create_task(wait(), name=f"timer-{node}-{name}")
        task.add_done_callback(self._started.discard)
        self._tasks[node, name] = task

    def stop(self, node: str, name: str) -> None:
        """Forget a timer that waits."""
        self._tasks.pop((node, name)).cancel()

    def stop_all(self, node: str) -> None:
        """Forget the timers of a node that goes down: transient ones are in its memory alone."""
        for name in self.names(node):
            self.stop(node, name)

    async def close(self) -> None:
        """Forget all of them."""
        tasks = [*self._tasks.values(), *self._started]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
