"""What the connections of one server share: the handler, the limits, who is connected, whether we stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import hdrs, web
from aiohttp.http import SERVER_SOFTWARE

if TYPE_CHECKING:
    import asyncio

    import aiohttp
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http import RawRequestMessage

    from stackyard.base.serving.access_log import Access, OnAccess
    from stackyard.base.serving.limits import ServerLimits

__all__ = ["Gate", "Handler"]

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_SERVER_NAME = "stackyard"
# Bounds the memory of one request's headers and trailers, which aiohttp limits line by line only.
_MAX_HEADER_FIELDS = 128
# A body that the handler did not want is read and thrown away for this long, so that the answer gets through.
_LONGEST_LINGER_S = 10.0
# Our own timer replaces aiohttp's for idle connections: it tells an idle client from a half-sent request.
_NEVER_S = 1e9


class Request(web.BaseRequest):
    """A request whose body, where it declares too large a one, is refused before a byte of it is read."""

    async def read(self) -> bytes:
        """Return the whole body; one larger than the limit is answered with 413."""
        limit, declared = self._client_max_size, self.content_length
        if limit and declared is not None and declared > limit:
            raise web.HTTPRequestEntityTooLarge(max_size=limit, actual_size=declared)
        return await super().read()

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        """Name ourselves, and not the libraries that we use and their versions."""
        if response.headers[hdrs.SERVER] == SERVER_SOFTWARE:
            response.headers[hdrs.SERVER] = _SERVER_NAME


class Gate(web.Server):
    """The shared part of all connections of one server."""

    def __init__(
        self,
        handler: Handler,
        limits: ServerLimits,
        on_access: OnAccess | None,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(handler, request_factory=self._begin_request, loop=loop)
        self.loop = loop
        self.limits = limits
        self.on_access = on_access
        self.is_stopping = False
        # The tasks that answer requests, also those whose client is gone.
        self.runners: set[asyncio.Task[None]] = set()
        self._body_limit = limits.max_body_bytes or 0
        self.options: dict[str, Any] = {
            "keepalive_timeout": _NEVER_S,
            "tcp_keepalive": False,
            "access_log": None,
            "max_line_size": limits.max_header_bytes,
            "max_field_size": limits.max_header_bytes,
            "max_headers": _MAX_HEADER_FIELDS,
            "lingering_time": min(limits.body_timeout_s, _LONGEST_LINGER_S),
            "auto_decompress": limits.decompress_requests,
        }

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Do nothing: the server that accepts the connections also counts them."""

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Do nothing: the server that accepts the connections also counts them."""

    def report(self, access: Access) -> None:
        """Tell about a request that ended."""
        if self.on_access is None:
            return
        try:
            self.on_access(access)
        except (
            Exception
        ) as err:  # The edge to the caller's code: its defect must not cost a client its answer.
            self.loop.call_exception_handler({"message": "on_access failed", "exception": err})

    def _begin_request(
        self,
        message: RawRequestMessage,
        payload: aiohttp.StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        # The request counts as begun from here on; its task runs only at the next turn of the loop.
        protocol._request_in_progress = True
        return Request(message, payload, protocol, writer, task, self.loop, client_max_size=self._body_limit)
