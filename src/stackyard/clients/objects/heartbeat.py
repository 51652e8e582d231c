"""The heartbeat of a lease: a thread that proves its holder alive, whatever else the holder does.

A holder that was silent for as long as it promised counts as dead for others, who may have taken over what it
held. It must learn that itself, also where it was asleep with its machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import TYPE_CHECKING

from stackyard.clients.objects.base import StoreBusyError, StoreError
from stackyard.clients.objects.leases import LeaseLostError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from stackyard.clients.objects.leases import Lease

__all__ = ["Heartbeat", "keep_alive"]

# How many times in the length of a promise the holder looks whether it kept it.
_LOOKS = 20


def _awake_and_asleep_s() -> float:
    """Return seconds that only go forward, and go on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Heartbeat:
    """Renews a lease from now on, until it is stopped or someone takes the lease over.

    Args:
        lease: The lease.
        clock: Seconds that only go forward.
    """

    def __init__(self, lease: Lease, *, clock: Callable[[], float] = _awake_and_asleep_s) -> None:
        self._lease = lease
        self._clock = clock
        self._renewed_at = clock()
        self._ending = threading.Event()
        self._lost = threading.Event()
        self._late = threading.Event()
        self._beating = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    @property
    def is_lost(self) -> bool:
        """Whether someone took the lease over."""
        return self._lost.is_set()

    @property
    def is_held(self) -> bool:
        """Whether the lease is ours, as far as we know."""
        return not self._lost.is_set() and not self._ending.is_set()

    @property
    def is_late(self) -> bool:
        """Whether we were ever silent for longer than promised, so that others may count us as dead."""
        if self._clock() - self._renewed_at > self._lease.promise_s:
            self._late.set()
        return self._late.is_set()

    def explain_loss(self) -> str | None:
        """Say why the lease no longer protects what we do; None while it does."""
        if self.is_lost:
            return f"Another run took over the lease {self._lease.key}."
        if self.is_late:
            promise_s = self._lease.promise_s
            return (
                f"The lease {self._lease.key} was not renewed for {promise_s:g} s: others may take it over."
            )
        return None

    def beat(self) -> bool:
        """Renew the lease now, and return whether it is ours.

        A store that cannot be used for a moment is asked again later.
        """
        # Two at once would each take the other for someone else's.
        with self._beating, contextlib.suppress(StoreError, StoreBusyError):
            began = self._clock()
            try:
                self._lease.beat()
            except LeaseLostError:
                self._lost.set()
                return False
            # Before the time is noted: one that came too late does not undo the silence.
            is_late = self.is_late
            self._renewed_at = began
            return not is_late
        return False

    def stop(self) -> None:
        """Stop renewing, and wait for a heartbeat that is on its way."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(self._lease.promise_s / 3) and not self.is_lost:
            self.beat()


@contextlib.asynccontextmanager
async def keep_alive(lease: Lease, on_loss: Callable[[str], None]) -> AsyncIterator[Heartbeat]:
    """Renew a lease for the length of the block.

    Args:
        lease: The lease.
        on_loss: Told once, in the loop, why the lease no longer protects what the block does.
    """
    heartbeat = Heartbeat(lease)
    watching = asyncio.create_task(_report_loss(heartbeat, lease.promise_s / _LOOKS, on_loss))
    try:
        yield heartbeat
    finally:
        watching.cancel()
        # A heartbeat that is on its way must have arrived: one behind the end would bring the lease back.
        await asyncio.to_thread(heartbeat.stop)


async def _report_loss(heartbeat: Heartbeat, every_s: float, on_loss: Callable[[str], None]) -> None:
    # Not in the thread of the heartbeat: that may wait for a store which does not answer.
    while True:
        reason = heartbeat.explain_loss()
        if reason is not None:
            on_loss(reason)
            return
        await asyncio.sleep(every_s)
