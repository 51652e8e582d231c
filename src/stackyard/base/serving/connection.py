"""One client's connection: how each of its requests is answered.

aiohttp parses, queues and writes. Here its way of calling the handler is replaced: whatever goes wrong below
or in the handler becomes one small answer that reveals nothing about our inside, and each request is reported
once. What is overridden or read here with a leading underscore is aiohttp's own; the tests of this package
hold it in place.
"""

from __future__ import annotations

import asyncio
import http
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11, StreamWriter
from aiohttp.http_exceptions import LineTooLong

from stackyard.base.process import open_files
from stackyard.base.serving.access_log import UNKNOWN, Access, mask_path
from stackyard.base.serving.deadlines import BrokenBodyError, TimedConnection
from stackyard.base.serving.responses import respond

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stackyard.base.serving.gate import Gate

__all__ = ["ClientGoneError", "Connection", "connection_notes", "mark_known"]

# For how long we continue reading after an early answer: closing at once would destroy the answer on its way.
_LINGER_S = 1.0
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# aiohttp's name for the method of what was not HTTP.
_NOT_HTTP = "UNKNOWN"
# After one of these the rest of the request may still come; nothing behind it can be understood.
_UNFINISHED = (web.HTTPRequestTimeout, web.HTTPRequestEntityTooLarge, BrokenBodyError)


class ClientGoneError(ConnectionError):
    """The client closed the connection before it had sent its request or had the whole response."""


class Connection(TimedConnection):
    """One client's connection.

    Args:
        gate: What all connections of the server share.
        on_closed: Called once, when the client is gone.
    """

    __slots__ = ("_lost", "_on_closed", "admitted", "is_known", "notes")

    def __init__(self, gate: Gate, on_closed: Callable[[Connection], None]) -> None:
        super().__init__(gate)
        self.admitted = False
        # Whether its client has shown who it is: such a one makes room for others last.
        self.is_known = False
        # What handlers note about its client.
        self.notes: dict[str, Any] = {}
        self._on_closed = on_closed
        self._lost: asyncio.Future[None] | None = None

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the client; a handler that is at work ends its work."""
        super().connection_lost(exc)
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(None)
        self._on_closed(self)

    def log_exception(self, *args: object, **kw: object) -> None:
        """Log nothing: what goes wrong is reported with the request."""

    async def _handle_request(
        self,
        request: web.BaseRequest,
        start_time: float | None,
        request_handler: Callable[[web.BaseRequest], Awaitable[object]],
    ) -> tuple[web.StreamResponse, bool]:
        """Answer one request: in place of aiohttp's method of this name."""
        began = self._loop.time()
        self._request_in_progress = True
        self._current_request = request
        response: web.StreamResponse | None = None
        try:
            try:
                if request.content is not aiohttp.EMPTY_PAYLOAD:
                    self._body_begins(request)
                response = _check_response(await request_handler(request), request)
            except (Exception, asyncio.CancelledError) as err:
                # The edge to the caller's code: whatever it raises is answered here.
                response = self._answer_exception(request, err)
            self._current_request = None
            response, is_lost = await self._send(request, response)
        finally:
            self._current_request = None
            self._request_in_progress = False
            self._request_ended(request, response, began)
        if self._gate.is_stopping:
            # aiohttp would continue reading an unwanted body for a while.
            self.force_close()
        elif self._refused and not is_lost:
            await self._absorb()
        return response, is_lost

    async def _send(
        self, request: web.BaseRequest, response: web.StreamResponse
    ) -> tuple[web.StreamResponse, bool]:
        """Send the response, or what can be said in its place; return whether the client was lost over it."""
        if self._gate.is_stopping:
            response.force_close()
        try:
            response, is_lost = await self.finish_response(request, response, None)
            if not is_lost and request.writer.output_size == 0:
                raise RuntimeError("the handler returned a response that was sent before")
        except Exception as err:
            # The same edge: a header that cannot be sent, a response that was sent before.
            response = self._answer_exception(request, err)
            response, is_lost = await self.finish_response(request, response, None)
        if is_lost:
            self._fault = self._fault or _make_client_gone_error(None)
        return response, is_lost

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to what was not a request, and close after it."""
        del message
        self._fault = exc
        self._refused = True
        # aiohttp takes what it could not understand for the oldest version of HTTP.
        request._version = HttpVersion11
        if isinstance(exc, LineTooLong) or (exc is not None and "Too many headers" in str(exc)):
            status = http.HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        return _make_error_response(status)

    def _answer_exception(self, request: web.BaseRequest, err: BaseException) -> web.StreamResponse:
        """Return the answer to what was raised, or raise where the client cannot be answered any more."""
        is_stopped = isinstance(err, asyncio.CancelledError) and _is_cancelled()
        has_begun = request.writer.output_size > 0
        if isinstance(err, web.HTTPException) and not has_begun:
            return _make_error_response(err.status) if isinstance(err, _UNFINISHED) else err
        is_gone = isinstance(err, ConnectionError) and (self.transport is None or self.transport.is_closing())
        self._fault = self._fault or (_make_client_gone_error(err) if is_gone else err)
        if is_stopped and (has_begun or not self._gate.is_stopping):
            raise err
        if has_begun:
            # Half a response is on its way. Closing is the only way left to tell the client.
            raise ConnectionError("the handler failed after it had begun to answer") from err
        # What the failed response set on its writer (chunking, a length) must not shape this one.
        request._payload_writer = StreamWriter(self, self._loop)
        if is_gone or isinstance(err, web.RequestPayloadError):
            return _make_error_response(400)
        return _make_error_response(503 if is_stopped or open_files.is_shortage(err) else 500)

    def _body_begins(self, request: web.BaseRequest) -> None:
        """Expect the rest of a request's body, and tell a client that asks that it may send it."""
        if request.content.is_eof():
            return
        if self._messages:
            self._check_body(request.content)
        limits = self._gate.limits
        self._watch(self._last_byte_at + limits.body_timeout_s)
        if request.headers.get(hdrs.EXPECT, "").lower() != "100-continue" or request.version != HttpVersion11:
            return
        declared, limit = request.content_length, limits.max_body_bytes
        if self.transport is not None and (limit is None or declared is None or declared <= limit):
            self.transport.write(_CONTINUE)

    def _request_ended(
        self,
        request: web.BaseRequest,
        response: web.StreamResponse | None,
        began: float,
    ) -> None:
        self._idle_since = self._loop.time()
        if self._link is not None:
            self._watch(self._idle_since + self._gate.limits.idle_timeout_s)
        error, self._fault = self._fault, None
        if self._gate.on_access is None:
            return
        is_http = request.method != _NOT_HTTP
        access = Access(
            peer=_peer(self.peername),
            method=request.method if is_http else UNKNOWN,
            path=mask_path(request.raw_path) if is_http else UNKNOWN,
            status=response.status if response is not None else 500,
            bytes=request.writer.output_size,
            elapsed_s=self._idle_since - began,
            error=error,
        )
        self._gate.report(access)

    async def _absorb(self) -> None:
        """Throw away what the client still sends, until it has read our answer and goes."""
        self._close = True
        transport = self.transport
        if transport is None:
            return
        if transport.can_write_eof():
            transport.write_eof()
        self._lost = self._loop.create_future()
        await asyncio.wait((self._lost,), timeout=_LINGER_S)


