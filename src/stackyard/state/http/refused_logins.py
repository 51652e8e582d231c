"""Refused logins in the audit log: the first of each address one by one, the rest as counts.

Anyone who tries many wrong credentials must neither fill the log nor hide in it. In each interval the first
attempts of an address are written as they are; further ones are counted by how they were created, and the
counts are written at its end. While it continues the intervals become longer. What the store does not take
is kept and written with the next interval.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.clients.objects import StoreBusyError, StoreError
from stackyard.state.model import Actor, AuditAction

if TYPE_CHECKING:
    from stackyard.state.audit import AuditLogs

__all__ = ["AuditPace", "RefusedLogins"]

Call = Callable[[Callable[[], None]], Coroutine[Any, Any, None]]

_OTHERS = "other addresses"
_NAMES = 3
_LONGEST_DETAIL = 200
# A store that does not answer must not keep a server from stopping.
_LAST_WRITE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPace:
    """How much is written about refused logins.

    Attributes:
        each: Entries of one address in an interval.
        most: Entries of all addresses in an interval.
        addresses: Addresses that get a count of their own in an interval; all others share one.
        interval_s: The first interval.
        longest_s: What an interval grows to while attempts continue.
    """

    each: int = 5
    most: int = 50
    addresses: int = 20
    interval_s: float = 60.0
    longest_s: float = 900.0


@dataclass(slots=True)
class _AddressCount:
    """The attempts of one address that have no entry of their own."""

    schemes: collections.Counter[str] = field(default_factory=collections.Counter)
    details: dict[str, None] = field(default_factory=dict)

    def add(self, scheme: str, detail: str) -> None:
        self.schemes[scheme] += 1
        if len(self.details) < _NAMES:
            self.details[detail] = None

    def merge(self, other: _AddressCount) -> None:
        self.schemes += other.schemes
        for detail in list(other.details)[: max(0, _NAMES - len(self.details))]:
            self.details[detail] = None

    def text(self) -> str:
        total = self.schemes.total()
        parts = ", ".join(f"{count} {scheme}" for scheme, count in sorted(self.schemes.items()))
        return f"{total} more refused logins ({parts}), among them: {' '.join(self.details)}"


class RefusedLogins:
    """Writes refused logins to the audit log of the service.

    Args:
        audit: The log.
        call: Does what blocks in a thread.
        pace: How much is written.
    """

    def __init__(self, audit: AuditLogs, call: Call, pace: AuditPace | None = None) -> None:
        self._audit = audit
        self._call = call
        self._pace = pace or AuditPace()
        self._interval_s = self._pace.interval_s
        self._written: collections.Counter[str] = collections.Counter()
        self._counted: dict[str, _AddressCount] = {}
        self._end: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None

    async def note(self, address: str, scheme: str, detail: str) -> None:
        """Write an attempt down, or count it."""
        detail = detail[:_LONGEST_DETAIL]
        if self._end is None:
            self._begin_interval()
        written, pace = self._written, self._pace
        # A flood from many addresses must not fill the memory either.
        is_known = address in written or len(written) < pace.most
        if not is_known or written[address] >= pace.each or written.total() >= pace.most:
            self._count(address, scheme, detail)
            return
        written[address] += 1
        try:
            await self._call(functools.partial(self._write, address, detail))
        except (StoreError, StoreBusyError):
            self._count(address, scheme, detail)

    def close(self, submit: Callable[[Callable[[], None]], None]) -> None:
        """Write what was counted.

        Args:
            submit: Has a thread do something, without waiting for it.
        """
        if self._end is not None:
            self._end.cancel()
        counted, self._counted = self._counted, {}
        if not counted:
            return
        done = threading.Event()

        def write() -> None:
            with contextlib.suppress(StoreError, StoreBusyError):
                self._write_all(counted)
            done.set()

        submit(write)
        done.wait(_LAST_WRITE_S)

    def _begin_interval(self) -> None:
        self._end = asyncio.get_running_loop().call_later(self._interval_s, self._end_interval)

    def _end_interval(self) -> None:
        self._end = None
        self._written.clear()
        counted, self._counted = self._counted, {}
        longer_s = min(self._pace.longest_s, 2 * self._interval_s)
        self._interval_s = longer_s if counted else self._pace.interval_s
        if counted:
            self._writing = asyncio.get_running_loop().create_task(self._write_counted(counted))

    async def _write_counted(self, counted: dict[str, _AddressCount]) -> None:
        try:
            await self._call(functools.partial(self._write_all, counted))
        except (StoreError, StoreBusyError):
            # `_write_all` has removed what it wrote.
            for address, tally in counted.items():
                self._tally(address).merge(tally)
            if self._end is None:
                self._begin_interval()

    def _count(self, address: str, scheme: str, detail: str) -> None:
        self._tally(address).add(scheme, detail)

    def _tally(self, address: str) -> _AddressCount:
        if address not in self._counted and len(self._counted) >= self._pace.addresses:
            address = _OTHERS
        return self._counted.setdefault(address, _AddressCount())

    def _write_all(self, counted: dict[str, _AddressCount]) -> None:
        while counted:
            address = next(iter(counted))
            self._write(address, counted[address].text())
            del counted[address]

    def _write(self, address: str, detail: str) -> None:
        self._audit.note(Actor(principal="-", address=address), AuditAction.LOGIN_REFUSED, detail=detail)
