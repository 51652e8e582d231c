"""A way through a SOCKS5 proxy (RFC 1928, RFC 1929)."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass, field

from stackyard.clients.ssh.failures import SshUnreachableError

__all__ = ["Socks5", "open_through"]

_VERSION = 5
_NO_LOGIN, _PASSWORD, _NONE_ACCEPTED = 0, 2, 0xFF
_CONNECT = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_LONGEST_TEXT = 255
_REFUSALS = {
    1: "it failed",
    2: "its rules do not allow that",
    3: "the network cannot be reached",
    4: "the host cannot be reached",
    5: "the connection was refused",
    6: "the time to live ran out",
    7: "it does not know the command",
    8: "it does not know this type of address",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Socks5:
    """Where the proxy is, and who we are there.

    Attributes:
        address: Its name or address.
        port: Its port.
        username: The user, where it asks for one.
        password: The password of the user.
    """

    address: str
    port: int
    username: str = ""
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"SOCKS5 proxy {self.address}:{self.port}"


async def open_through(proxy: Socks5, address: str, port: int, *, timeout_s: float) -> socket.socket:
    """Return a socket that leads to a port through a proxy, which also resolves the name.

    Raises:
        SshUnreachableError: The proxy does not answer, does not accept us, or cannot reach the port.
    """
    try:
        async with asyncio.timeout(timeout_s):
            return await _open(proxy, address, port)
    except (OSError, TimeoutError, EOFError, UnicodeError) as err:
        reason = str(err) or "it does not answer"
        raise SshUnreachableError(f"Cannot reach {address}:{port} through the {proxy}: {reason}.") from err


async def _open(proxy: Socks5, address: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(proxy.address, proxy.port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, place = found[0]
    opened = socket.socket(family, kind, protocol)
    opened.setblocking(False)
    try:
        await loop.sock_connect(opened, place)
        await _greet(opened, proxy)
        await _ask(opened, address, port)
    except BaseException:
        opened.close()
        raise
    return opened


async def _greet(opened: socket.socket, proxy: Socks5) -> None:
    methods = bytes([_NO_LOGIN, _PASSWORD] if proxy.username else [_NO_LOGIN])
    await _send(opened, bytes([_VERSION, len(methods)]) + methods)
    version, method = await _receive(opened, 2)
    if version != _VERSION:
        raise ConnectionError("what answers there is no SOCKS5 proxy")
    if method == _PASSWORD and proxy.username:
        await _send(opened, b"\x01" + _text(proxy.username) + _text(proxy.password))
        _, status = await _receive(opened, 2)
        if status != 0:
            raise ConnectionError("it does not accept the user and password")
    elif method != _NO_LOGIN:
        asked = "a login" if method == _NONE_ACCEPTED else "a way to log in that is not known here"
        raise ConnectionError(f"it asks for {asked}")


async def _ask(opened: socket.socket, address: str, port: int) -> None:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        target = bytes([_NAME]) + _text(address)
    else:
        target = bytes([_IPV4 if parsed.version == 4 else _IPV6]) + parsed.packed
    await _send(opened, bytes([_VERSION, _CONNECT, 0]) + target + port.to_bytes(2, "big"))
    _, status, _, kind = await _receive(opened, 4)
    if status != 0:
        raise ConnectionError(_REFUSALS.get(status, f"it answers with status {status}"))
    # The address that the proxy uses is of no interest; it only has to be out of the way.
    lengths = {_IPV4: 4, _IPV6: 16}
    length = lengths[kind] if kind in lengths else (await _receive(opened, 1))[0]
    await _receive(opened, length + 2)


def _text(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > _LONGEST_TEXT:
        raise ConnectionError("a name, user or password has more than 255 bytes")
    return bytes([len(encoded)]) + encoded


async def _send(opened: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(opened, data)


async def _receive(opened: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        chunk = await asyncio.get_running_loop().sock_recv(opened, count - len(received))
        if not chunk:
            raise EOFError("it closed the connection")
        received += chunk
    return received
