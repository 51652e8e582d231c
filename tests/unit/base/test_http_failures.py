"""A failed request is described in words of the network, not in names of Python objects."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from tests.support.ports import free_port

from stackyard.base.errors import UnreachableError
from stackyard.base.http_failures import describe_failure
from stackyard.clients import proxmox

# Objects, tuples and contexts of Python, and what an address may hold.
NOISE = re.compile(r"ssl:|object at|\('|<|0x|s3cret|Connect call")


async def failure(url: str, **options: Any) -> Exception:
    timeout = aiohttp.ClientTimeout(total=30)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, **options) as answer:
            answer.raise_for_status()
    except (aiohttp.ClientError, OSError) as err:
        return err
    raise AssertionError("the request was answered")


def described(url: str, **options: Any) -> str:
    said = describe_failure(asyncio.run(failure(url, **options)))
    assert not NOISE.search(said), said
    return said


@contextlib.asynccontextmanager
async def answering(data: bytes) -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(data)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("context", [True, False, ssl.create_default_context()])
def test_a_refused_connection(context: ssl.SSLContext | bool) -> None:
    port = free_port()
    said = described(f"https://user:s3cret@127.0.0.1:{port}/?token=s3cret", ssl=context)
    assert said == f"cannot connect to 127.0.0.1:{port}: Connection refused"


def test_a_name_that_does_not_exist() -> None:
    assert described("https://nothing.invalid/").startswith("cannot connect to nothing.invalid:443: ")


def test_an_address_that_is_none() -> None:
    assert described("https://user:s3cret@:x/") == "an address is not valid"


@pytest.mark.parametrize(
    ("data", "scheme", "words"),
    [
        (b"", "http", "disconnected"),
        (b"no TLS here\r\n\r\n", "https", "TLS failed: "),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "http", "the answer was 404 Not Found"),
        (b"nonsense\r\n\r\n", "http", ""),
    ],
)
def test_a_server_that_answers_wrongly(data: bytes, scheme: str, words: str) -> None:
    async def check() -> str:
        async with answering(data) as port:
            return describe_failure(await failure(f"{scheme}://127.0.0.1:{port}/?token=s3cret"))

    said = asyncio.run(check())
    assert words in said
    assert not NOISE.search(said), said


def test_proxmox_that_cannot_be_reached_is_said_plainly() -> None:
    connection = proxmox.Connection(
        endpoint=f"https://127.0.0.1:{free_port()}/",
        credentials=proxmox.Token(text="root@pam!t=3f2a9c1d-7b6e-4d5f-8a90-1b2c3d4e5f60"),
    )

    async def ask() -> None:
        async with proxmox.Client(connection) as client:
            await client.get("/version")

    with pytest.raises(UnreachableError, match=r"Connection refused\.$") as caught:
        asyncio.run(ask())
    assert not NOISE.search(str(caught.value))
