"""Who waits for a change of objects: many clients, few threads.

All clients that watch the same prefix share one thread, which waits in the store. Their requests are held
open without a thread of their own. Each change has a number; a client sends back the last one that it saw,
so that it misses none between two requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from typing import TYPE_CHECKING

from stackyard.base.backoff import Backoff
from stackyard.clients.objects import StoreBusyError, StoreError, watch
from stackyard.clients.objects.watch import WatchableObjects
from stackyard.clients.objects.wire import ChangeReport

if TYPE_CHECKING:
    from stackyard.clients.objects import Objects

__all__ = ["ChangeFeeds"]

# Each is a thread, and with PostgreSQL a connection. A client that finds no room looks for itself.
_MOST_FEEDS = 32
_MOST_HELD = 4096
_LONGEST_HOLD_S = 30.0
# A feed that no one has asked since then ends.
_KEPT_S = 60.0
# How long a thread takes to notice that it has to end, and how long it is waited for: its files are open.
_NOTICED_S = 0.25
_CLOSE_S = 0.5
_PAUSES = Backoff(first_s=0.1, longest_s=2.0)


class ChangeFeeds:
    """The prefixes that are watched; used in one event loop.

    Args:
        objects: The store.
        most: How many prefixes are watched at once.
        kept_s: How long a prefix is watched after the last request for it.
    """

    def __init__(self, objects: Objects, *, most: int = _MOST_FEEDS, kept_s: float = _KEPT_S) -> None:
        self._objects = objects
        self._most = most
        self._kept_s = kept_s
        self._feeds: dict[str, _Feed] = {}
        self._held = 0
        self._ending: asyncio.TimerHandle | None = None

    @property
    def watched(self) -> int:
        """How many prefixes are watched, each by a thread."""
        return len(self._feeds)

    async def wait(self, prefix: str, cursor: str, wait_s: float) -> ChangeReport:
        """Wait for a change below a prefix.

        Args:
            prefix: What is watched.
            cursor: What the last report said; empty to begin.
            wait_s: How long to wait at most.

        Raises:
            StoreError: The store cannot be watched.
        """
        feed = self._find(prefix)
        if feed is None or self._held >= _MOST_HELD:
            return ChangeReport(has_changed=bool(cursor))
        self._held += 1
        try:
            return await feed.wait(cursor, min(max(wait_s, 0.0), _LONGEST_HOLD_S))
        except BaseException:
            if not feed.has_begun:
                self._drop(prefix, feed)
            raise
        finally:
            self._held -= 1
            self._end_later()

    def close(self) -> None:
        """Let all threads end, and wait for those that can; from now on nothing is watched."""
        self._most = 0
        if self._ending is not None:
            self._ending.cancel()
        ending = list(self._feeds.items())
        for prefix, feed in ending:
            self._drop(prefix, feed)
        until = time.monotonic() + _CLOSE_S
        for _, feed in ending:
            feed.join(max(0.0, until - time.monotonic()))

    def _find(self, prefix: str) -> _Feed | None:
        feed = self._feeds.get(prefix)
        if feed is None and isinstance(self._objects, WatchableObjects) and len(self._feeds) < self._most:
            feed = self._feeds[prefix] = _Feed(self._objects, prefix)
        return feed

    def _drop(self, prefix: str, feed: _Feed) -> None:
        feed.end()
        if self._feeds.get(prefix) is feed:
            del self._feeds[prefix]

    def _end_later(self) -> None:
        if self._ending is None and self._feeds:
            self._ending = asyncio.get_running_loop().call_later(self._kept_s, self._end_silent)

    def _end_silent(self) -> None:
        self._ending = None
        until = asyncio.get_running_loop().time() - self._kept_s
        for prefix, feed in list(self._feeds.items()):
            if feed.is_silent_since(until):
                self._drop(prefix, feed)
        self._end_later()


class _Feed:
    """The changes below one prefix.

    Args:
        objects: The store.
        prefix: The prefix.
    """

    def __init__(self, objects: Objects, prefix: str) -> None:
        self._objects = objects
        self._prefix = prefix
        self._loop = asyncio.get_running_loop()
        # Tells a cursor of this feed from one of an earlier feed or of another process.
        self._name = uuid.uuid4().hex[:12]
        self._number = 0
        self._begun: asyncio.Future[None] = self._loop.create_future()
        self._begun.add_done_callback(_retrieve)
        self._changed = asyncio.Event()
        self._waiting = 0
        self._asked_at = self._loop.time()
        self._ended = threading.Event()
        # A store that does not answer keeps the thread; it must not keep the process.
        self._thread = threading.Thread(target=self._run, name=f"watch {prefix}", daemon=True)
        self._thread.start()

    @property
    def has_begun(self) -> bool:
        """Whether changes are noticed from now on."""
        return self._begun.done() and self._begun.exception() is None

    def is_silent_since(self, instant: float) -> bool:
        """Return whether no one has asked since then, and no one waits."""
        return not self._waiting and self._asked_at < instant

    async def wait(self, cursor: str, wait_s: float) -> ChangeReport:
        """Wait for a change behind a cursor."""
        self._waiting += 1
        try:
            await asyncio.shield(self._begun)
            name, _, number = cursor.partition(".")
            if cursor and name != self._name:
                return ChangeReport(has_changed=True, cursor=self._cursor)
            if cursor and number == str(self._number):
                # Not `wait_for`: it loses a cancellation that comes together with the change.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._changed.wait()
            return ChangeReport(has_changed=bool(cursor) and number != str(self._number), cursor=self._cursor)
        finally:
            self._waiting -= 1
            self._asked_at = self._loop.time()

    def end(self) -> None:
        """Let the thread end."""
        self._ended.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout_s)

    @property
    def _cursor(self) -> str:
        return f"{self._name}.{self._number}"

    # --- The thread

    def _run(self) -> None:
        pauses = iter(_PAUSES)
        while not self._ended.is_set():
            try:
                with watch(self._objects, self._prefix) as watching:
                    self._tell(self._note_begin)
                    while not self._ended.is_set():
                        if watching.wait(_NOTICED_S):
                            pauses = iter(_PAUSES)
                            self._tell(self._note_change)
            except (StoreError, StoreBusyError) as err:
                # What changes until the store is back is not reported, so that all count as changed.
                self._tell(lambda err=err: self._note_failure(err))
                self._ended.wait(next(pauses))

    def _tell(self, action: object) -> None:
        # The loop may have been closed while we waited.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(action)  # type: ignore[arg-type]

    def _note_begin(self) -> None:
        if self._begun.done():
            self._note_change()
        else:
            self._begun.set_result(None)

    def _note_failure(self, err: BaseException) -> None:
        if self._begun.done():
            self._note_change()
        else:
            self._begun.set_exception(err)
            self.end()

    def _note_change(self) -> None:
        self._number += 1
        self._changed.set()
        self._changed = asyncio.Event()


def _retrieve(done: asyncio.Future[None]) -> None:
    """Take note of how it ended, also where no one waits for it any more."""
    if not done.cancelled():
        done.exception()
