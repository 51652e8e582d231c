"""What a program writes once, read by any number of clients, each at its own pace.

It is kept apart from both, a large one in a file without a name, so that a slow client holds up neither the
program nor anyone else, and nothing is left behind whatever happens to us.
"""

from __future__ import annotations

import asyncio
import collections
import os
import tempfile
import weakref
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.base.process import open_files
from stackyard.controller.refusals import Code, RequestRefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
    from pathlib import Path
    from typing import IO

__all__ = ["Spool", "Spools", "busy"]

_PIECE_BYTES = 256 * 1024
# How much of what was answered is kept for those who will ask the same.
_KEPT_BYTES = 512 * 1024 * 1024
_KEPT_SPOOLS = 256
# An answer up to this size needs no file.
_IN_MEMORY_BYTES = 256 * 1024


class Spool:
    """Bytes that are still being written, or are all there.

    A small answer stays in memory; only a large one takes a file, and with it a descriptor.

    Args:
        folder: A folder on the disk that may hold them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._memory = bytearray()
        self._file: IO[bytes] | None = None
        self.size = 0
        self.has_ended = False
        self.is_whole = False
        self.error: BaseException | None = None
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def has_file(self) -> bool:
        """Whether it takes a descriptor."""
        return self._file is not None

    def add(self, chunk: bytes) -> None:
        """Take some more.

        Raises:
            OSError: There is no room on the disk, or no descriptor.
        """
        if self._file is None and self.size + len(chunk) <= _IN_MEMORY_BYTES:
            self._memory += chunk
            self.size += len(chunk)
        else:
            file = self._file or self._to_file()
            _write_at(file, self.size, chunk)
            self.size += len(chunk)
        self._wake()

    def _to_file(self) -> IO[bytes]:
        # Closed when no one holds it any more: who reads it reads on after it was forgotten.
        file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - as said
        weakref.finalize(self, file.close)
        _write_at(file, 0, self._memory)
        self._file, self._memory = file, bytearray()
        return file

    def _read(self, start: int) -> bytes:
        wanted = min(_PIECE_BYTES, self.size - start)
        if self._file is None:
            return bytes(self._memory[start : start + wanted])
        return os.pread(self._file.fileno(), wanted, start)

    def end(self, *, is_whole: bool, error: BaseException | None = None) -> None:
        """Take note that there is no more, whether that is all, and what went wrong on our side."""
        self.has_ended, self.is_whole, self.error = True, is_whole, error
        self._wake()

    async def wait_until_begun(self) -> None:
        """Wait until there is something, or it is known that there will be nothing."""
        while not self.size and not self.has_ended:
            await self._wait_for_change()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Return all of it, as it comes."""
        start = 0
        while start < self.size or not self.has_ended:
            if start == self.size:
                await self._wait_for_change()
                continue
            piece = self._read(start)
            start += len(piece)
            yield piece
            await asyncio.sleep(0)

    async def _wait_for_change(self) -> None:
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
    """Answers by what was asked: each is created once, and kept while there is room.

    Args:
        folder: Where their bytes go.
        at_once: How many are created at the same time.
        waiting: How many more may wait for their turn.
    """

    def __init__(self, folder: Path, *, at_once: int, waiting: int = 2048) -> None:
        self._folder = folder
        self._most_tasks = at_once + waiting
        self._slots = asyncio.Semaphore(at_once)
        self._known: collections.OrderedDict[Hashable, Spool] = collections.OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def get(self, key: Hashable, fill: Callable[[Spool], Awaitable[bool]]) -> Spool:
        """Return an answer, which may only just begin.

        Args:
            key: What is asked.
            fill: Makes the answer where it is not there, and shows whether it is one that may be kept.

        Raises:
            RequestRefusedError: Too many others wait for theirs.
        """
        known = self._known.get(key)
        if known is None:
            if len(self._tasks) >= self._most_tasks:
                raise busy()
            known = self._known[key] = Spool(self._folder)
            task = asyncio.get_running_loop().create_task(self._fill(key, known, fill))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._known.move_to_end(key)
        return known

    async def _fill(self, key: Hashable, spool: Spool, fill: Callable[[Spool], Awaitable[bool]]) -> None:
        is_whole, error = False, None
        try:
            async with self._slots:
                is_whole = await fill(spool)
        except (StackyardError, OSError) as err:
            # Anyone who waits for it sees that it ended without being whole, and why.
            error = err
        finally:
            spool.end(is_whole=is_whole, error=error)
            if not is_whole and self._known.get(key) is spool:
                del self._known[key]
            self._make_room()

    def _make_room(self) -> None:
        total = sum(spool.size for spool in self._known.values())
        on_disk = sum(spool.has_file for spool in self._known.values())
        for key, spool in list(self._known.items()):
            fits = total <= _KEPT_BYTES and len(self._known) <= _KEPT_SPOOLS
            if fits and on_disk <= open_files.most_programs():
                return
            if spool.has_ended and (not fits or spool.has_file):
                total -= spool.size
                on_disk -= spool.has_file
                del self._known[key]

    async def close(self) -> None:
        """End what is being created, and let go of everything."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)
        self._known.clear()


def busy() -> RequestRefusedError:
    """Return the answer to one who has to come again later."""
    headers = {"Retry-After": "1", "Connection": "close"}
    return RequestRefusedError(
        503, Code.BUSY, "The controller has no room for more just now.", headers=headers
    )


def _write_at(file: IO[bytes], start: int, data: bytes | bytearray) -> None:
    with memoryview(data) as view:
        done = 0
        while done < len(view):
            done += os.pwrite(file.fileno(), view[done:], start + done)
