"""The sockets of an HTTP client: none stays open when the client has ended."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import AddrInfoType

__all__ = ["ClientSockets"]

# The event loop sees the end of a connection, closes it, and tells its protocol: each takes a round.
_MOST_ROUNDS = 20


class ClientSockets:
    """Makes the sockets of a connector of aiohttp, as its `socket_factory`.

    A request that is cancelled leaves its connection to TLS, which says farewell and waits for that of the
    server. aiohttp does not wait for it when its session is closed, so the socket would stay open for as long
    as the server likes, or for ever where the event loop ends first.
    """

    def __init__(self) -> None:
        self._made: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def make(self, address: AddrInfoType) -> socket.socket:
        """Make the socket for a connection to an address."""
        made = socket.socket(*address[:3])
        self._made.add(made)
        return made

    async def close(self) -> None:
        """End the connections that are still open; call it when the session is closed."""
        for one in self._list_open():
            # One that was never connected has no end to announce.
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for _ in range(_MOST_ROUNDS):
            if not self._list_open():
                return
            await asyncio.sleep(0)

    def _list_open(self) -> list[socket.socket]:
        return [one for one in self._made if one.fileno() >= 0]
