"""The deadlines of one connection, which aiohttp's protocol lacks.

A client must finish its headers in time, must not stop in the middle of a body, may be idle between requests
for a while only, and must read what it asked for. Two timers a connection at most, both lazy: a byte that
arrives only notes the time, and a timer that fires early sets itself again. What is read here with a leading
underscore is aiohttp's own; the tests of this package hold it in place.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import _ErrInfo

if TYPE_CHECKING:
    from aiohttp.http import RawRequestMessage

    from stackyard.base.serving.gate import Gate

__all__ = ["BrokenBodyError", "ClientStalledError", "TimedConnection"]


# How long a TLS client has to answer that it has seen us close.
_FAREWELL_S = 1.0


class BrokenBodyError(web.HTTPBadRequest):
    """The body of a request is not what its headers say."""


class ClientStalledError(TimeoutError):
    """The client took longer than the limits allow."""


class TimedConnection(web.RequestHandler):
    """A connection that ends when its client takes too long."""

    __slots__ = (
        "_below",
        "_fault",
        "_gate",
        "_head_bytes",
        "_head_since",
        "_idle_since",
        "_last_byte_at",
        "_link",
        "_refused",
        "_stall",
        "_stall_size",
        "_timer",
        "runner",
    )

    def __init__(self, gate: Gate) -> None:
        super().__init__(gate, loop=gate.loop, **gate.options)
        now = gate.loop.time()
        self._gate = gate
        self.runner: asyncio.Task[None] | None = None
        # The transport for as long as it lives; aiohttp forgets its own when it begins to close.
        self._link: asyncio.Transport | None = None
        # Under TLS, the transport that carries the encrypted bytes.
        self._below: asyncio.Transport | None = None
        self._fault: BaseException | None = None
        self._refused = False
        self._last_byte_at = self._idle_since = now
        self._head_since: float | None = now
        self._head_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._stall_size = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve; the headers of the first request are due since the client connected."""
        super().connection_made(transport)
        self._link = self.transport
        # asyncio's TLS transport does not count the bytes that it has handed on, and forgets how to abort
        # when it is closed twice; it has no public way to ask for the one below.
        below = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
        self._below = below if isinstance(below, asyncio.Transport) else None
        self.runner = self._task_handler
        if self.runner is not None:
            self._gate.runners.add(self.runner)
            self.runner.add_done_callback(self._runner_ended)
        self._watch(self._last_byte_at + self._gate.limits.header_timeout_s)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the client; a handler that is at work ends its work."""
        super().connection_lost(exc)
        self._link = self._below = None
        if self.runner is not None and not self._request_in_progress:
            # A request that came together with the end of its client would meet aiohttp already taken apart.
            self.runner.cancel()
        for timer in (self._timer, self._stall):
            if timer is not None:
                timer.cancel()

    def _runner_ended(self, task: asyncio.Task[None]) -> None:
        self._gate.runners.discard(task)
        self.runner = None
        # What is still to be sent must not wait for ever for a client that does not read.
        self._watch_sending()

    @property
    def is_busy(self) -> bool:
        """Return whether a request is being answered or waits to be."""
        return not self._refused and (self._request_in_progress or bool(self._messages))

    @property
    def is_connected(self) -> bool:
        """Return whether the client is still there, be it that we are closing."""
        return self._link is not None

    @property
    def is_leaving(self) -> bool:
        """Return whether the connection was told to close."""
        return self._force_close

    @property
    def silent_since(self) -> float:
        """Since when nothing has happened on the connection."""
        return max(self._idle_since, self._last_byte_at)

    def drop(self) -> None:
        """Close now, politely: what was written is still sent, for as long as the client takes it."""
        self.force_close()
        if self.runner is not None:
            self.runner.cancel()
        self._watch_sending()

    def abort(self) -> None:
        """Close now; what was not yet sent is lost."""
        carrier = self._below or self._link
        if carrier is not None:
            carrier.abort()

    # --- Receiving

    def data_received(self, data: bytes) -> None:
        """Parse what came, and note the time."""
        self._last_byte_at = self._loop.time()
        super().data_received(data)
        if self._messages:
            if self._head_bytes + len(data) > self._gate.limits.max_header_bytes:
                self._refuse_large_heads()
            if self._current_request is not None:
                self._check_body(self._current_request.content)
            self._head_since = None
            self._head_bytes = 0
        elif self._waiter is not None or self._request_count == 0:
            self._head_continues(len(data))

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Go on reading; while we did not read, silence was no fault of the client."""
        self._last_byte_at = self._loop.time()
        super().resume_reading(resume_parser)

    def _head_continues(self, size: int) -> None:
        """Note that the headers of the next request have begun and are not complete."""
        if self._head_since is None:
            self._head_since = self._last_byte_at
            self._watch(self._last_byte_at + self._gate.limits.header_timeout_s)
        self._head_bytes += size
        if self._head_bytes > self._gate.limits.max_header_bytes:
            self._refuse(_TOO_LARGE)

    def _refuse_large_heads(self) -> None:
        limit = self._gate.limits.max_header_bytes
        for place, (message, _) in enumerate(self._messages):
            if not isinstance(message, _ErrInfo) and _head_size(message) > limit:
                self._messages[place] = (_TOO_LARGE, aiohttp.EMPTY_PAYLOAD)

    def _check_body(self, body: aiohttp.StreamReader) -> None:
        """Tell the reader of a body that it will never end, where what came was not valid."""
        # aiohttp queues its error behind the request and lets the handler wait for the rest of the body.
        if isinstance(self._messages[-1][0], _ErrInfo) and not body.is_eof():
            body.set_exception(BrokenBodyError())

    def _refuse(self, error: _ErrInfo) -> None:
        """Answer in place of a request that never became whole."""
        if self._refused:
            return
        self._refused = True
        self._messages.append((error, aiohttp.EMPTY_PAYLOAD))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- Deadlines for what the client sends

    def _watch(self, due: float) -> None:
        """Look at the deadlines at this time, or earlier."""
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._timer = None
        if self._link is None or self._force_close or self._refused:
            return
        limits, now, request = self._gate.limits, self._loop.time(), self._current_request
        if request is not None:
            if request.content.is_eof():
                return
            if self._reading_paused:
                self._last_byte_at = now
            due, expire = self._last_byte_at + limits.body_timeout_s, self._body_stalled
        elif self._head_since is not None:
            due, expire = self._head_since + limits.header_timeout_s, self._head_stalled
        elif not self.is_busy:
            due, expire = self._idle_since + limits.idle_timeout_s, self.drop
        else:
            return
        if now < due:
            self._watch(due)
        else:
            expire()

    def _head_stalled(self) -> None:
        if self._head_bytes == 0:
            self.drop()
        else:
            self._refuse(_TOO_SLOW)

    def _body_stalled(self) -> None:
        if self._current_request is not None:
            self._fault = ClientStalledError("the body stopped arriving")
            self._current_request.content.set_exception(web.HTTPRequestTimeout())

    # --- Deadline for what the client reads

    def pause_writing(self) -> None:
        """Wait for the client to take what was written, but not for ever."""
        super().pause_writing()
        self._watch_sending()

    def resume_writing(self) -> None:
        """Go on writing."""
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        if self._link is not None and self._link.is_closing():
            self._watch_sending()

    def _watch_sending(self) -> None:
        """Look again later whether the client has taken some of what waits for it, or has let us close."""
        if self._link is None or self._stall is not None:
            return
        self._stall_size = self._count_unsent_bytes()
        if self._stall_size > 0:
            self._stall = self._loop.call_later(self._gate.limits.write_timeout_s, self._check_sending)
        elif self._link.is_closing():
            self._stall = self._loop.call_later(_FAREWELL_S, self._check_sending)

    def _check_sending(self) -> None:
        self._stall = None
        if self._link is None:
            return
        if self._count_unsent_bytes() < self._stall_size:
            self._watch_sending()
            return
        if self._stall_size > 0:
            self._fault = ClientStalledError("the client does not read the response")
        self.abort()

    def _count_unsent_bytes(self) -> int:
        """Return how many bytes the client has not taken."""
        size = 0 if self._below is None else self._below.get_write_buffer_size()
        # Closed twice, asyncio's TLS transport (3.11 to 3.13) has nothing left to count and fails.
        with contextlib.suppress(AttributeError):
            size += 0 if self._link is None else self._link.get_write_buffer_size()
        return size


_TOO_LARGE = _ErrInfo(431, HttpProcessingError(message="the headers are too large"), "")
_TOO_SLOW = _ErrInfo(408, ClientStalledError("the headers did not arrive in time"), "")


def _head_size(message: RawRequestMessage) -> int:
    """Return about how many bytes the request line and the headers took."""
    return len(message.method) + len(message.path) + sum(len(n) + len(v) + 4 for n, v in message.raw_headers)
