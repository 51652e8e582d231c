"""Limits on how often: refused logins by address and name, and requests by principal.

Anyone who uses this looks at the credentials first. Right ones are never refused or kept waiting because
someone else at the same address showed wrong ones; only a refusal is counted, and made slower.
"""

from __future__ import annotations

import asyncio
import collections
import ipaddress
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Throttle", "ThrottleLimits"]

# How many addresses and names are remembered; the ones that were longest quiet are forgotten first.
_REMEMBERED = 10_000
# No principal has a longer name; a client may send one of many kilobytes.
_LONGEST_NAME = 100
# One client of IPv6 has a whole network of this size.
_IPV6_PREFIX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleLimits:
    """How often is too often.

    Attributes:
        failures: Refused logins of one name from one address within the window.
        address_failures: Refused logins from one address within the window, whatever the name.
        window_s: How long a refused login counts.
        requests_per_s: Requests of one principal a second, on average.
        burst: How many more it may make at once.
        delay_s: How long the answer to a login past the limits is kept back.
        delayed: How many such answers are kept back at once; past it they are sent without a delay, so that
            guessing never takes the connections of others.
    """

    failures: int = 10
    address_failures: int = 50
    window_s: float = 60.0
    requests_per_s: float = 500.0
    burst: float = 2000.0
    delay_s: float = 1.0
    delayed: int = 32


class Throttle:
    """Counts refused logins and requests.

    Args:
        limits: How often is too often.
        clock: Seconds that only go forward.
    """

    def __init__(
        self, limits: ThrottleLimits | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits or ThrottleLimits()
        self._clock = clock
        # By address and name; None is all names of the address.
        self._failed: collections.OrderedDict[tuple[str, str | None], collections.deque[float]] = (
            collections.OrderedDict()
        )
        self._buckets: collections.OrderedDict[str, tuple[float, float]] = collections.OrderedDict()
        self._delayed = 0

    def count_failure(self, address: str, name: str) -> float:
        """Count a refused login; return how long its client has to wait, zero within the limits."""
        now, network, wait_s = self._clock(), _network(address), 0.0
        for key, most in (
            ((network, name[:_LONGEST_NAME]), self._limits.failures),
            ((network, None), self._limits.address_failures),
        ):
            times = self._failed.setdefault(key, collections.deque(maxlen=most))
            if len(times) == most:
                wait_s = max(wait_s, times[0] + self._limits.window_s - now)
            times.append(now)
            self._failed.move_to_end(key)
        while len(self._failed) > _REMEMBERED:
            self._failed.popitem(last=False)
        return wait_s

    async def hold_back(self) -> None:
        """Wait before a login past the limits is answered, unless enough answers are kept back already."""
        if self._delayed >= self._limits.delayed:
            return
        self._delayed += 1
        try:
            await asyncio.sleep(self._limits.delay_s)
        finally:
            self._delayed -= 1

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


def _network(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the network of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped
        return str(inner or ipaddress.ip_network((found, _IPV6_PREFIX), strict=False))
    return str(found)
