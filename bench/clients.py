"""Clients that cost next to nothing, so that what is measured is the server: raw requests over TLS."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlencode

__all__ = ["Address", "Connection", "Rate", "hammer", "repeat"]

_FORM = "Content-Type: application/x-www-form-urlencoded\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server is, and what every request to it carries."""

    port: int
    headers: str = ""

    def request(self, method: str, path: str, **params: object) -> bytes:
        """Return a request as bytes."""
        body = urlencode(params)
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{self.headers}"
        if body:
            head += f"{_FORM}Content-Length: {len(body)}\r\n"
        return f"{head}\r\n{body}".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How quickly something was done over and over again."""

    each_s: float
    p99_s: float

    @property
    def per_second(self) -> float:
        """How many were done in a second."""
        return 1 / self.each_s


class Connection:
    """One connection that asks again and again."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def exchange(self, request: bytes) -> bytes:
        """Send a request and return the body of the answer.

        Raises:
            RuntimeError: The answer is not a success.
        """
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{request[:200]!r} was answered with {head[:300]!r}")
        start = head.lower().index(b"content-length:") + 15
        return await self._reader.readexactly(int(head[start : head.index(b"\r\n", start)]))

    async def close(self) -> None:
        """Go."""
        self._writer.transport.abort()


Work = Callable[[Connection], Awaitable[object]]


async def connect(address: Address) -> Connection:
    """Connect to a server."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port, ssl=context, limit=16 * 2**20)
    return Connection(reader, writer)


def hammer(address: Address, request: bytes, *, clients: int, seconds: float) -> Rate:
    """Send one request over and over again from some connections at once."""
    return repeat(address, lambda connection: connection.exchange(request), clients=clients, seconds=seconds)


def repeat(address: Address, work: Work, *, clients: int, seconds: float) -> Rate:
    """Do some work over and over again on some connections at once, each after a first time to warm up."""

    async def one(connection: Connection, until_s: float, took_s: list[float]) -> None:
        while (began_s := time.perf_counter()) < until_s:
            await work(connection)
            took_s.append(time.perf_counter() - began_s)

    async def main() -> Rate:
        connections = [await connect(address) for _ in range(clients)]
        await asyncio.gather(*(work(connection) for connection in connections))
        took_s: list[float] = []
        began_s = time.perf_counter()
        await asyncio.gather(*(one(connection, began_s + seconds, took_s) for connection in connections))
        elapsed_s = time.perf_counter() - began_s
        for connection in connections:
            await connection.close()
        ordered = sorted(took_s)
        return Rate(each_s=elapsed_s / len(ordered), p99_s=ordered[int(len(ordered) * 0.99)])

    return asyncio.run(main())
