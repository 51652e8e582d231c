"""The socket of the provider is there before the provider is: who comes early waits, and is answered."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

from stackyard.provider.lazy_socket import LazySocket

LONG_S = 60.0


class Place:
    """A doorway, and behind it, once it is open, who says everything twice, and goodbye at the end."""

    def __init__(self, folder: Path) -> None:
        self.path, self.behind = str(folder / "socket"), str(folder / "behind")
        self.knocked = asyncio.Event()
        self.knocks = 0
        self.doorway = LazySocket(self.path, self._on_connection)
        self.server: asyncio.Server | None = None
        self.answers: list[asyncio.Task[None]] = []

    def _on_connection(self) -> None:
        self.knocks += 1
        self.knocked.set()

    async def open(self) -> None:
        self.server = await asyncio.start_unix_server(self._met, self.behind)
        self.doorway.open(self.behind)

    def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.answers.append(asyncio.create_task(self._answer(reader, writer)))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Who asks may have gone.
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 20):
                writer.write(data * 2)
                await writer.drain()
            writer.write(b"goodbye")
        await closed(writer)

    async def close(self) -> None:
        await self.doorway.close()
        if self.server is not None:
            self.server.close()
        await asyncio.gather(*self.answers)


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def place_in(folder: Path) -> AsyncIterator[Place]:
    place = Place(folder)
    try:
        async with asyncio.timeout(LONG_S):
            yield place
    finally:
        await place.close()


async def said(path: str, data: bytes) -> bytes:
    """Connect, say something, and return everything that is answered."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(data)
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        await closed(writer)


async def test_who_comes_early_is_answered_once_it_is_open(tmp_path: Path) -> None:
    async with place_in(tmp_path) as place:
        early = [asyncio.create_task(said(place.path, bytes([n]) * 100_000)) for n in range(5)]
        await place.knocked.wait()
        assert not any(task.done() for task in early)
        await place.open()
        for n, answer in enumerate(await asyncio.gather(*early)):
            assert answer == bytes([n]) * 200_000 + b"goodbye"
        assert place.knocks == 1


async def test_who_comes_and_goes_at_once_is_no_hindrance(tmp_path: Path) -> None:
    # As engines do to see whether anybody is there at all.
    async with place_in(tmp_path) as place:
        _, writer = await asyncio.open_unix_connection(place.path)
        await closed(writer)
        waiting = asyncio.create_task(said(place.path, b"x"))
        await place.knocked.wait()
        await place.open()
        assert await waiting == b"xxgoodbye"


async def test_who_comes_late_meets_the_server_itself(tmp_path: Path) -> None:
    async with place_in(tmp_path) as place:
        await place.open()
        await place.doorway.close()
        assert await said(place.path, b"x") == b"xxgoodbye"
        assert place.knocks == 0


async def test_one_who_is_passed_on_stays_connected_when_others_come(tmp_path: Path) -> None:
    async with place_in(tmp_path) as place:
        reader, writer = await asyncio.open_unix_connection(place.path)
        await place.knocked.wait()
        await place.open()
        assert await said(place.path, b"y") == b"yygoodbye"
        writer.write(b"x")
        assert await reader.readexactly(2) == b"xx"
        await closed(writer)


async def test_who_waits_is_turned_away_when_nobody_will_answer(tmp_path: Path) -> None:
    async with place_in(tmp_path) as place:
        reader, writer = await asyncio.open_unix_connection(place.path)
        await place.knocked.wait()
        await place.doorway.close()
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        await closed(writer)


async def test_who_is_passed_on_is_turned_away_at_the_end(tmp_path: Path) -> None:
    async with place_in(tmp_path) as place:
        reader, writer = await asyncio.open_unix_connection(place.path)
        await place.knocked.wait()
        await place.open()
        writer.write(b"x")
        assert await reader.readexactly(2) == b"xx"
        await place.doorway.close()
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        await closed(writer)


async def test_a_connection_that_breaks_leaves_nothing_that_reads_from_the_next_one(tmp_path: Path) -> None:
    path, behind = str(tmp_path / "socket"), str(tmp_path / "behind")
    lazy_socket = LazySocket(path, lambda: None)
    early = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    early.connect(path)
    with early, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(behind)
        server.listen()
        lazy_socket.open(behind)
        early.sendall(b"not read")
        async with asyncio.timeout(LONG_S):
            answering = await asyncio.to_thread(lambda: server.accept()[0])
            await asyncio.to_thread(answering.recv, 1, socket.MSG_PEEK)
            # What was not read makes this a reset and not an end.
            answering.close()
            assert await asyncio.to_thread(early.recv, 1) == b""
    left = [task for task in asyncio.all_tasks() if "LazySocket" in repr(task)]
    await lazy_socket.close()
    assert left == []
