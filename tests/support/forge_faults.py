"""A proxy before a forge that fails as it is told: before the forge hears of a request, or once it did it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web
from yarl import URL

__all__ = ["Fault", "FaultyForge", "open_faulty"]

_KEPT = ("authorization", "content-type", "accept")
_ANSWERED = ("content-type", "link", "x-total-count", "location")


@dataclass
class Fault:
    """What goes wrong with a kind of request.

    Attributes:
        pattern: `METHOD /path`, as an expression.
        times: How often.
        status: What is answered; 0 where the connection ends without an answer.
        is_done: Whether the forge does it first.
        headers: What is answered with it.
        body: The text of the answer.
        slow_s: How long it takes before anything else.
    """

    pattern: str
    times: int = 1
    status: int = 502
    is_done: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    slow_s: float = 0.0


@dataclass
class FaultyForge:
    """A proxy.

    Attributes:
        url: Its address.
        faults: What goes wrong.
        requests: What was asked.
    """

    url: str
    faults: list[Fault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def count(self, pattern: str) -> int:
        return sum(bool(re.search(pattern, request)) for request in self.requests)

    def take(self, request: str) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and re.search(fault.pattern, request):
                fault.times -= 1
                return fault
        return None


@contextlib.asynccontextmanager
async def open_faulty(url: str) -> AsyncIterator[FaultyForge]:
    """Serve a proxy on loopback for the length of the block."""
    proxy = FaultyForge(url="")

    async def answer(request: web.Request) -> web.StreamResponse:
        name = f"{request.method} {request.rel_url.raw_path_qs}"
        proxy.requests.append(name)
        fault = proxy.take(name)
        if fault is None:
            return await _forward(session, url, request)
        await asyncio.sleep(fault.slow_s)
        if fault.is_done:
            await _forward(session, url, request)
        if not fault.status:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=fault.status or 500, headers=fault.headers, text=fault.body)

    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield proxy
        finally:
            await runner.cleanup()


async def _forward(session: aiohttp.ClientSession, url: str, request: web.Request) -> web.Response:
    headers = {name: request.headers[name] for name in _KEPT if name in request.headers}
    target = URL(f"{url}{request.rel_url.raw_path_qs}", encoded=True)
    data = await request.read()
    async with session.request(request.method, target, data=data, headers=headers) as answer:
        kept = {name: answer.headers[name] for name in _ANSWERED if name in answer.headers}
        return web.Response(status=answer.status, body=await answer.read(), headers=kept)
