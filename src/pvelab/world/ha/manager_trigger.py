"""What wakes the manager of HA when something has changed.

Nothing here polls: the documents that matter are watched, and whatever changes one of them lets the manager
look at the cluster once more. In a lab without latency it has done all that it can before the call that
changed something is answered; otherwise it looks a little later, as on a real cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from pvelab.faults.latency import Work
from pvelab.server.problems import defect
from pvelab.world.ha import config
from pvelab.world.ha.groups import GROUPS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from pvelab.faults.latency import Latency
    from pvelab.world.clock import LabClock
    from pvelab.world.store import Document, Store

__all__ = ["ManagerTrigger"]

# What a round can set off at once ends long before; a lab that does not come to rest must still answer.
_MOST_ROUNDS = 100


class ManagerTrigger:
    """Wakes the manager.

    Args:
        store: What is watched.
        clock: The lab's time.
        latency: How long the manager takes to notice.
    """

    def __init__(self, store: Store, clock: LabClock, latency: Latency) -> None:
        self._store = store
        self._clock = clock
        self._latency = latency
        self._wake = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._timers: set[asyncio.Task[None]] = set()
        self._timer_at = 0.0
        self._act: Callable[[], float | None] | None = None
        self._is_ours: Callable[[str], bool] = lambda _upid: False
        for collection in (config.RESOURCES, config.RULES, GROUPS, config.COMMANDS, "nodes", "cluster"):
            store.watch(collection, self._notice)
        store.watch("guests", self._notice_guest)
        store.watch("tasks", self._notice_task)

    @contextlib.asynccontextmanager
    async def attend(
        self, act: Callable[[], float | None], is_ours: Callable[[str], bool]
    ) -> AsyncIterator[None]:
        """Let a manager act for the length of the block.

        Args:
            act: One round, in the running transaction; it returns when it wants to look again by itself.
            is_ours: Tells whether a task is one that it waits for.
        """
        self._act, self._is_ours = act, is_ours
        self._wake.set()
        worker = asyncio.create_task(self._run(), name="ha-manager")
        try:
            yield
        finally:
            self._act = None
            ending = {worker, *self._timers}
            for one in ending:
                one.cancel()
            await asyncio.wait(ending)

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Keep the manager from acting for the length of the block; what it noticed it acts on afterwards."""
        act, self._act = self._act, None
        try:
            yield
        finally:
            self._act = act
            self._wake.set()

    async def settle(self, settle_tasks: Callable[[], Awaitable[None]]) -> None:
        """Let the manager do all that takes no time.

        Args:
            settle_tasks: Lets tasks that were just started do what they do at once.
        """
        rounds = 0
        while self._wake.is_set() and self._act is not None and rounds < _MOST_ROUNDS:
            if self._latency.seconds(Work.HA) > 0:
                return
            self._round()
            await settle_tasks()
            rounds += 1

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so; it is asked again after each round of the manager."""
        while not condition():
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await self._clock.sleep(self._latency.seconds(Work.HA))
            self._round()
            # Tasks that the round started have their turn before the next one.
            await asyncio.sleep(0)

    def _round(self) -> None:
        self._wake.clear()
        if self._act is None or not self._has_work():
            return
        try:
            with self._store.transaction():
                again_at = self._act()
        except Exception as err:  # The edge of the manager: a defect of one round must not end it for good.
            defect("the manager of HA", err)
            return
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)
        if again_at is not None:
            self._set_timer(again_at)

    def _set_timer(self, moment: float) -> None:
        if self._timers and self._timer_at <= moment:
            return
        for old in self._timers:
            old.cancel()
        self._timer_at = moment
        timer = asyncio.get_running_loop().create_task(self._wake_at(moment), name="ha-timer")
        self._timers.add(timer)
        timer.add_done_callback(self._timers.discard)

    async def _wake_at(self, moment: float) -> None:
        await self._clock.sleep(moment - self._clock.now())
        self._wake.set()

    def _has_work(self) -> bool:
        return any(self._store.items(name) for name in (config.RESOURCES, config.COMMANDS)) or bool(
            config.status(self._store)
        )

    def _notice(self, _key: str, _old: Document | None, _new: Document | None) -> None:
        self._wake.set()

    def _notice_guest(self, key: str, _old: Document | None, _new: Document | None) -> None:
        resources = self._store.items(config.RESOURCES)
        if resources and (f"vm:{key}" in resources or f"ct:{key}" in resources):
            self._wake.set()

    def _notice_task(self, key: str, _old: Document | None, new: Document | None) -> None:
        if new is not None and new.get("status") and self._is_ours(key):
            self._wake.set()
