"""The socket that an engine knows: there from the first moment, before what answers behind it is loaded.

An engine takes a fifth of a second from its start to its first call, and so does the provider to load: both
are done at once. Who connects too early waits in the queue of the socket. When the provider listens, its own
socket takes the name, and those who came before are passed on to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LazySocket"]

_QUEUE = 64
_CHUNK_BYTES = 64 * 1024


class LazySocket:
    """Holds anyone who connects until it is opened.

    Args:
        path: Where the engine connects to.
        on_connection: Told once, when someone has connected and has to wait.
    """

    def __init__(self, path: str, on_connection: Callable[[], None]) -> None:
        self._path = path
        self._on_connection = on_connection
        self._loop = asyncio.get_running_loop()
        self._visits: set[asyncio.Task[None]] = set()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.setblocking(False)
            self._socket.bind(path)
            self._socket.listen(_QUEUE)
            self._loop.add_reader(self._socket, self._was_connected)
        except BaseException:
            self._socket.close()
            raise

    def open(self, behind: str) -> None:
        """Let everyone through to the socket at `behind`, which from now on has the name of this one."""
        os.replace(behind, self._path)
        # One who had found this socket by its name, and not connected yet, still comes here.
        self._loop.add_reader(self._socket, self._let_through)

    async def close(self) -> None:
        """Turn everyone away; a second time does nothing."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._socket.close()
        for visit in self._visits:
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    def _was_connected(self) -> None:
        self._loop.remove_reader(self._socket)
        self._on_connection()

    def _let_through(self) -> None:
        with contextlib.suppress(BlockingIOError, InterruptedError, ConnectionAbortedError):
            visitor, _ = self._socket.accept()
            visit = self._loop.create_task(self._pass_on(visitor))
            self._visits.add(visit)
            visit.add_done_callback(self._visits.discard)

    async def _pass_on(self, visitor: socket.socket) -> None:
        with visitor, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as host:
            visitor.setblocking(False)
            host.setblocking(False)
            try:
                await self._loop.sock_connect(host, self._path)
                # When one way breaks, the other ends before the sockets are closed. A reader that outlives
                # its socket would read from the next one that gets the same descriptor.
                async with asyncio.TaskGroup() as ways:
                    ways.create_task(self._copy(visitor, host))
                    ways.create_task(self._copy(host, visitor))
            except* OSError:
                pass

    async def _copy(self, source: socket.socket, target: socket.socket) -> None:
        while data := await self._loop.sock_recv(source, _CHUNK_BYTES):
            await self._loop.sock_sendall(target, data)
        target.shutdown(socket.SHUT_WR)
