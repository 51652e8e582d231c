"""Setting up network interfaces, addresses and routes, by the kernel's own messages (rtnetlink)."""

from __future__ import annotations

import os
import socket
import struct

__all__ = ["Netlink"]

_REQUEST, _ACK, _CREATE, _EXCLUSIVE = 0x1, 0x4, 0x400, 0x200
_NEW_LINK, _SET_LINK, _NEW_ADDRESS, _NEW_ROUTE, _DELETE_ROUTE = 16, 19, 20, 24, 25
_NESTED = 0x8000
_IFLA_ADDRESS, _IFLA_NAME, _IFLA_LINKINFO, _IFLA_PID = 1, 3, 18, 19
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_DESTINATION, _RTA_OUTPUT, _RTA_GATEWAY = 1, 4, 5
_UP = 1
_LOCAL_TABLE, _MAIN_TABLE = 255, 254
_UNICAST, _LOCAL = 1, 2
_STATIC = 4
_EVERYWHERE, _LINK, _HOST = 0, 253, 254
_ERROR = 2


class Netlink:
    """A socket to the kernel, in the network namespace that it was created in."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        self._socket.bind((0, 0))
        self._sequence = 0

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()

    def add_pair(self, name: str, mac: str, peer: str, pid: int) -> None:
        """Make a pair of interfaces, one end here and the other in the namespace of a process.

        Raises:
            OSError: The kernel refuses.
        """
        other = (
            _link(0, 0) + _attribute(_IFLA_NAME, _text(peer)) + _attribute(_IFLA_PID, struct.pack("I", pid))
        )
        data = _attribute(_INFO_DATA | _NESTED, _attribute(_VETH_PEER | _NESTED, other))
        info = _attribute(_INFO_KIND, b"veth") + data
        content = _link(0, 0) + _attribute(_IFLA_NAME, _text(name))
        content += _attribute(_IFLA_ADDRESS, bytes.fromhex(mac.replace(":", "")))
        self._ask(_NEW_LINK, content + _attribute(_IFLA_LINKINFO | _NESTED, info), _CREATE | _EXCLUSIVE)

    def bring_up(self, name: str) -> None:
        """Switch an interface on.

        Raises:
            OSError: The kernel refuses.
        """
        self._ask(_SET_LINK, _link(socket.if_nametoindex(name), _UP, _UP), 0)

    def add_address(self, name: str, address: str, prefix: int) -> None:
        """Give an interface an address.

        Raises:
            OSError: The kernel refuses.
        """
        family, packed = _pack_address(address)
        head = struct.pack("BBBBI", family, prefix, 0, 0, socket.if_nametoindex(name))
        content = head + _attribute(_IFA_LOCAL, packed) + _attribute(_IFA_ADDRESS, packed)
        self._ask(_NEW_ADDRESS, content, _CREATE | _EXCLUSIVE)

    def add_route(self, destination: str, prefix: int, name: str, gateway: str = "") -> None:
        """Send a destination through an interface, or to a gateway there.

        Raises:
            OSError: The kernel refuses.
        """
        scope = _EVERYWHERE if gateway else _LINK
        content = _route(destination, prefix, _MAIN_TABLE, _UNICAST, scope)
        content += _attribute(_RTA_OUTPUT, struct.pack("I", socket.if_nametoindex(name)))
        if gateway:
            content += _attribute(_RTA_GATEWAY, _pack_address(gateway)[1])
        self._ask(_NEW_ROUTE, content, _CREATE)

    def own(self, address: str) -> None:
        """Take what is sent to an address for ours, without having it on an interface.

        Raises:
            OSError: The kernel refuses.
        """
        self._ask(_NEW_ROUTE, _own_address(address), _CREATE)

    def disown(self, address: str) -> None:
        """Undo `own`.

        Raises:
            OSError: It was not ours.
        """
        self._ask(_DELETE_ROUTE, _own_address(address), 0)

    def _ask(self, kind: int, content: bytes, flags: int) -> None:
        self._sequence += 1
        head = struct.pack("IHHII", 16 + len(content), kind, _REQUEST | _ACK | flags, self._sequence, 0)
        self._socket.send(head + content)
        answer = self._socket.recv(65536)
        number = (
            -struct.unpack_from("i", answer, 16)[0] if struct.unpack_from("H", answer, 4)[0] == _ERROR else 0
        )
        if number:
            raise OSError(number, os.strerror(number))


def _own_address(address: str) -> bytes:
    family, _ = _pack_address(address)
    content = _route(address, 32 if family == socket.AF_INET else 128, _LOCAL_TABLE, _LOCAL, _HOST)
    return content + _attribute(_RTA_OUTPUT, struct.pack("I", socket.if_nametoindex("lo")))


def _link(index: int, flags: int, change: int = 0) -> bytes:
    return struct.pack("BxHiII", socket.AF_UNSPEC, 0, index, flags, change)


def _route(destination: str, prefix: int, table: int, kind: int, scope: int) -> bytes:
    family, packed = _pack_address(destination)
    head = struct.pack("BBBBBBBBI", family, prefix, 0, 0, table, _STATIC, scope, kind, 0)
    return head + (_attribute(_RTA_DESTINATION, packed) if prefix else b"")


def _attribute(kind: int, content: bytes) -> bytes:
    length = 4 + len(content)
    return struct.pack("HH", length, kind) + content + bytes(-length % 4)


def _pack_address(address: str) -> tuple[int, bytes]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return family, socket.inet_pton(family, address)


def _text(text: str) -> bytes:
    return text.encode() + b"\0"
