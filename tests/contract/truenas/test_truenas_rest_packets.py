"""Answers over REST that arrive in several packets."""

from __future__ import annotations

import asyncio

import aiohttp
from yarl import URL

from stackyard.clients.truenas.rest import RestTransport


async def test_an_answer_in_two_packets_is_read_whole() -> None:
    is_closed = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        for part in (head, b'8\r\n[{"id": \r\n', b'5\r\n"a"}]\r\n', b"0\r\n\r\n"):
            writer.write(part)
            await writer.drain()
            # Each is a packet of its own once the other side had its turn to read.
            for _ in range(50):
                await asyncio.sleep(0)
        writer.close()
        await writer.wait_closed()
        is_closed.set()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, aiohttp.ClientSession() as session:
        transport = RestTransport(session, URL(f"http://127.0.0.1:{port}"), 5.0)
        assert await transport.query_datasets("a") == [{"id": "a"}]
        await is_closed.wait()
