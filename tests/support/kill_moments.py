"""Killing a client of a lab at a chosen moment of a chosen call, with SIGKILL and without a warning.

The lab goes on as a node does: what the call began is finished, or fails, after whoever asked is dead.
"""

from __future__ import annotations

import contextlib
import enum
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from tests.support.path_faults import Spot, spots_of
from tests.support.path_runs import WatchedJournal

from pvelab.faults.faults import Point
from pvelab.faults.latency import Work
from pvelab.server.dispatch import ConnectionDropped
from pvelab.server.journal import JournalEntry
from stackyard import lab

__all__ = ["Killer", "Moment", "changes_something", "choose_some"]

Case = TypeVar("Case")
# A soak run takes some moments of each matrix, so that all together last a quarter of an hour; another
# run takes others. With `STACKYARD_SOAK_WHOLE=1` it takes every one.
# Read now: a test begins with an environment of its own.
_IS_WHOLE = bool(os.environ.get("STACKYARD_SOAK_WHOLE"))
_SEED = os.environ.get("STACKYARD_SOAK_SEED")

# How long the work of a call goes on after the kill: longer than the next run needs to get there.
_WORK_S = 0.6
_SLOW = (Work.CREATE, Work.CLONE, Work.ALLOCATE, Work.CONFIG, Work.RESIZE, Work.MOVE, Work.DOWNLOAD)
_ALSO_SLOW = (Work.START, Work.MIGRATE, Work.TEMPLATE, Work.UPLOAD, Work.RELOAD)


class Moment(enum.StrEnum):
    """When the client dies, as seen from one of its calls."""

    NOT_SENT = "not sent"
    AT_WORK = "at work"
    FAILS = "fails afterwards"
    DONE = "done"


def changes_something(spot: Spot) -> bool:
    """Tell whether a call is no mere read."""
    return spot.method != "GET"


def choose_some(cases: Sequence[Case], most: int) -> list[Case]:
    """Return some of the cases of a matrix in their order, and print which run would choose them again."""
    if _IS_WHOLE or len(cases) <= most:
        return list(cases)
    seed = _SEED or str(time.time_ns() % 10**6)
    sys.stdout.write(f"\n{most} of {len(cases)} moments, STACKYARD_SOAK_SEED={seed}\n")
    chosen = sorted(random.Random(seed).sample(range(len(cases)), most))
    return [cases[number] for number in chosen]


class Killer:
    """Watches the calls of a lab and kills a client at one of them.

    Args:
        running: The lab, in another thread.
        journal: Its journal.
    """

    def __init__(self, running: lab.Running, journal: WatchedJournal) -> None:
        self._running = running
        self._journal = journal
        self._strike = running.dispatcher.strike
        self._armed: tuple[Spot, Moment, Callable[[], None]] | None = None
        self._seen = 0
        self._fault: str | None = None
        # The dispatcher asks itself at each point of a call; the lab's own code is left as it is.
        running.on_loop(lambda: setattr(running.dispatcher, "strike", self._watch))

    @contextlib.contextmanager
    def armed(self, spot: Spot, moment: Moment, kill: Callable[[], None]) -> Iterator[None]:
        """Kill at a moment of a call, for the length of the block."""
        self._armed, self._seen = (spot, moment, kill), 0
        if moment is Moment.DONE:
            self._journal.on_call = self._saw
        try:
            yield
        finally:
            self._armed = None
            self._journal.on_call = None

    @property
    def has_struck(self) -> bool:
        """Whether the call of the last block came."""
        return self._seen < 0

    def quicken(self) -> None:
        """Let later work take no time again, and succeed."""
        self._running.on_loop(lambda: self._set_pace(0.0))
        if self._fault is not None:
            self._running.remove_fault(self._fault)
            self._fault = None

    async def _watch(self, point: Point, method: str, path: str, node: str) -> None:
        if point is Point.BEFORE_WORK and self._is_due(method, path):
            assert self._armed is not None
            _, moment, kill = self._armed
            kill()
            if moment is Moment.NOT_SENT:
                raise ConnectionDropped
            self._set_pace(_WORK_S)
            if moment is Moment.FAILS:
                # The next run may remove a file before the task of a guest takes its first step.
                of = "[0-9]*" if path.startswith(("/nodes/pve1/qemu", "/nodes/pve1/lxc")) else "*"
                self._fault = self._running.add_fault("task", text="it broke", id=of, step=1, times=1)
        await self._strike(point, method, path, node)

    def _saw(self, entry: JournalEntry) -> None:
        if self._is_due(entry.method, entry.path, done=True):
            assert self._armed is not None
            self._armed[2]()

    def _is_due(self, method: str, path: str, *, done: bool = False) -> bool:
        if self._armed is None or self._seen < 0 or (self._armed[1] is Moment.DONE) is not done:
            return False
        spot = self._armed[0]
        entry: Any = _Called(method, path)
        if spots_of([entry])[0] == Spot(method=spot.method, path=spot.path, nth=1):
            self._seen += 1
        if self._seen != spot.nth:
            return False
        self._seen = -1
        return True

    def _set_pace(self, seconds: float) -> None:
        slow = (*_SLOW, *_ALSO_SLOW)
        self._running.world.latency.overrides_s = dict.fromkeys(slow, seconds) if seconds else {}


class _Called:
    """What of a call tells which spot it is."""

    def __init__(self, method: str, path: str) -> None:
        self.method = method
        self.path = path
