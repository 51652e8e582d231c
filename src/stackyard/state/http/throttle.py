"""Limits on how often: failed logins by address and name, and requests by principal."""

from __future__ import annotations

import collections
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Throttle", "ThrottleLimits"]

# How many addresses and names are remembered; the ones that were longest quiet are forgotten first.
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleLimits:
    """How often is too often.

    Attributes:
        failures: Failed logins of one name from one address within the window.
        address_failures: Failed logins from one address within the window, whatever the name.
        window_s: How long a failure counts.
        requests_per_s: Requests of one principal a second, on average.
        burst: How many more it may make at once.
    """

    failures: int = 10
    address_failures: int = 50
    window_s: float = 60.0
    requests_per_s: float = 500.0
    burst: float = 2000.0


class Throttle:
    """Counts failures and requests.

    Args:
        limits: How often is too often.
        clock: Seconds that only go forward.
    """

    def __init__(
        self, limits: ThrottleLimits | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits or ThrottleLimits()
        self._clock = clock
        self._failed: collections.OrderedDict[tuple[str, str], collections.deque[float]] = (
            collections.OrderedDict()
        )
        self._buckets: collections.OrderedDict[str, tuple[float, float]] = collections.OrderedDict()

    def blocked_s(self, address: str, name: str) -> float:
        """Return for how long nobody may log in by this name from this address; zero where they may."""
        now = self._clock()
        waits = [
            self._wait((address, name), self._limits.failures, now),
            self._wait((address, ""), self._limits.address_failures, now),
        ]
        return max(waits)

    def failed(self, address: str, name: str) -> None:
        """Count a failed login."""
        now = self._clock()
        for key, most in (
            ((address, name), self._limits.failures),
            ((address, ""), self._limits.address_failures),
        ):
            times = self._failed.setdefault(key, collections.deque(maxlen=most))
            times.append(now)
            self._failed.move_to_end(key)
        while len(self._failed) > _REMEMBERED:
            self._failed.popitem(last=False)

    def request_wait_s(self, principal: str) -> float:
        """Count a request; return how long the principal must wait before it is answered, zero at best."""
        now, limits = self._clock(), self._limits
        left, at = self._buckets.get(principal, (limits.burst, now))
        left = min(limits.burst, left + (now - at) * limits.requests_per_s)
        wait_s = 0.0 if left >= 1 else (1 - left) / limits.requests_per_s
        self._buckets[principal] = (left if wait_s else left - 1, now)
        self._buckets.move_to_end(principal)
        while len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        return wait_s

    def _wait(self, key: tuple[str, str], most: int, now: float) -> float:
        times = self._failed.get(key)
        if times is None or len(times) < most:
            return 0.0
        return max(0.0, times[0] + self._limits.window_s - now)
