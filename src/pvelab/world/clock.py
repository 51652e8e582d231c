"""The lab's own clock: it runs with the wall clock, and can be moved forward or held still.

Everything in the lab that has a time or takes time asks this clock, so a test can let two hours pass at once.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time

__all__ = ["LabClock"]


class LabClock:
    """Lab time in seconds since the epoch.

    Args:
        offset_s: How far the lab is ahead of the wall clock from the start.
    """

    def __init__(self, offset_s: float = 0.0) -> None:
        self._offset_s = offset_s
        self._held_at: float | None = None
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def offset_s(self) -> float:
        """How far the lab is ahead of the wall clock."""
        return self.now() - time.time()

    @property
    def is_held(self) -> bool:
        """Whether time stands still."""
        return self._held_at is not None

    @property
    def sleepers(self) -> int:
        """How many wait for time to pass."""
        return sum(1 for _, _, future in self._sleepers if not future.done())

    def now(self) -> float:
        """Return the lab time."""
        return time.time() + self._offset_s if self._held_at is None else self._held_at

    def advance(self, seconds: float) -> None:
        """Let time pass at once and wake all that waited for it."""
        if self._held_at is None:
            self._offset_s += seconds
        else:
            self._held_at += seconds
        self._wake_due()

    def hold(self) -> None:
        """Stop time; only `advance` moves it now."""
        self._held_at = self.now()
        self._set_alarm()

    def release(self) -> None:
        """Let time run on from where it was held."""
        if self._held_at is not None:
            self._offset_s = self._held_at - time.time()
            self._held_at = None
            self._wake_due()

    async def sleep(self, seconds: float) -> None:
        """Wait until that much lab time has passed; returns without a pause for nothing."""
        if seconds <= 0:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now() + seconds, next(self._order), future))
        self._set_alarm()
        await future

    def _wake_due(self) -> None:
        now = self.now()
        while self._sleepers and (self._sleepers[0][0] <= now or self._sleepers[0][2].done()):
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():
                future.set_result(None)
        self._set_alarm()

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._sleepers and self._held_at is None:
            loop = self._sleepers[0][2].get_loop()
            self._alarm = loop.call_later(max(0.0, self._sleepers[0][0] - self.now()), self._wake_due)
