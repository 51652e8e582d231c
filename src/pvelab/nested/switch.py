"""The lab's end of a guest's network: carries the connections of its programs to where they belong."""

from __future__ import annotations

import array
import asyncio
import contextlib
import errno
import itertools
import os
import socket
from typing import TYPE_CHECKING, Any

import orjson

from pvelab.nested.lans import gateways_of, may_talk
from pvelab.nested.network_location import NetworkLocation
from pvelab.nested.reach import connect, locate
from pvelab.world.guests.addresses import addresses_of
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import SMALL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["Switch"]

_CHUNK = 256 * 1024
_MOST_BYTES = 200_000
_MOST_AT_ONCE = 5000
_DIAL_TIMEOUT_S = 30.0


class Switch:
    """The network of one guest.

    Args:
        world: The lab.
        vmid: The guest.
        sock: The socket of the process behind the guest's interfaces.
    """

    def __init__(self, world: World, vmid: int, sock: socket.socket) -> None:
        self._world = world
        self._vmid = vmid
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._dialing: dict[int, asyncio.Future[int]] = {}
        self._given: set[str] = set()
        self._is_open = True
        sock.setblocking(False)
        self._loop.add_reader(sock.fileno(), self._read)
        world.nest.directory.listen(self._addresses_changed)

    async def dial(self, port: int, source: str | None = None) -> socket.socket:
        """Return a socket that is connected to a port on which something listens in the guest.

        Raises:
            OSError: Nothing does.
        """
        guest = self._world.guests.get(self._vmid)
        own = None if guest is None else _first_address(self._world, guest)
        if own is None or not self._is_open:
            raise OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))
        number = next(self._numbers)
        answer = self._dialing[number] = self._loop.create_future()
        # A connection must come from an address that is there.
        seen = source if source in self._given else next(iter(self._given - {own}), None)
        try:
            self._tell({"dial": number, "host": own, "port": port, "as": seen})
            async with asyncio.timeout(_DIAL_TIMEOUT_S):
                dialed = socket.socket(fileno=await answer)
            dialed.setblocking(False)
            return dialed
        finally:
            self._dialing.pop(number, None)

    def close(self) -> None:
        """Let go of the guest."""
        if not self._is_open:
            return
        self._is_open = False
        self._world.nest.directory.unlisten(self._addresses_changed)
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
        for answer in self._dialing.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError(errno.ECONNRESET, "the guest has stopped"))

    def _read(self) -> None:
        space = socket.CMSG_SPACE(array.array("i").itemsize)
        try:
            data, beside, _, _ = self._sock.recvmsg(_MOST_BYTES, space, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            data, beside = b"", []
        numbers = array.array("i")
        for level, kind, content in beside:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
        if not data:
            self.close()
            return
        self._take(parse_json(data, SMALL), numbers[0] if numbers else None)

    def _take(self, message: Mapping[str, Any], descriptor: int | None) -> None:
        answer = self._dialing.get(int(message.get("dialed", 0)))
        if answer is not None and not answer.done():
            if descriptor is not None:
                answer.set_result(descriptor)
                return
            number = int(message.get("error", errno.EIO))
            answer.set_exception(OSError(number, os.strerror(number)))
        elif descriptor is not None and "to" in message:
            host, port = message["to"]
            source = str(message["from"][0])
            self._world.nest.begin(
                self._carry(socket.socket(fileno=descriptor), str(host), int(port), source)
            )
            return
        if descriptor is not None:
            os.close(descriptor)

    async def _carry(self, near: socket.socket, host: str, port: int, source: str) -> None:
        """Carry bytes between a program in the guest and the machine it wants to talk to."""
        with near:
            near.setblocking(False)
            try:
                far = await self._connect(host, port, source)
            except (OSError, ValueError):
                # The program sees its connection cut, which is all that can be said by now.
                return
            with far:
                await _join(near, far)

    async def _connect(self, host: str, port: int, source: str) -> socket.socket:
        guest = self._world.guests.get(self._vmid)
        if guest is None:
            raise OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))
        own = NetworkLocation(world=self._world, guest=guest)
        if host.startswith("127."):
            return await connect(own, port, source=source)
        place = locate(self._world, host)
        if place is not None and may_talk(own, place):
            return await connect(place, port, source=source)
        if place is None and host in gateways_of(self._world, guest) and port in self._world.nest.exposed:
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sock.setblocking(False)
            await self._loop.sock_connect(sock, ("127.0.0.1", port))
            return sock
        raise OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))

    def _addresses_changed(self, added: Mapping[str, NetworkLocation], removed: set[str]) -> None:
        guest = self._world.guests.get(self._vmid)
        if guest is None or not self._is_open:
            return
        own = NetworkLocation(world=self._world, guest=guest)
        mine = {one.address for interface in addresses_of(self._world, guest) for one in interface.addresses}
        wanted = {address for address, place in added.items() if address not in mine and may_talk(own, place)}
        if not self._given:
            # Behind the gateway is what this machine exposes.
            wanted |= set(gateways_of(self._world, guest))
        new, gone = sorted(wanted - self._given), sorted(removed & self._given)
        self._given = (self._given | wanted) - set(gone)
        for start in range(0, max(len(new), len(gone)), _MOST_AT_ONCE):
            part = slice(start, start + _MOST_AT_ONCE)
            self._tell({"add": new[part], "remove": gone[part]})

    def _tell(self, message: Mapping[str, Any]) -> None:
        # The process behind the interfaces does little else than read this; a full queue means it is gone.
        with contextlib.suppress(OSError):
            self._sock.send(orjson.dumps(message))


def _first_address(world: World, guest: Document) -> str | None:
    found = (one for interface in addresses_of(world, guest) for one in interface.addresses)
    return next((one.address for one in found if one.family == "inet"), None)


async def _join(near: socket.socket, far: socket.socket) -> None:
    """Carry bytes both ways until both ends have said all, or one is gone."""
    ways = [asyncio.create_task(_pump(near, far)), asyncio.create_task(_pump(far, near))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)
        for way in ways:
            if not way.cancelled():
                way.exception()


async def _pump(source: socket.socket, target: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(source, _CHUNK):
        await loop.sock_sendall(target, data)
    target.shutdown(socket.SHUT_WR)
