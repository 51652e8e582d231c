"""What is made once is read by many, each at its own pace, and kept while it is whole and there is room."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.processes import open_descriptors

from stackyard.base.errors import StackyardError
from stackyard.controller.repositories.spool import Spool, Spools


async def read(spool: Spool) -> bytes:
    return b"".join([piece async for piece in spool.pieces()])


def test_readers_get_everything_while_it_is_written_and_after(tmp_path: Path) -> None:
    async def run() -> None:
        spool = Spool(tmp_path)
        early = asyncio.create_task(read(spool))
        await asyncio.sleep(0)
        for number in range(100):
            spool.add(b"%d," % number)
            await asyncio.sleep(0)
        spool.end(is_whole=True)
        wanted = b"".join(b"%d," % number for number in range(100))
        assert (await early, await read(spool), spool.size) == (wanted, wanted, len(wanted))

    asyncio.run(run())
    assert list(tmp_path.iterdir()) == []


def test_the_same_question_is_answered_once_however_many_ask(tmp_path: Path) -> None:
    async def run() -> int:
        spools, made = Spools(tmp_path, at_once=2), []

        async def fill(spool: Spool) -> bool:
            made.append(spool)
            await asyncio.sleep(0)
            spool.add(b"answer")
            return True

        answers = await asyncio.gather(*(read(spools.get("question", fill)) for _ in range(50)))
        assert set(answers) == {b"answer"}
        await spools.close()
        return len(made)

    assert asyncio.run(run()) == 1


async def test_an_answer_that_failed_is_asked_for_again(tmp_path: Path) -> None:
    spools, tries = Spools(tmp_path, at_once=2), []

    async def fill(spool: Spool) -> bool:
        tries.append(spool)
        if len(tries) == 1:
            raise StackyardError("git failed")
        spool.add(b"answer")
        return True

    first = spools.get("question", fill)
    await first.wait_until_begun()
    assert (await read(first), first.is_whole) == (b"", False)
    assert await read(spools.get("question", fill)) == b"answer"
    await spools.close()


def test_no_more_are_made_at_once_than_allowed_and_closing_ends_them(tmp_path: Path) -> None:
    async def run() -> None:
        spools, running, most = Spools(tmp_path, at_once=3), 0, 0

        async def fill(spool: Spool) -> bool:
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                await asyncio.sleep(3600)
            finally:
                running -= 1
            return True

        for number in range(10):
            spools.get(number, fill)
        for _ in range(5):
            await asyncio.sleep(0)
        assert (running, most) == (3, 3)
        await spools.close()
        assert running == 0

    asyncio.run(run())


def test_files_are_let_go_with_their_last_reader(tmp_path: Path) -> None:
    before = open_descriptors()

    async def run() -> None:
        spools = Spools(tmp_path, at_once=2)

        async def fill(spool: Spool) -> bool:
            spool.add(b"x" * 1000)
            return True

        held = [spools.get(number, fill) for number in range(400)]
        for spool in held:
            assert len(await read(spool)) == 1000
        await spools.close()

    asyncio.run(run())
    assert open_descriptors() <= before
