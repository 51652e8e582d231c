"""Threads for work that blocks, which never keep the process from ending.

A call to a store that does not answer can take a minute, and nothing can interrupt it. The threads of the
standard library would be waited for; these are left behind, as a kill would leave them, which every store
survives.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Workers"]

T = TypeVar("T")

_Job = tuple["asyncio.Future[Any] | None", "Callable[[], Any]"]


class Workers:
    """Some threads that take work in turn.

    Args:
        most: How many there are at most; they are started when they are needed.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._started = 0
        self._busy = 0

    async def call(self, function: Callable[[], T]) -> T:
        """Have a thread do something, and return what it returned."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._busy += 1
        self._start_thread()
        self._jobs.put((done, function))
        try:
            return await done
        finally:
            self._busy -= 1

    def submit(self, function: Callable[[], object]) -> None:
        """Have a thread do something that no one waits for."""
        self._busy += 1
        self._start_thread()
        self._busy -= 1
        self._jobs.put((None, function))

    def _start_thread(self) -> None:
        if self._busy > self._started < self._most:
            self._started += 1
            threading.Thread(target=self._work, name=f"state-{self._started}", daemon=True).start()

    def close(self) -> None:
        """Let the threads end when they have done what they do."""
        for _ in range(self._started):
            self._jobs.put(None)
        self._started = 0

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            done, function = job
            result, error = None, None
            try:
                result = function()
            except BaseException as err:  # The edge of the thread: whoever awaits the work raises it instead.
                error = err
            if done is None:
                continue
            # The loop may have been closed while we worked; then no one waits any more.
            with contextlib.suppress(RuntimeError):
                done.get_loop().call_soon_threadsafe(_settle, done, result, error)


def _settle(done: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)
