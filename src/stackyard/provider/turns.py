"""One after the other: work on something that only one of us may change at a time."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["Turns"]


class Turns:
    """The work that waits for its turn, by what it is about; all operations of a session share it."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, ...], asyncio.Lock] = {}

    @contextlib.asynccontextmanager
    async def turn(self, *about: str) -> AsyncIterator[None]:
        """Wait until no other work is about the same, and hold it for the block."""
        async with self._locks.setdefault(about, asyncio.Lock()):
            yield
