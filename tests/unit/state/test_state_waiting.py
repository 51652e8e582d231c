"""Clients that wait for a lock: in order, told at once when it is free, never given it when they left."""

from __future__ import annotations

import asyncio
import contextlib

from tests.support.state_client import Client, lock_body, lock_id_of, served, state_body

from stackyard.clients.objects import MemoryObjects
from stackyard.state import Actor, StateService
from stackyard.state.refusals import StateLockedError

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


def test_a_dead_waiter_whose_clock_was_ahead_keeps_no_one_from_the_lock() -> None:
    objects, clock = MemoryObjects(), Clock()
    ours = StateService(objects, clock=clock)
    theirs = StateService(objects, clock=lambda: clock.now + 3600.0)
    holder, gone = lock_body(who="holder"), lock_body(who="gone")
    ours.locks.lock("a", holder, ME)
    for _ in range(3):
        with contextlib.suppress(StateLockedError):
            theirs.locks.lock("a", gone, ME)
        clock.now += 1.0
    ours.locks.unlock("a", lock_id_of(holder), ME)
    assert ours.locks.lock("a", lock_body(who="next"), ME).info.who == "next"
