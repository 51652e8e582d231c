"""Who answers at an address, in this lab and in those inside and around it, and how to get there.

An address is looked for in the lab itself, then in the labs inside its guests, then in the lab around it: the
nearest one counts. So nodes and guests of all depths reach one another as machines of one network do.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
from typing import TYPE_CHECKING

from pvelab.machines.machine import Endpoint, MachineError
from pvelab.nested.network_location import NetworkLocation
from pvelab.nested.ports import API_PORT, SSH_PORT
from pvelab.server.problems import PveError
from pvelab.world.guests.addresses import guest_at

if TYPE_CHECKING:
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["NetworkLocation", "connect", "locate", "open_connection"]

_LOCAL = "127.0.0.1"


def locate(world: World, address: str) -> NetworkLocation | None:
    """Return who has an address, seen from a lab; None if no one has who runs.

    Raises:
        ValueError: That is no address.
    """
    wanted = str(ipaddress.ip_address(address))
    here: World | None = world
    came_from: World | None = None
    while here is not None:
        found = _inside(here, wanted, came_from)
        if found is not None:
            return found
        came_from, here = here, None if here.uplink is None else here.uplink.world
    return None


async def connect(place: NetworkLocation, port: int, *, source: str | None = None) -> socket.socket:
    """Return a socket that is connected to a port of a guest or node.

    Args:
        place: The guest or node.
        port: The port.
        source: The address that the connection is seen to come from, where that can be.

    Raises:
        OSError: No one listens there, or the guest does not come up.
    """
    if place.guest is None:
        end: Endpoint | socket.socket = _node_port(place, port)
    else:
        end = await _guest_port(place.world, place.guest, port, source)
    return end if isinstance(end, socket.socket) else await open_connection(end)


async def open_connection(end: Endpoint) -> socket.socket:
    """Return a socket that is connected to a port of this machine.

    Raises:
        OSError: No one listens there.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, (end.host, end.port))
    except BaseException:
        sock.close()
        raise
    return sock


def _inside(world: World, address: str, came_from: World | None) -> NetworkLocation | None:
    guest = guest_at(world, address)
    if guest is not None:
        return NetworkLocation(world=world, guest=guest)
    for name, node in world.cluster.nodes().items():
        if node["ip"] == address and world.cluster.is_online(name):
            # The node of a nested lab is the guest that the lab is in.
            above = None if world.uplink is None else world.uplink.guest
            if world.uplink is not None and above is not None:
                return NetworkLocation(world=world.uplink.world, guest=above)
            return NetworkLocation(world=world, node=name)
    for inner in world.nest.worlds.values():
        found = _inside(inner, address, None) if inner is not came_from else None
        if found is not None:
            return found
    return None


async def _guest_port(
    world: World, guest: Document, port: int, source: str | None
) -> Endpoint | socket.socket:
    try:
        machine = await world.machines.of(guest)
        end = await machine.endpoint(port)
    except (MachineError, PveError) as err:
        raise ConnectionRefusedError(errno.ECONNREFUSED, str(err)) from err
    if end is not None:
        return end
    if port != SSH_PORT or world.machines.talos(int(guest["vmid"])) is not None:
        try:
            return await machine.dial(port, source)
        except MachineError as err:
            raise ConnectionRefusedError(errno.ECONNREFUSED, str(err)) from err
    if world.nest.answer_guest is None:
        raise _refusal()
    near, far = socket.socketpair()
    near.setblocking(False)
    world.nest.begin(world.nest.answer_guest(guest, far))
    return near


def _node_port(place: NetworkLocation, port: int) -> Endpoint:
    nest = place.world.nest
    local = {API_PORT: nest.api_port, SSH_PORT: nest.ssh_ports.get(place.node)}.get(port)
    if local is None:
        raise _refusal()
    return Endpoint(host=_LOCAL, port=local)


def _refusal() -> ConnectionRefusedError:
    return ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
