"""Connections that are still open when an event loop ends: the test that left them fails, by name.

A connection whose loop was closed is found by Python whenever it next looks for garbage, thousands of tests
later, and fails whichever test runs then. A connection over TLS that is being closed waits for the other
side, which may be slow or gone: it gets a moment, and is then ended.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import sslproto, unix_events
from typing import Any

__all__ = ["end_connections_with_loops", "take_left_open"]

_CLOSING_S = 1.0
_left_open: list[str] = []
# The class whose loops `asyncio.run` makes here.
_LOOP: Any = unix_events._UnixSelectorEventLoop
_close_loop = _LOOP.close


def end_connections_with_loops() -> None:
    """From now on, look at the connections of each event loop before it is closed."""
    _LOOP.close = _close


def take_left_open() -> tuple[str, ...]:
    """Return the connections that loops ended with since it was last asked, and forget them."""
    taken = tuple(_left_open)
    _left_open.clear()
    return taken


def _close(self: Any) -> None:
    if not self.is_closed() and not self.is_running():
        _end_connections(self)
    _close_loop(self)


def _end_connections(loop: Any) -> None:
    if not _connections(loop):
        return
    until = time.monotonic() + _CLOSING_S
    # What was already called, such as the end of a closed connection, still runs.
    loop.run_until_complete(asyncio.sleep(0))
    while (still := _connections(loop)) and any(map(_is_closing, still)) and time.monotonic() < until:
        loop.run_until_complete(asyncio.sleep(0.01))
    for transport in still:
        if not _is_closing(transport):
            _left_open.append(f"{transport!r} of {transport.get_protocol()!r}")
        transport.abort()
    loop.run_until_complete(asyncio.sleep(0))


def _connections(loop: Any) -> list[Any]:
    return [one for one in list(loop._transports.values()) if one._sock is not None]


def _is_closing(transport: Any) -> bool:
    """Return whether it ends: it was closed itself, or the TLS above it was."""
    if transport.is_closing():
        return True
    above = transport.get_protocol()
    if not isinstance(above, sslproto.SSLProtocol):
        return False
    app: Any = above._app_transport
    return app is None or app._closed
