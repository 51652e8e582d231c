"""Ports of this machine that lead to ports of guests, opened when someone asks where a guest can be reached.

A port stays the same for as long as the lab runs and the guest exists. A guest that does not run refuses: the
connection is closed at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from stackyard.base.serving.sockets import ListenError, listen

if TYPE_CHECKING:
    import socket

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["Forwards", "relay_both_ways"]

_CHUNK = 64 * 1024
# More than that would use up the descriptors of the process; the others are reached through a node.
_MOST = 256
_LOADING_S = 30.0
_LOOK_AGAIN_S = 0.02


class Forwards:
    """The ports that are open."""

    def __init__(self) -> None:
        self._world: World | None = None
        self._bind = "127.0.0.1"
        self._open: dict[tuple[int, int], tuple[socket.socket, asyncio.Task[None]]] = {}
        self._carrying: set[asyncio.Task[None]] = set()

    @property
    def host(self) -> str:
        """The address that they listen on."""
        return self._bind

    def follow(self, world: World) -> None:
        """Belong to a lab from now on."""
        self._world = world
        world.store.watch("guests", self._guest_changed)

    def listen_on(self, bind: str) -> None:
        """Open ports on this address from now on."""
        self._bind = bind

    def port(self, vmid: int, port: int) -> int | None:
        """Return the port that leads to a port of a guest; None if there are too many already."""
        found = self._open.get((vmid, port))
        if found is None:
            if len(self._open) >= _MOST:
                return None
            try:
                sock = listen(self._bind, 0)
            except ListenError:
                return None
            task = asyncio.get_running_loop().create_task(self._accept(sock, vmid, port))
            found = self._open[vmid, port] = (sock, task)
        return int(found[0].getsockname()[1])

    async def close(self) -> None:
        """Close all ports and cut all connections."""
        tasks = [*(task for _, task in self._open.values()), *self._carrying]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for sock, _ in self._open.values():
            sock.close()
        self._open.clear()

    async def _accept(self, sock: socket.socket, vmid: int, port: int) -> None:
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(sock)
            client.setblocking(False)
            task = loop.create_task(self._carry(client, vmid, port))
            self._carrying.add(task)
            task.add_done_callback(self._carrying.discard)

    async def _carry(self, client: socket.socket, vmid: int, port: int) -> None:
        from pvelab.nested.reach import NetworkLocation, connect  # lazy: it depends on the world

        world = self._world
        guest = None if world is None else world.guests.get(vmid)
        with client:
            if world is None or guest is None or guest["status"] != "running":
                return
            await _wait_for_ssh(world)
            # A guest that refuses, or goes away, ends the connection and nothing else.
            with (
                contextlib.suppress(OSError),
                await connect(NetworkLocation(world=world, guest=guest), port) as server,
            ):
                await relay_both_ways(client, server)

    def _guest_changed(self, key: str, _old: Document | None, new: Document | None) -> None:
        if new is not None:
            return
        for vmid, port in [known for known in self._open if known[0] == int(key)]:
            sock, task = self._open.pop((vmid, port))
            task.cancel()
            sock.close()


async def _wait_for_ssh(world: World) -> None:
    """Wait until the SSH side answers, which is loaded while the lab is already running."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LOADING_S):
            # Nothing tells of it: it announces itself by being there.
            while world.nest.ssh_ports and world.nest.answer_guest is None:  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_AGAIN_S)


async def relay_both_ways(left: socket.socket, right: socket.socket) -> None:
    """Carry bytes until either side has ended."""
    ways = {asyncio.ensure_future(_carry_one(*way)) for way in ((left, right), (right, left))}
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)


async def _carry_one(source: socket.socket, target: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while data := await loop.sock_recv(source, _CHUNK):
            await loop.sock_sendall(target, data)
