"""One action for all who need it: the caller while it waits its turn is served by the same one.

A node's network is reloaded, and the SDN applied, as a whole. When ten bridges are made at once, each needs a
reload that began after it was written, but not ten of them.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

__all__ = ["GroupCommit"]


class GroupCommit:
    """Runs an action for each key one at a time, and once for all who asked before it began."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, asyncio.Task[Any]] = {}
        self._locks: defaultdict[Hashable, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def run(self, key: Hashable, action: Callable[[], Awaitable[Any]]) -> Any:
        """Return what an action came to that began after this call."""
        task = self._waiting.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._begin(key, action))
            self._waiting[key] = task
        # Anyone who is cancelled must not take the others' action along.
        return await asyncio.shield(task)

    async def _begin(self, key: Hashable, action: Callable[[], Awaitable[Any]]) -> Any:
        async with self._locks[key]:
            del self._waiting[key]
            return await action()