def mark_known(request: web.BaseRequest) -> None:
    """Note that the client of a request has shown who it is; its connection makes room for others last."""
    if isinstance(request.protocol, Connection):
        request.protocol.is_known = True


def connection_notes(request: web.BaseRequest) -> dict[str, Any]:
    """Return what was noted about the client of a request, which is kept as long as its connection."""
    return request.protocol.notes if isinstance(request.protocol, Connection) else {}


def _check_response(answer: object, request: web.BaseRequest) -> web.StreamResponse:
    if not isinstance(answer, web.StreamResponse):
        raise TypeError(f"the handler returned {type(answer).__name__}, not a response")
    if request.writer.output_size > 0 and not answer.prepared:
        raise RuntimeError("the handler returned another response than the one that it had begun")
    return answer


def _make_error_response(status: int) -> web.Response:
    """Return the answer to what went wrong: the status and its name, nothing else."""
    body = f"{status} {http.HTTPStatus(status).phrase}\n"
    headers = {"Retry-After": "1"} if status == http.HTTPStatus.SERVICE_UNAVAILABLE else None
    response = respond(status, body.encode(), content_type="text/plain; charset=utf-8", headers=headers)
    response.force_close()
    return response


def _make_client_gone_error(cause: BaseException | None) -> ClientGoneError:
    error = ClientGoneError("the client closed the connection")
    error.__cause__ = cause
    return error


def _is_cancelled() -> bool:
    """Return whether someone cancelled this request, in contrast to something that the handler awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _peer(name: object) -> str:
    """Return the address of a client as text."""
    if not isinstance(name, tuple):
        return UNKNOWN
    host, port = name[0], name[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
