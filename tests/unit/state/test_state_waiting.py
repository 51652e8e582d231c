"""Clients that wait for a lock: in order, told at once when it is free, never given it when they left."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from tests.support.state_client import Client, lock_body, lock_id_of, served, state_body

from stackyard.clients.objects import MemoryObjects, acquire
from stackyard.state import Actor, StateService
from stackyard.state.refusals import StateLockedError
from stackyard.state.run_lock import RunLock, hold_state

PATIENCE_S = 60.0
ME = Actor(principal="tests")


class Clock:
    """A time of day that a test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def test_those_who_wait_are_served_in_the_order_they_came() -> None:
    clock = Clock()
    service = StateService(MemoryObjects(), clock=clock)
    holder, first, second, passer = (lock_body(who=who) for who in ("holder", "first", "second", "passer"))
    async with served(service) as client:
        await client.lock("a", holder)
        for lock in (first, second, first, second):
            assert (await client.lock("a", lock)).status == 423
            clock.now += 1.0
        await client.unlock("a", holder)
        refused = await client.lock("a", second)
        assert (refused.status, refused.document["Who"]) == (423, "first")
        assert (await client.lock("a", passer)).status == 423
        assert (await client.lock("a", first)).status == 200
        await client.unlock("a", first)
        assert (await client.lock("a", passer)).status == 423
        assert (await client.lock("a", second)).status == 200
        await client.unlock("a", second)


async def test_a_place_is_kept_only_as_long_as_its_owner_would_ask_again() -> None:
    clock = Clock()
    service = StateService(MemoryObjects(), clock=clock)
    holder, gone, next_one = (lock_body(who=who) for who in ("holder", "gone", "next"))
    async with served(service) as client:
        await client.lock("a", holder)
        for _ in range(2):
            await client.lock("a", gone)
            clock.now += 1.0
        await client.unlock("a", holder)
        assert (await client.lock("a", next_one)).status == 423
        clock.now += 30.0
        assert (await client.lock("a", next_one)).status == 200


async def test_who_asks_once_keeps_nobody_waiting() -> None:
    service = StateService(MemoryObjects())
    holder = lock_body()
    async with served(service) as client:
        await client.lock("a", holder)
        assert (await client.lock("a", lock_body())).status == 423
        await client.unlock("a", holder)
        await client.cycle("a", 1)


async def test_who_waits_has_the_lock_the_moment_it_is_released() -> None:
    service = StateService(MemoryObjects())
    holder, waiter = lock_body(), lock_body()
    async with served(service, hold_s=PATIENCE_S) as client:
        await client.lock("a", holder)
        # The first request is answered at once: the client may not want to wait.
        assert (await client.lock("a", waiter)).status == 423
        waiting = asyncio.create_task(client.lock("a", waiter))
        await until_waiting(client)
        await client.post("a", state_body(1), lock_id_of(holder))
        await client.unlock("a", holder)
        assert (await asyncio.wait_for(waiting, PATIENCE_S)).status == 200
        head = service.head("a")
        assert head.lock is not None
        assert head.lock.info.id == lock_id_of(waiter)
        assert head.waiting == ()


async def test_a_client_that_left_while_it_waited_is_not_given_the_lock() -> None:
    service = StateService(MemoryObjects())
    holder, gone = lock_body(), lock_body()
    async with served(service, hold_s=PATIENCE_S) as client:
        await client.lock("a", holder)
        await client.lock("a", gone)
        waiting = asyncio.create_task(client.lock("a", gone))
        await until_waiting(client)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await until_waiting(client, count=0)
        await client.unlock("a", holder)
        head = await asyncio.to_thread(service.head, "a")
        assert head.lock is None


async def until_waiting(client: Client, count: int = 1) -> None:
    """Return when as many requests are held open."""
    while f"stackyard_state_waiting {count}\n" not in (await client.request("GET", "/metrics")).body.decode():
        await asyncio.sleep(0.01)


# --- Machines whose clocks differ


