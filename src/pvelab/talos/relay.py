"""Ports at the addresses of control plane machines that lead to the Kubernetes API of their cluster."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from typing import TYPE_CHECKING

from pvelab.machines.forwards import relay_both_ways
from pvelab.server.problems import defect
from stackyard.base.serving.sockets import ListenError, listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from pvelab.machines.machine import Endpoint

__all__ = ["Relays", "is_here"]


def is_here(host: str) -> bool:
    """Return whether this machine can listen at an address: one of 127.0.0.0/8."""
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network("127.0.0.0/8")
    except ValueError:
        return False


class Relays:
    """The ports of one cluster.

    Args:
        target: Where the API is.
    """

    def __init__(self, target: Endpoint) -> None:
        self._target = target
        self._open: dict[tuple[str, int], tuple[socket.socket, asyncio.Task[None]]] = {}
        self._refused: set[tuple[str, int]] = set()
        self._carrying: dict[asyncio.Task[None], tuple[str, int]] = {}

    async def listen_at(self, places: Iterable[tuple[str, int]]) -> None:
        """Listen at these addresses and ports, and at no other."""
        wanted = set(places)
        await self._close(set(self._open) - wanted)
        self._refused &= wanted
        for place in wanted - set(self._open) - self._refused:
            try:
                sock = listen(*place)
            except ListenError as err:
                # Another program of this machine has the port.
                defect(f"the Kubernetes API at {place[0]}:{place[1]}", err)
                self._refused.add(place)
                continue
            self._open[place] = sock, asyncio.create_task(self._accept(sock, place))

    async def close(self) -> None:
        """Close all ports and cut all connections."""
        await self._close(set(self._open))

    async def _close(self, places: set[tuple[str, int]]) -> None:
        tasks = {task for task, place in self._carrying.items() if place in places}
        for place in places:
            sock, task = self._open.pop(place)
            tasks.add(task)
            sock.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _accept(self, sock: socket.socket, place: tuple[str, int]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(sock)
            client.setblocking(False)
            task = loop.create_task(self._carry(client))
            self._carrying[task] = place
            task.add_done_callback(self._carrying.pop)

    async def _carry(self, client: socket.socket) -> None:
        from pvelab.nested.reach import open_connection  # lazy: it depends on the world

        # An API that goes away ends the connection and nothing else.
        with client, contextlib.suppress(OSError), await open_connection(self._target) as server:
            await relay_both_ways(client, server)
