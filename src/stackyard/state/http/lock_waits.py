"""Clients whose request for a lock is held open until it is their turn.

A release in this process wakes them at once, one in another process when the store reports it. A wake-up
reads; only the client whose turn it is writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients.objects import StoreBusyError, StoreError
from stackyard.state import layout
from stackyard.state.lock_rules import POLLS_OF_A_WAITER
from stackyard.state.refusals import StateLockedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stackyard.state.http.change_feeds import ChangeFeeds
    from stackyard.state.http.metrics import Metrics
    from stackyard.state.lockinfo import LockInfo
    from stackyard.state.locks import Locks
    from stackyard.state.model import Actor, HeldLock

    Call = Callable[[Callable[[], Any]], Awaitable[Any]]

__all__ = ["LockRequest", "LockWaits"]

# Nothing reports that the holder died, and some stores report no change.
_LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRequest:
    """A request for a lock.

    Attributes:
        name: The state.
        info: The lock.
        actor: Who asks.
        lease: The lease of the run that asks for its own engine.
        is_gone: Tells whether the client has left.
    """

    name: str
    info: LockInfo
    actor: Actor
    lease: str | None
    is_gone: Callable[[], bool]


class LockWaits:
    """Takes locks for clients, and lets them wait.

    Args:
        locks: The locks.
        feeds: Reports changes of the store.
        call: Does what blocks in a thread.
        metrics: Counts who waits.
        hold_s: How long a request is held open.
        on_wait: Called with each refusal of a lock.
    """

    def __init__(
        self,
        locks: Locks,
        feeds: ChangeFeeds,
        call: Call,
        metrics: Metrics,
        *,
        hold_s: float,
        on_wait: Callable[[str, StateLockedError], None] | None = None,
    ) -> None:
        self._locks = locks
        self._feeds = feeds
        self._call = call
        self._metrics = metrics
        self._hold_s = hold_s
        self._on_wait = on_wait
        self._waiting: dict[str, set[asyncio.Event]] = {}

    async def lock(self, asked: LockRequest) -> tuple[HeldLock, bool]:
        """Lock a state; return the lock, and whether its client had to wait.

        Raises:
            StateLockedError: Someone else has it for longer than the request is held open.
            StateRefusedError: It cannot be locked.
            StoreError: The store cannot be used.
        """
        until, has_waited = time.monotonic() + self._hold_s, False
        with self._waiter(asked.name) as woken:
            while True:
                # Before we ask: a lock that is released while we ask must wake us.
                woken.clear()
                lock = functools.partial(
                    self._locks.lock, asked.name, asked.info, asked.actor, lease=asked.lease
                )
                try:
                    return await self._call(lock), has_waited
                except StateLockedError as err:
                    if self._on_wait is not None:
                        self._on_wait(asked.name, err)
                    if err.polls < POLLS_OF_A_WAITER or time.monotonic() >= until or asked.is_gone():
                        raise
                has_waited = True
                self._metrics.waiting += 1
                try:
                    await self._wait_for_turn(asked, woken, until)
                finally:
                    self._metrics.waiting -= 1

    def wake(self, name: str) -> None:
        """Have those who wait for a state look again."""
        for woken in self._waiting.get(name, ()):
            woken.set()

    @contextlib.contextmanager
    def _waiter(self, name: str) -> Any:
        woken = asyncio.Event()
        others = self._waiting.setdefault(name, set())
        others.add(woken)
        try:
            yield woken
        finally:
            others.discard(woken)
            if not others and self._waiting.get(name) is others:
                del self._waiting[name]

    async def _wait_for_turn(self, asked: LockRequest, woken: asyncio.Event, until: float) -> None:
        """Return when it is our turn, or when the queue must hear from us, or when the time is up."""
        look = functools.partial(self._locks.look, asked.name, asked.info, asked.actor)
        feed = asyncio.create_task(self._follow(layout.head(asked.name), woken))
        try:
            while (left_s := until - time.monotonic()) > 0 and not asked.is_gone():
                # Not `wait_for`: it loses a cancellation that comes together with the wake-up.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left_s, _LOOK_EVERY_S)):
                        await woken.wait()
                woken.clear()
                if (await self._call(look)).should_ask:
                    return
        finally:
            feed.cancel()

    async def _follow(self, key: str, woken: asyncio.Event) -> None:
        """Wake a client at each change that the store reports, as long as it reports any."""
        with contextlib.suppress(StoreError, StoreBusyError):
            cursor = (await self._feeds.wait(key, "", 0.0)).cursor
            # What changed before the feed began.
            woken.set()
            while cursor:
                report = await self._feeds.wait(key, cursor, self._hold_s)
                cursor = report.cursor
                if report.has_changed:
                    woken.set()
