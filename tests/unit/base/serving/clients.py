"""Clients that do what well-behaved libraries do not: raw bytes, silence, half a request, no reading."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from stackyard.base.serving import Access, Certificate, Server, make_certificate, respond

# No test waits this long unless it fails.
PATIENCE_S = 30.0


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine; a problem that the event loop was told about fails it too."""
    problems: list[dict[str, Any]] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        await asyncio.wait_for(main, PATIENCE_S)

    asyncio.run(watched())
    assert problems == []


@dataclass(frozen=True, slots=True)
class Reply:
    """One response as it came over the wire."""

    status_line: bytes
    headers: dict[str, str]
    body: bytes

    @property
    def status(self) -> int:
        return int(self.status_line.split(b" ", 2)[1])

    @property
    def reason(self) -> str:
        return self.status_line.split(b" ", 2)[2].decode()


class Client:
    """One connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    async def get(self, path: str = "/", *, method: str = "GET", headers: str = "") -> Reply:
        await self.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())
        return await self.reply(has_body=method != "HEAD")

    async def post(self, body: bytes, *, path: str = "/", headers: str = "") -> Reply:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        await self.send(head.encode() + body)
        return await self.reply()

    async def reply(self, *, has_body: bool = True) -> Reply:
        status_line = (await self.reader.readuntil(b"\r\n")).rstrip(b"\r\n")
        headers: dict[str, str] = {}
        while (line := await self.reader.readuntil(b"\r\n")) != b"\r\n":
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        size = int(headers.get("content-length", "0")) if has_body else 0
        return Reply(status_line, headers, await self.reader.readexactly(size))

    async def rest(self) -> bytes:
        """Return what still comes until the server closes."""
        received = bytearray()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while data := await self.reader.read(65536):
                received += data
        return bytes(received)


@contextlib.asynccontextmanager
async def connected(server: Server, context: ssl.SSLContext | None = None) -> AsyncIterator[Client]:
    """Connect for the length of a block."""
    reader, writer = await asyncio.open_connection(
        server.host, server.port, ssl=context, server_hostname="localhost" if context else None
    )
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def trusting(certificate: Certificate, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """Return the context of a client that trusts this certificate alone."""
    context = ssl.create_default_context(cadata=certificate.certificate_pem.decode())
    # What newer Pythons ask for by themselves.
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


def localhost_certificate() -> Certificate:
    """Return a new certificate for this machine."""
    return make_certificate(["localhost", "127.0.0.1", "::1"])


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    """Answer with what came: method, path and body."""
    body = await request.read()
    return respond(200, f"{request.method} {request.raw_path} ".encode() + body, content_type="text/plain")


class Hanging:
    """A handler that begins, says so, and does not end by itself."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.release = asyncio.Event()
        self.was_cancelled = False
        self.count = 0

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.raw_path == "/quick":
            return respond(200, b"quick")
        self.count += 1
        self.begun.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return respond(200, b"released")


class AccessLog:
    """Collects what is told about requests."""

    def __init__(self) -> None:
        self.seen: list[Access] = []
        self._more = asyncio.Event()

    def __call__(self, access: Access) -> None:
        self.seen.append(access)
        self._more.set()

    async def wait(self, count: int = 1) -> list[Access]:
        """Wait until so many requests have ended."""
        while len(self.seen) < count:
            self._more.clear()
            await self._more.wait()
        return self.seen
