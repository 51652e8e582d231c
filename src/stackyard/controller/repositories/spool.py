"""What a program writes once, read by any number of clients, each at its own pace.

It goes to a file without a name, so that a slow client holds up neither the program nor anybody else, and
nothing is left behind whatever happens to us.
"""

from __future__ import annotations

import asyncio
import collections
import os
import tempfile
import weakref
from typing import TYPE_CHECKING

from stackyard.errors import StackyardError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
    from pathlib import Path

__all__ = ["Spool", "Spools"]

_PIECE_BYTES = 256 * 1024
# How much of what was answered is kept for those who will ask the same.
_KEPT_BYTES = 512 * 1024 * 1024
_KEPT_SPOOLS = 256


class Spool:
    """Bytes that are still being written, or are all there.

    Args:
        folder: A folder on the disk that may hold them.
    """

    def __init__(self, folder: Path) -> None:
        # Closed when nobody holds it any more: who reads it reads on after it was forgotten.
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - as said
        self._finish = weakref.finalize(self, self._file.close)
        self.size = 0
        self.has_ended = False
        self.is_whole = False
        self._waiting: set[asyncio.Future[None]] = set()

    def add(self, chunk: bytes) -> None:
        """Take some more."""
        view = memoryview(chunk)
        while view:
            written = os.pwrite(self._file.fileno(), view, self.size)
            self.size += written
            view = view[written:]
        self._wake()

    def end(self, *, is_whole: bool) -> None:
        """Take note that there is no more, and whether that is all."""
        self.has_ended, self.is_whole = True, is_whole
        self._wake()

    async def begun(self) -> None:
        """Wait until there is something, or it is known that there will be nothing."""
        while not self.size and not self.has_ended:
            await self._news()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Return all of it, as it comes."""
        start = 0
        while start < self.size or not self.has_ended:
            if start == self.size:
                await self._news()
                continue
            piece = os.pread(self._file.fileno(), min(_PIECE_BYTES, self.size - start), start)
            start += len(piece)
            yield piece
            await asyncio.sleep(0)

    async def _news(self) -> None:
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(news)
        try:
            await news
        finally:
            self._waiting.discard(news)

    def _wake(self) -> None:
        for news in self._waiting:
            if not news.done():
                news.set_result(None)


class Spools:
    """Answers by what was asked: each is made once, and kept while there is room.

    Args:
        folder: Where their bytes go.
        at_once: How many are made at the same time.
    """

    def __init__(self, folder: Path, *, at_once: int) -> None:
        self._folder = folder
        self._slots = asyncio.Semaphore(at_once)
        self._known: collections.OrderedDict[Hashable, Spool] = collections.OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def get(self, key: Hashable, fill: Callable[[Spool], Awaitable[bool]]) -> Spool:
        """Return an answer, which may only just begin.

        Args:
            key: What is asked.
            fill: Makes the answer where it is not there, and tells whether it is one that may be kept.
        """
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Spool(self._folder)
            task = asyncio.get_running_loop().create_task(self._fill(key, known, fill))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._known.move_to_end(key)
        return known

    async def _fill(self, key: Hashable, spool: Spool, fill: Callable[[Spool], Awaitable[bool]]) -> None:
        is_whole = False
        try:
            async with self._slots:
                is_whole = await fill(spool)
        except (StackyardError, OSError):
            # Whoever waits for it sees that it ended without being whole.
            is_whole = False
        finally:
            spool.end(is_whole=is_whole)
            if not is_whole and self._known.get(key) is spool:
                del self._known[key]
            self._make_room()

    def _make_room(self) -> None:
        total = sum(spool.size for spool in self._known.values())
        for key, spool in list(self._known.items()):
            if total <= _KEPT_BYTES and len(self._known) <= _KEPT_SPOOLS:
                return
            if spool.has_ended:
                total -= spool.size
                del self._known[key]

    async def close(self) -> None:
        """End what is being made, and let go of everything."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)
        self._known.clear()
