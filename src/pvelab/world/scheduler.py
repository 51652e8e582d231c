"""Jobs that run at certain times: what is due begins, and what is not due is waited for.

A plan is a kind of job. It says when its next one is due and begins those that are. Nothing polls: the
documents that a plan names are watched, and the lab's clock wakes the scheduler when the next job is due.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Protocol

from pvelab.server.problems import defect

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Sequence

    from pvelab.world.clock import LabClock
    from pvelab.world.store import Document, Store

__all__ = ["Plan", "Scheduler"]


class Plan(Protocol):
    """A kind of job."""

    @property
    def collections(self) -> Sequence[str]:
        """The collections whose changes may change what is due."""
        ...

    def next_due(self) -> float | None:
        """Return when the next job is due, None if none ever is."""
        ...

    def begin(self, now: float) -> Sequence[Coroutine[Any, Any, None]]:
        """Begin what is due, in the running transaction; return the work that continues afterwards."""
        ...


class Scheduler:
    """Begins jobs.

    Args:
        store: What is watched.
        clock: The lab's time.
    """

    def __init__(self, store: Store, clock: LabClock) -> None:
        self._store = store
        self._clock = clock
        self._plans: tuple[Plan, ...] = ()
        self._changed = False
        self._alarm: asyncio.Task[None] | None = None
        self._works: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def attend(self, *plans: Plan) -> Any:
        """Let the jobs of some plans run for the length of the block."""
        self._plans = plans
        for collection in {name for plan in plans for name in plan.collections}:
            self._store.watch(collection, self._notice)
        self._plan_a_look()
        try:
            yield
        finally:
            self._plans = ()
            await self.interrupt()

    async def settle(self) -> None:
        """Let what is due begin, and what takes no time be done."""
        if self._changed:
            self._look()
            await asyncio.sleep(0)

    async def interrupt(self) -> None:
        """Break off whatever runs."""
        ending = {*self._works, *({self._alarm} if self._alarm is not None else ())}
        for one in ending:
            one.cancel()
        if ending:
            await asyncio.wait(ending)
        self._alarm = None

    def _notice(self, _key: str, _old: Document | None, _new: Document | None) -> None:
        if not self._changed:
            self._plan_a_look()

    def _plan_a_look(self) -> None:
        self._changed = True
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop().call_soon(self._look_if_changed)

    def _look_if_changed(self) -> None:
        if self._changed:
            self._look()

    def _look(self) -> None:
        self._changed = False
        now = self._clock.now()
        for plan in self._plans:
            with self._report_failures():
                with self._store.transaction():
                    begun = plan.begin(now)
                for work in begun:
                    task = asyncio.get_running_loop().create_task(work, name="job")
                    self._works.add(task)
                    task.add_done_callback(self._works.discard)
        self._set_alarm(now)

    def _set_alarm(self, now: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        moments = [moment for plan in self._plans if (moment := plan.next_due()) is not None]
        if moments:
            delay_s = max(1.0, min(moments) - now)
            self._alarm = asyncio.get_running_loop().create_task(self._wait(delay_s), name="scheduler")

    async def _wait(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        # This one is over: the look sets the next.
        self._alarm = None
        self._look()

    @contextlib.contextmanager
    def _report_failures(self) -> Iterator[None]:
        try:
            yield
        except Exception as err:  # The edge of the scheduler: a defect of one plan must not stop the others.
            defect("the scheduler", err)
