"""A run whose lease no longer protects it stops itself: others may have taken over what it holds."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator, Mapping

import pytest

from stackyard.base import events
from stackyard.base.run_stop import stop_run
from stackyard.clients.objects import ANYTHING, Expect, MemoryObjects, StoreError, Tag, acquire
from stackyard.clients.objects.heartbeat import Heartbeat
from stackyard.state.runs import hold_run

PATIENCE_S = 30.0
PROMISE_S = 0.2


class FaultyObjects(MemoryObjects):
    """A store that fails, or does not answer, when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self.answers = threading.Event()
        self.answers.set()

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        self.answers.wait()
        if self.is_away:
            raise StoreError("away")
        return super().put(key, data, expect=expect, before=before)


async def hold_until_told(objects: FaultyObjects, *, is_away: bool = False, is_silent: bool = False) -> str:
    """Return what a run is told whose store fails."""
    told = asyncio.get_running_loop().create_future()
    async with hold_run(objects, "one", owner="me", promise_s=PROMISE_S, on_loss=told.set_result):
        objects.is_away = is_away
        if is_silent:
            objects.answers.clear()
        try:
            return str(await asyncio.wait_for(told, PATIENCE_S))
        finally:
            objects.answers.set()


@pytest.mark.parametrize("fault", ["is_away", "is_silent"])
async def test_a_run_that_cannot_renew_its_lease_in_time_is_told(fault: str) -> None:
    reason = await hold_until_told(FaultyObjects(), **{fault: True})
    assert reason == "The lease runs/one was not renewed for 0.2 s: others may take it over."


async def test_a_run_whose_lease_was_taken_over_is_told() -> None:
    objects, told = MemoryObjects(), asyncio.get_running_loop().create_future()
    async with hold_run(objects, "one", owner="me", promise_s=PROMISE_S, on_loss=told.set_result):
        objects.put("runs/one", b"another's", expect=ANYTHING)
        reason = await asyncio.wait_for(told, PATIENCE_S)
    assert reason == "Another run took over the lease runs/one."


async def test_a_run_that_renews_its_lease_is_told_nothing() -> None:
    told: list[str] = []
    async with hold_run(MemoryObjects(), "one", owner="me", promise_s=0.6, on_loss=told.append):
        await asyncio.sleep(1.5)
    assert told == []


def test_a_heartbeat_after_a_sleep_does_not_undo_the_silence() -> None:
    """The lease is still ours, but others may have broken the locks of the run while the machine slept."""
    clock = [100.0]
    lease = acquire(MemoryObjects(), "runs/one", owner="me", promise_s=30.0)
    assert lease is not None
    heartbeat = Heartbeat(lease, clock=lambda: clock[0])
    try:
        clock[0] += 29.0
        assert heartbeat.beat()
        clock[0] += 29.0
        assert heartbeat.beat()
        assert heartbeat.explain_loss() is None
        clock[0] += 31.0
        assert not heartbeat.beat()
        assert heartbeat.explain_loss() is not None
        assert not heartbeat.is_lost
    finally:
        heartbeat.stop()


@contextlib.contextmanager
def count_signals() -> Iterator[list[int]]:
    loop, heard = asyncio.get_running_loop(), list[int]()
    loop.add_signal_handler(signal.SIGTERM, heard.append, signal.SIGTERM)
    try:
        yield heard
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def test_a_run_that_loses_several_leases_is_stopped_once() -> None:
    """A second signal would keep the engine from saving its state."""
    said: list[events.Event] = []
    with count_signals() as heard:
        for reason in ("first", "second"):
            stop_run(reason, said.append)
            await asyncio.sleep(0.1)
        assert heard == [signal.SIGTERM]
    assert [one.text for one in said if isinstance(one, events.LogLine)] == ["first", "second"]


async def test_a_run_that_no_one_watches_stops_itself() -> None:
    objects = FaultyObjects()
    with count_signals() as heard:
        async with hold_run(objects, "one", owner="me", promise_s=PROMISE_S):
            objects.is_away = True
            async with asyncio.timeout(PATIENCE_S):
                while not heard:
                    await asyncio.sleep(0.01)
            objects.is_away = False
    assert objects.list("runs/") == ()
