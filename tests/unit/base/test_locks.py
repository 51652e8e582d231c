from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.programs import LONG_S

from stackyard.base.errors import FileError
from stackyard.base.locks import exclusive

HOLDER = """
import asyncio, sys
from pathlib import Path
from stackyard.base.locks import exclusive

async def hold():
    async with exclusive(Path(sys.argv[1]), "the holder", lambda note: print(note, flush=True)):
        print("held", flush=True)
        await asyncio.Event().wait()

asyncio.run(hold())
"""


def never(holder: str) -> None:
    raise AssertionError(f"there is nobody to wait for, but {holder}")


def test_only_one_holds_it_and_the_other_is_told_who(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    order: list[str] = []

    async def second(waits: asyncio.Event) -> None:
        def told(holder: str) -> None:
            order.append(f"waits for {holder}")
            waits.set()

        async with exclusive(lock, "the second", told):
            order.append("second in")

    async def scenario() -> None:
        waits = asyncio.Event()
        async with exclusive(lock, "the first", never):
            task = asyncio.create_task(second(waits))
            await asyncio.wait_for(waits.wait(), LONG_S)
            order.append("first out")
        await asyncio.wait_for(task, LONG_S)

    asyncio.run(scenario())
    assert order == ["waits for the first", "first out", "second in"]


def test_a_wait_that_is_cancelled_takes_nothing_with_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"

    async def waiter(waits: asyncio.Event) -> None:
        async with exclusive(lock, "never", lambda _: waits.set()):
            raise AssertionError("the lock was not free")

    async def scenario() -> bool:
        waits = asyncio.Event()
        async with exclusive(lock, "the first", never):
            task = asyncio.create_task(waiter(waits))
            await asyncio.wait_for(waits.wait(), LONG_S)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        # The thread that was left behind gets the lock now and gives it back.
        async with asyncio.timeout(LONG_S), exclusive(lock, "the third", lambda _: None):
            return True

    assert asyncio.run(scenario())


def test_a_program_that_stops_waiting_can_end(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, lock], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        waiter = subprocess.Popen([sys.executable, "-c", HOLDER, lock], stdout=subprocess.PIPE, text=True)
        with waiter:
            assert waiter.stdout is not None
            told = waiter.stdout.readline()
            waiter.send_signal(signal.SIGINT)
            status = waiter.wait(LONG_S)
        holder.kill()
    assert told == "the holder\n"
    assert status != 0


def test_the_kernel_takes_the_lock_from_a_killed_holder(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, lock], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        async def scenario() -> list[str]:
            told: list[str] = []

            def waits(note: str) -> None:
                told.append(note)
                holder.kill()

            async with asyncio.timeout(LONG_S), exclusive(lock, "the next", waits):
                return told

        assert asyncio.run(scenario()) == ["the holder"]


def test_a_lock_file_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with exclusive(tmp_path / "missing" / "lock", "nobody", never):
            raise AssertionError("there is no such folder")

    with pytest.raises(FileError, match="missing/lock"):
        asyncio.run(scenario())