def ask(service: StateService, lock: bytes, *, is_waiting: bool = True) -> bool:
    """Return whether a machine gets the lock."""
    try:
        service.locks.lock("a", lock, ME, is_waiting=is_waiting)
    except StateLockedError:
        return False
    return True


@pytest.mark.parametrize("ahead_s", [-3600.0, -900.0, 0.0, 900.0, 3600.0])
def test_a_waiter_that_died_keeps_the_next_waiting_no_longer_if_its_clock_was_wrong(ahead_s: float) -> None:
    objects, clock = MemoryObjects(), Clock()
    ours = StateService(objects, clock=clock)
    theirs = StateService(objects, clock=lambda: clock.now + ahead_s)
    holder, gone, after = (lock_body(who=who) for who in ("holder", "gone", "next"))
    ours.locks.lock("a", holder, ME)
    assert not ask(theirs, gone)
    ours.locks.unlock("a", lock_id_of(holder), ME)
    assert not ask(ours, after)
    clock.now += 18.0
    assert not ask(ours, after)
    clock.now += 2.0
    assert ask(ours, after)


@pytest.mark.parametrize("ahead_s", [-3600.0, -900.0, 900.0, 3600.0])
def test_a_waiter_that_lives_keeps_its_place_if_its_clock_is_wrong(ahead_s: float) -> None:
    objects, clock = MemoryObjects(), Clock()
    ours = StateService(objects, clock=clock)
    theirs = StateService(objects, clock=lambda: clock.now + ahead_s)
    holder, first, second = (lock_body(who=who) for who in ("holder", "first", "second"))
    ours.locks.lock("a", holder, ME)
    for _ in range(4):
        assert not ask(theirs, first)
        assert not ask(ours, second)
        clock.now += 16.0
    assert [waiter.info.who for waiter in ours.head("a").waiting] == ["first", "second"]
    ours.locks.unlock("a", lock_id_of(holder), ME)
    assert not ask(ours, second)
    assert ask(theirs, first)


def test_a_client_that_goes_to_a_service_with_another_clock_keeps_its_place() -> None:
    objects, clock = MemoryObjects(), Clock()
    services = [StateService(objects, clock=clock), StateService(objects, clock=lambda: clock.now + 900.0)]
    watcher = StateService(objects, clock=clock)
    holder, wanderer, after = (lock_body(who=who) for who in ("holder", "wanderer", "next"))
    watcher.locks.lock("a", holder, ME)
    for number in range(6):
        assert not ask(services[number % 2], wanderer)
        assert not ask(watcher, after)
        clock.now += 16.0
    watcher.locks.unlock("a", lock_id_of(holder), ME)
    assert not ask(watcher, after)
    assert ask(services[0], wanderer)


def test_an_entry_that_is_left_over_from_another_day_keeps_no_one_waiting() -> None:
    objects, clock = MemoryObjects(), Clock()
    holder, gone = lock_body(who="holder"), lock_body(who="gone")
    service = StateService(objects, clock=clock)
    service.locks.lock("a", holder, ME)
    assert not ask(service, gone)
    service.locks.unlock("a", lock_id_of(holder), ME)
    clock.now += 100_000.0
    assert ask(StateService(objects, clock=clock), lock_body(who="next"), is_waiting=False)


async def test_a_run_that_does_not_wait_finds_out_that_those_in_the_queue_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stackyard.state.lock_rules.LONGEST_PROMISE_S", 1.0)
    objects = MemoryObjects()
    holder, gone = lock_body(who="holder"), lock_body(who="gone")
    service = StateService(objects)
    service.locks.lock("a", holder, ME)
    assert not ask(service, gone)
    acquire(objects, "runs/1", owner="me", promise_s=PATIENCE_S)

    def hold() -> contextlib.AbstractAsyncContextManager[RunLock]:
        return hold_state(
            StateService(objects), "a", ME, lease="runs/1", wait_s=0.0, on_wait=lambda name, err: None
        )

    with pytest.raises(StateLockedError, match="holder"):
        await hold().__aenter__()
    service.locks.unlock("a", lock_id_of(holder), ME)
    async with hold() as held:
        assert held.has_waited
    assert service.head("a").waiting == ()
