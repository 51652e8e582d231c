"""Listening sockets: binding them with clear errors, and tuning the connections that they accept."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket

from stackyard.base.errors import StackyardError

__all__ = ["AddressForbiddenError", "AddressInUseError", "ListenError", "listen", "tune"]

_BACKLOG = 1024
_HIGHEST_PORT = 65535
# A client that vanished without a word (power cut, cable) is found out after about a minute.
_KEEPALIVE_IDLE_S = 30
_KEEPALIVE_INTERVAL_S = 10
_KEEPALIVE_PROBES = 3
# The system counts milliseconds in 32 bits.
_LONGEST_WAIT_S = 86_400.0


class ListenError(StackyardError):
    """A server cannot listen on the address that it was given."""

    code = "E-LISTEN"
    summary = "The server cannot listen on its address"
    default_remedy = (
        "Give an address of this machine (127.0.0.1, ::1, 0.0.0.0 or one of its own) and a free port."
    )


class AddressInUseError(ListenError):
    """Another program already listens on this address and port."""

    code = "E-LISTEN-IN-USE"
    summary = "The port is already in use"
    default_remedy = (
        "Stop the other program or choose another port (`--port`; `--ssh-port` for the SSH server of a lab); "
        "port 0 takes any free one."
    )


class AddressForbiddenError(ListenError):
    """The system does not let this user listen on this port."""

    code = "E-LISTEN-FORBIDDEN"
    summary = "Listening on the port is not permitted"
    default_remedy = (
        "Choose a port of 1024 or above, or grant the right to use lower ones (CAP_NET_BIND_SERVICE)."
    )


def listen(bind: str | socket.socket, port: int) -> socket.socket:
    """Return a socket that listens.

    Args:
        bind: An address or host name, or a TCP socket that is already bound, which the server then owns.
        port: The port, 0 for any free one. Not used with a bound socket.

    Raises:
        ListenError: The address is not of this machine, in use, or not permitted.
    """
    sock = bind if isinstance(bind, socket.socket) else _bind_socket(bind, port)
    try:
        if sock.family not in (socket.AF_INET, socket.AF_INET6) or sock.type != socket.SOCK_STREAM:
            raise ListenError("The socket that was given is not a TCP socket.")
        sock.setblocking(False)
        sock.listen(_BACKLOG)
    except OSError as err:
        sock.close()
        raise _refusal(err, _format_address(bind, port)) from err
    except BaseException:
        sock.close()
        raise
    return sock


def _bind_socket(bind: str, port: int) -> socket.socket:
    where = _format_address(bind, port)
    if not 0 <= port <= _HIGHEST_PORT:
        # The system would take the number without its upper bits.
        raise ListenError(f"Cannot listen on {where}: a port is a number from 0 to {_HIGHEST_PORT}.")
    try:
        found = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as err:
        raise ListenError(f"Cannot listen on {where}: {err}.") from err
    family, kind, protocol, _, address = found[0]
    sock: socket.socket | None = None
    try:
        sock = socket.socket(family, kind, protocol)
        # A server that is started again must not wait for the old connections to be forgotten.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # The wildcard `::` serves IPv4 as well, whatever the system's default.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not _is_wildcard(address[0])))
        sock.bind(address)
    except OSError as err:
        if sock is not None:
            sock.close()
        raise _refusal(err, where) from err
    return sock


def _is_wildcard(host: object) -> bool:
    return ipaddress.ip_address(str(host)).is_unspecified


def _format_address(bind: str | socket.socket, port: int) -> str:
    if isinstance(bind, socket.socket):
        return "the socket that was given"
    return f"[{bind}]:{port}" if ":" in bind else f"{bind}:{port}"


def _refusal(err: OSError, where: str) -> ListenError:
    kinds = {errno.EADDRINUSE: AddressInUseError, errno.EACCES: AddressForbiddenError}
    return kinds.get(err.errno or 0, ListenError)(f"Cannot listen on {where}: {err.strerror or err}.")


def tune(sock: socket.socket, write_timeout_s: float) -> None:
    """Make the system notice a client that is gone without a word."""
    unacknowledged_ms = max(1, int(min(write_timeout_s, _LONGEST_WAIT_S) * 1000))
    # Some of these are missing on some systems, and a client may be gone already.
    with contextlib.suppress(OSError, AttributeError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_PROBES)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unacknowledged_ms)
