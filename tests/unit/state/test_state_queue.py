"""Runs that queue for one state: woken in order, and quiet while it is not their turn."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.support.postgres import new_schema, require_postgres, use_password
from tests.support.state_client import Client, lock_body, served

from stackyard.clients.objects import MemoryObjects, Objects, StoreError, Tag, acquire, open_objects
from stackyard.state import Actor, StateLockedError, StateService
from stackyard.state.run_lock import RunLock, hold_state

PATIENCE_S = 100.0
NAME = "env/a"
ME = Actor(principal="holder")
HOLDER = b'{"ID": "holder", "Operation": "apply", "Who": "holder"}'


class CountedObjects(MemoryObjects):
    """A store that counts the writes of heads."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = 0

    def _write(self, key: str, data: bytes) -> Tag:
        self.heads += key.startswith("heads/")
        return super()._write(key, data)


class Clock:
    """A time of day that a test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@contextlib.asynccontextmanager
async def hold(service: StateService, number: int, *, wait_s: float = PATIENCE_S) -> AsyncIterator[RunLock]:
    """Hold the lock as a run that is alive."""
    name = f"run-{number}"
    lease = await asyncio.to_thread(
        acquire, service.objects, f"runs/{number}", owner=name, promise_s=PATIENCE_S
    )
    assert lease is not None
    holding = hold_state(
        service,
        NAME,
        Actor(principal=name, address=name),
        lease=f"runs/{number}",
        wait_s=wait_s,
        on_wait=lambda name, err: None,
    )
    async with holding as held:
        yield held


async def queue_up(service: StateService, count: int) -> None:
    """Return when as many wait."""
    until = time.monotonic() + PATIENCE_S
    while len(service.head(NAME).waiting) != count:
        assert time.monotonic() < until
        await asyncio.sleep(0.01)


def make_stores(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Objects]:
    if kind == "postgresql":
        use_password(monkeypatch)
        address = require_postgres().address(new_schema())
        return lambda: open_objects(address)
    return lambda: open_objects(folder / "store")


@pytest.mark.parametrize("kind", ["postgresql", pytest.param("sqlite", marks=pytest.mark.soak)])
def test_fifty_processes_get_the_lock_in_order_and_soon(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store = make_stores(kind, tmp_path, monkeypatch)
    count, times = 50, tmp_path / "times"
    with contextlib.closing(open_store()) as objects:
        StateService(objects).locks.lock(NAME, HOLDER, ME)
    children = [_fork(open_store, number, times) for number in range(count)]
    with contextlib.closing(open_store()) as objects:
        service = StateService(objects)
        asyncio.run(queue_up(service, count))
        order = [waiter.info.who for waiter in service.head(NAME).waiting]
        released = time.time()
        service.locks.unlock(NAME, "holder", ME)
        for child in children:
            assert os.waitpid(child, 0)[1] == 0
        assert service.audit.verify(NAME).is_whole
    rows = [line.split() for line in times.read_text().splitlines()]
    assert [who for who, _, _ in rows] == order
    waits = []
    for _, got, let_go in rows:
        waits.append(float(got) - released)
        released = float(let_go)
    # bench/state_queue.py holds it against what the store itself needs; here only that no one is forgotten.
    assert sorted(waits)[count // 2] < 2.0
    assert max(waits) < 20.0


async def _run(open_store: Callable[[], Objects], number: int, times: Path) -> None:
    with contextlib.closing(open_store()) as objects:
        async with hold(StateService(objects), number):
            got = time.time()
            with times.open("a") as file:
                file.write(f"run-{number} {got} {time.time()}\n")


def _fork(open_store: Callable[[], Objects], number: int, times: Path) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        asyncio.run(_run(open_store, number, times))
        status = 0
    finally:
        os._exit(status)


async def test_a_wake_up_of_those_who_are_not_next_writes_nothing() -> None:
    objects = CountedObjects()
    service = StateService(objects)
    service.locks.lock(NAME, HOLDER, ME)
    waiting = [asyncio.create_task(_hold_briefly(service, number)) for number in range(10)]
    await queue_up(service, 10)
    before = objects.heads
    for number in range(5):
        service.locks.freeze(NAME, ME, reason=f"change {number}")
        await asyncio.sleep(0.1)
    service.locks.thaw(NAME, ME)
    await asyncio.sleep(0.5)
    assert objects.heads - before == 6
    service.locks.unlock(NAME, "holder", ME)
    await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)
    # The release, and for each run its grant and its release.
    assert objects.heads - before == 6 + 1 + 2 * 10


async def _hold_briefly(service: StateService, number: int) -> None:
    async with hold(service, number):
        pass


async def test_who_stops_waiting_leaves_the_queue_at_once() -> None:
    service = StateService(MemoryObjects())
    service.locks.lock(NAME, HOLDER, ME)
    leaving = asyncio.create_task(_hold_briefly(service, 1))
    await queue_up(service, 1)
    staying = asyncio.create_task(_hold_briefly(service, 2))
    await queue_up(service, 2)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    assert [waiter.info.who for waiter in service.head(NAME).waiting] == ["run-2"]
    with pytest.raises(StateLockedError):
        async with hold(service, 3, wait_s=0.05):
            pass
    with pytest.raises(StateLockedError):
        async with hold(service, 4, wait_s=0.0):
            pass
    assert [one.info.who for one in service.head(NAME).waiting if one.polls > 1] == ["run-2"]
    service.locks.unlock(NAME, "holder", ME)
    await asyncio.wait_for(staying, PATIENCE_S)


async def test_a_run_that_died_in_the_queue_delays_the_next_only_as_long_as_its_place_lasts() -> None:
    clock = Clock()
    service = StateService(MemoryObjects(), clock=clock)
    service.locks.lock(NAME, HOLDER, ME)
    dead = b'{"ID": "dead", "Operation": "apply", "Who": "dead"}'
    with pytest.raises(StateLockedError):
        service.locks.lock(NAME, dead, ME, is_waiting=True)
    waiting = asyncio.create_task(_hold_briefly(service, 1))
    await queue_up(service, 2)
    service.locks.unlock(NAME, "holder", ME)
    await asyncio.sleep(0.2)
    assert not waiting.done()
    clock.now += 20.0
    await asyncio.wait_for(waiting, PATIENCE_S)


async def test_the_next_takes_over_from_a_holder_that_died() -> None:
    objects = MemoryObjects()
    service = StateService(objects)
    lease = acquire(objects, "runs/holder", owner="holder", promise_s=PATIENCE_S)
    assert lease is not None
    service.locks.lock(NAME, HOLDER, ME, lease="runs/holder")
    waiting = [asyncio.create_task(_hold_briefly(service, number)) for number in range(3)]
    await queue_up(service, 3)
    lease.release()
    await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE_S)


async def test_a_place_is_kept_for_as_long_as_the_run_waits() -> None:
    """It asks again in time, and no more often than the queue needs."""
    clock, objects = Clock(), CountedObjects()
    service = StateService(objects, clock=clock)
    service.locks.lock(NAME, HOLDER, ME)
    waiting = asyncio.create_task(_hold_briefly(service, 1))
    await queue_up(service, 1)
    before = objects.heads
    for _ in range(2):
        # Three seconds before the place would be lost.
        due_at = service.head(NAME).waiting[0].due_at
        clock.now = due_at - 2.9
        until = time.monotonic() + PATIENCE_S
        while service.head(NAME).waiting[0].due_at == due_at:
            assert time.monotonic() < until
            await asyncio.sleep(0.02)
    assert objects.heads - before == 2
    service.locks.unlock(NAME, "holder", ME)
    await asyncio.wait_for(waiting, PATIENCE_S)


class UnwatchedObjects(MemoryObjects):
    """A store that has no connection left for a watch."""

    def watch(self, prefix: str) -> contextlib.AbstractContextManager[object]:  # type: ignore[override]
        raise StoreError(f"{prefix} cannot be watched.")


async def test_a_run_whose_store_cannot_be_watched_looks_for_itself() -> None:
    service = StateService(UnwatchedObjects())
    service.locks.lock(NAME, HOLDER, ME)
    waiting = asyncio.create_task(_hold_briefly(service, 1))
    await queue_up(service, 1)
    service.locks.unlock(NAME, "holder", ME)
    await asyncio.wait_for(waiting, PATIENCE_S)


async def test_a_client_of_one_service_is_woken_by_a_release_at_another() -> None:
    objects = CountedObjects()
    holder, waiters = lock_body(), [lock_body(who=f"client-{number}") for number in range(5)]
    async with (
        served(StateService(objects)) as one,
        served(StateService(objects), hold_s=PATIENCE_S) as two,
    ):
        await one.lock("a", holder)
        for waiter in waiters:
            assert (await two.lock("a", waiter)).status == 423
        held = [asyncio.create_task(_cycle_of(two, waiter)) for waiter in waiters]
        await _until_waiting(two, 5)
        before = objects.heads
        await asyncio.sleep(1.2)
        # They have shown that they wait, and are silent until their places are due, after two seconds.
        assert objects.heads == before
        began = time.monotonic()
        await one.unlock("a", holder)
        await asyncio.wait_for(asyncio.gather(*held), PATIENCE_S)
        assert time.monotonic() - began < 20.0
        assert objects.heads - before == 1 + 2 * 5


async def _cycle_of(client: Client, waiter: bytes) -> None:
    reply = await client.lock("a", waiter)
    assert reply.status == 200
    assert (await client.unlock("a", waiter)).status == 200


async def _until_waiting(client: Client, count: int) -> None:
    line = f"stackyard_state_waiting {count}\n"
    while line not in (await client.request("GET", "/metrics")).body.decode():
        await asyncio.sleep(0.01)
