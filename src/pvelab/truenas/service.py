"""Serving TrueNAS over HTTPS for the length of a block."""

from __future__ import annotations

import contextlib
import enum
from typing import TYPE_CHECKING

from pvelab.faults.faults import Point
from pvelab.truenas.calls import Calls
from pvelab.truenas.login import Logins
from pvelab.truenas.rest import PREFIX, answer_rest
from pvelab.truenas.rpc import RpcConnection
from stackyard.base import serving
from stackyard.base.serving import respond

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    from pvelab.world.world import World

__all__ = ["Release", "serve_truenas"]

_CURRENT = "/api/current"


class Release(enum.StrEnum):
    """A release of TrueNAS: which protocols its API has."""

    REST_ONLY = "24.10.2.4"
    BOTH = "25.10.1"
    RPC_ONLY = "26.04.0"
    LOGIN_EX = "27.0"


@contextlib.asynccontextmanager
async def serve_truenas(
    world: World,
    certificate: serving.Certificate,
    key: str,
    *,
    where: tuple[str, int] = ("127.0.0.1", 0),
    release: Release = Release.BOTH,
) -> AsyncIterator[str]:
    """Serve TrueNAS until the end of the block; give its URL.

    Args:
        world: The lab, which keeps its datasets.
        certificate: What it shows; TrueNAS signs its own.
        key: The API key that is good.
        where: The address and the port, 0 for a free one.
        release: The release that it is.

    Raises:
        ListenError: The port cannot be had.
    """
    answer = _TrueNas(world, key, release).answer
    async with serving.serve(answer, bind=where[0], port=where[1], tls=serving.Tls(certificate)) as server:
        yield server.url


class _TrueNas:
    def __init__(self, world: World, key: str, release: Release) -> None:
        self._world = world
        self._release = release
        self._calls = Calls(world, release.value)
        self._logins = Logins(key, world.clock)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, unless a fault strikes it."""
        path = request.path
        if self._is_struck("down", request.method, path):
            if request.transport is not None:
                request.transport.abort()
            return respond(503)
        if path.startswith(PREFIX) and self._release in (Release.REST_ONLY, Release.BOTH):
            response = await answer_rest(request, self._calls, self._logins)
            if self._is_struck("lost-answer", request.method, path) and request.transport is not None:
                request.transport.abort()
            return response
        upgrade = request.headers.get("Upgrade", "").lower()
        if path == _CURRENT and upgrade == "websocket" and self._release is not Release.REST_ONLY:
            connection = RpcConnection(
                self._calls,
                self._logins,
                lambda method: self._is_struck("lost-answer", "CALL", method),
                has_plain_login=self._release is not Release.LOGIN_EX,
            )
            return await connection.serve(request)
        return respond(404, b"404: Not Found", content_type="text/plain; charset=utf-8")

    def _is_struck(self, how: str, method: str, path: str) -> bool:
        return self._world.faults.strike(Point.TRUENAS, method, path, how) is not None
