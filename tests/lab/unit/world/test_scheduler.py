"""The scheduler begins what is due, and goes on when a plan fails."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from pvelab.world.clock import LabClock
from pvelab.world.scheduler import Scheduler
from pvelab.world.store import Store


@dataclass
class Hourly:
    """Runs once an hour of lab time."""

    clock: LabClock
    broken: bool = False
    last: float = 0.0
    runs: list[float] = field(default_factory=list)
    collections: Sequence[str] = ("jobs",)

    def next_due(self) -> float | None:
        return self.last + 3600

    def begin(self, now: float) -> Sequence[Coroutine[Any, Any, None]]:
        if now < self.last + 3600:
            return ()
        self.last = now
        if self.broken:
            raise RuntimeError("broken on purpose")
        return [self._run(now)]

    async def _run(self, now: float) -> None:
        self.runs.append(now)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_jobs_run_at_their_times_and_a_broken_plan_stops_no_other() -> None:
    clock, store = LabClock(), Store()
    clock.hold()
    scheduler = Scheduler(store, clock)
    good, bad = Hourly(clock, last=clock.now()), Hourly(clock, last=clock.now(), broken=True)
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
    async with scheduler.attend(bad, good):
        await turns()
        assert good.runs == []
        for hour in (1, 2):
            clock.advance(3601)
            await turns()
            assert len(good.runs) == len(reported) == hour
        # A change of a document that a plan watches lets it look at once.
        good.last = 0.0
        with store.transaction():
            store.put("jobs", "one", {})
        await scheduler.settle()
        assert len(good.runs) == 3
    clock.advance(7200)
    await turns()
    assert len(good.runs) == 3


async def test_work_that_runs_is_broken_off_at_the_end() -> None:
    clock, store = LabClock(), Store()
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("interrupted")

    class Endless(Hourly):
        def begin(self, now: float) -> Sequence[Coroutine[Any, Any, None]]:
            due = now >= self.last + 3600
            self.last = now
            return [work()] if due else ()

    async with Scheduler(store, clock).attend(Endless(clock)):
        await turns()
    assert ended == ["interrupted"]
