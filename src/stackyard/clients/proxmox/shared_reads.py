"""Reads that are shared: one call for all who ask the same at the same time.

Sharing never gives an answer from before a write that the asker has seen the end of: every write that ends
makes all answers so far, and those under way, old. Who asks for what no write of ours can have changed may
say so.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["SharedReads"]

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Read:
    task: asyncio.Task[Any]
    began: float


class SharedReads:
    """The reads under way, and the answers that may be given again for a moment."""

    def __init__(self) -> None:
        self._reads: dict[Key, _Read] = {}
        # The same, whatever was written since.
        self._latest: dict[Key, _Read] = {}

    def note_write(self) -> None:
        """Note that something was written: what is known may be wrong now."""
        self._reads.clear()

    def expire(self) -> None:
        """Forget everything: somebody else may have written."""
        self._reads.clear()
        self._latest.clear()

    async def get(
        self,
        key: Key,
        read: Callable[[], Awaitable[Any]],
        max_age_s: float,
        *,
        despite_writes: bool = False,
    ) -> Any:
        """Return an answer that is shared with others, or read it.

        Args:
            key: What is read.
            read: Reads it.
            max_age_s: How old an answer may be.
            despite_writes: Whether one from before a write will do.
        """
        known = (self._latest if despite_writes else self._reads).get(key)
        if known is None or not self._is_fresh(known, max_age_s):
            known = self._begin(key, read)
        # Shielded, because anyone who is cancelled must not take the others' answer along.
        return await asyncio.shield(known.task)

    def _is_fresh(self, known: _Read, max_age_s: float) -> bool:
        if not known.task.done():
            return True
        failed = known.task.cancelled() or known.task.exception() is not None
        return not failed and time.monotonic() - known.began <= max_age_s

    def _begin(self, key: Key, read: Callable[[], Awaitable[Any]]) -> _Read:
        async def run() -> Any:
            return await read()

        task = asyncio.get_running_loop().create_task(run())
        begun = _Read(task, time.monotonic())
        self._reads[key] = self._latest[key] = begun
        task.add_done_callback(lambda done: self._end(key, done))
        return begun

    def _end(self, key: Key, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and task.exception() is None:
            return
        for reads in (self._reads, self._latest):
            known = reads.get(key)
            if known is not None and known.task is task:
                del reads[key]
