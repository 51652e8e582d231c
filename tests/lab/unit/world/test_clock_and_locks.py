"""The lab's clock, and the locks that give up by it."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from pvelab.server.problems import PveError
from pvelab.world.clock import LabClock
from pvelab.world.locks import Locks


async def test_two_hours_pass_at_once() -> None:
    clock = LabClock()
    before = clock.now()
    sleeper = asyncio.create_task(clock.sleep(7200))
    await asyncio.sleep(0)
    clock.advance(7200)
    await sleeper
    assert clock.now() - before >= 7200


async def test_a_held_clock_moves_only_when_it_is_advanced() -> None:
    clock = LabClock()
    clock.hold()
    held = clock.now()
    sleeper = asyncio.create_task(clock.sleep(5))
    await asyncio.sleep(0.01)
    assert clock.now() == held
    clock.advance(4)
    await asyncio.sleep(0)
    assert not sleeper.done()
    clock.advance(1)
    await sleeper
    clock.release()
    assert clock.now() >= held + 5


def test_a_free_lock_is_taken_without_a_pause_and_in_the_order_of_asking() -> None:
    async def main() -> list[int]:
        locks, order = Locks(LabClock()), []

        async def hold(number: int) -> None:
            async with locks.guest("qemu", 100):
                order.append(number)
                await asyncio.sleep(0)

        await asyncio.gather(*(hold(number) for number in range(4)))
        assert not locks.is_held("/var/lock/qemu-server/lock-100.conf")
        return order

    assert asyncio.run(main()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("qemu", "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout"),
        ("lxc", "can't lock file '/run/lock/lxc/pve-config-100.lock' - got timeout"),
        ("local", "can't lock file '/var/lock/pve-manager/pve-storage-local' - got timeout"),
        ("shared", "cfs-lock 'storage-nfs' error: got lock request timeout"),
    ],
)
async def test_a_lock_that_stays_gives_the_waiter_a_timeout(kind: str, text: str) -> None:
    clock = LabClock()
    clock.hold()
    locks = Locks(clock)

    def lock() -> contextlib.AbstractAsyncContextManager[None]:
        if kind == "local":
            return locks.storage("local", "pve1")
        return locks.storage("nfs", None) if kind == "shared" else locks.guest(kind, 100)

    async def wait() -> None:
        async with lock():
            pass

    async with lock():
        waiter = asyncio.create_task(wait())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        clock.advance(10)
        with pytest.raises(PveError) as caught:
            await waiter
        assert caught.value.text == text


async def test_a_waiter_that_is_cancelled_does_not_keep_the_lock() -> None:
    locks = Locks(LabClock())
    async with locks.hold("x", "no"):
        waiter = asyncio.create_task(locks.hold("x", "no").__aenter__())
        await asyncio.sleep(0)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
    assert not locks.is_held("x")


def test_who_only_reads_shares_a_lock_and_who_changes_waits_for_all_of_them() -> None:
    async def main() -> list[str]:
        locks = Locks(LabClock())
        events: list[str] = []
        release = asyncio.Event()

        async def hold(name: str, *, shared: bool) -> None:
            async with locks.guest("qemu", 100, shared=shared):
                events.append(name)
                if shared:
                    await release.wait()

        tasks = [asyncio.create_task(hold(f"reader {number}", shared=True)) for number in range(2)]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(hold("writer", shared=False)))
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(hold("late reader", shared=True)))
        await asyncio.sleep(0)
        assert events == ["reader 0", "reader 1"]
        release.set()
        await asyncio.gather(*tasks)
        assert not locks.is_held("/var/lock/qemu-server/lock-100.conf")
        return events

    assert asyncio.run(main()) == ["reader 0", "reader 1", "writer", "late reader"]


async def test_readers_behind_a_writer_who_gives_up_share_the_lock_again() -> None:
    clock = LabClock()
    clock.hold()
    locks = Locks(clock)
    entered = asyncio.Event()

    async def read() -> None:
        async with locks.hold("x", "no", 100, shared=True):
            entered.set()

    async with locks.hold("x", "no", shared=True):
        writer = asyncio.create_task(locks.hold("x", "no").__aenter__())
        await asyncio.sleep(0)
        reader = asyncio.create_task(read())
        await asyncio.sleep(0)
        assert not entered.is_set()
        clock.advance(10)
        with pytest.raises(PveError, match="no"):
            await writer
        await reader
    assert entered.is_set()
    assert not locks.is_held("x")
