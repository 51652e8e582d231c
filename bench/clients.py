"""Clients that cost next to nothing, so that what is measured is the server: raw requests over TLS.

What a client does is a generator: it yields requests and is sent the bodies of the answers.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from urllib.parse import urlencode

__all__ = ["Address", "Rate", "Work", "ask", "hammer", "repeat"]

Work = Callable[[], Generator[bytes, bytes, None]]

_FORM = "Content-Type: application/x-www-form-urlencoded\r\n"
_PIECE = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server is, and what every request to it carries."""

    port: int
    headers: str = ""

    def request(self, method: str, path: str, **params: object) -> bytes:
        """Return a request as bytes."""
        body = urlencode(params)
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{self.headers}"
        if body:
            head += f"{_FORM}Content-Length: {len(body)}\r\n"
        return f"{head}\r\n{body}".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How quickly something was done over and over again."""

    each_s: float
    p99_s: float

    @property
    def per_second(self) -> float:
        """How many were done in a second."""
        return 1 / self.each_s


@dataclass(slots=True)
class _Client:
    """One connection, and what its client is doing."""

    socket: ssl.SSLSocket
    work: Work
    running: Generator[bytes, bytes, None] = field(init=False)
    began_s: float = 0.0
    received: bytearray = field(default_factory=bytearray)

    def begin(self) -> None:
        """Begin the work again."""
        self.began_s = time.perf_counter()
        self.running = self.work()
        self.socket.sendall(next(self.running))

    def go_on(self) -> bool:
        """Take what has come; with a whole answer go on with the work, and tell whether it is done."""
        self.received += self.socket.recv(_PIECE)
        while self.socket.pending():
            self.received += self.socket.recv(_PIECE)
        body = _body(self.received)
        if body is None:
            return False
        self.received.clear()
        try:
            self.socket.sendall(self.running.send(body))
        except StopIteration:
            return True
        return False


def _body(received: bytearray) -> bytes | None:
    """Return the body of an answer, None while it is incomplete."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = bytes(received[: end + 2]).lower()
    if not head.startswith(b"http/1.1 200"):
        raise RuntimeError(f"the server answered {bytes(received)!r}")
    start = head.index(b"content-length:") + 15
    size = int(head[start : head.index(b"\r\n", start)])
    return None if len(received) < end + 4 + size else bytes(received[end + 4 :])


def ask(address: Address, request: bytes) -> bytes:
    """Send one request and return the body of the answer."""
    bodies: list[bytes] = []

    def work() -> Generator[bytes, bytes, None]:
        bodies.append((yield request))

    repeat(address, work, clients=1, seconds=0)
    return bodies[0]


def hammer(address: Address, request: bytes, *, clients: int, seconds: float) -> Rate:
    """Send one request over and over again from some connections at once."""

    def work() -> Generator[bytes, bytes, None]:
        yield request

    return repeat(address, work, clients=clients, seconds=seconds)


def repeat(address: Address, work: Work, *, clients: int, seconds: float) -> Rate:
    """Do some work over and over again on some connections at once, each at least once."""
    with selectors.DefaultSelector() as selector:
        context = _context()
        crowd = [_Client(_connect(address, context), work) for _ in range(clients)]
        for client in crowd:
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.begin()
        began_s = time.perf_counter()
        took_s: list[float] = []
        busy = clients
        while busy:
            for key, _ in selector.select():
                client = key.data
                if client.go_on():
                    now_s = time.perf_counter()
                    took_s.append(now_s - client.began_s)
                    if now_s - began_s < seconds:
                        client.begin()
                    else:
                        busy -= 1
        elapsed_s = time.perf_counter() - began_s
        for client in crowd:
            client.socket.close()
    ordered = sorted(took_s)
    return Rate(each_s=elapsed_s / len(ordered), p99_s=ordered[int(len(ordered) * 0.99)])


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _connect(address: Address, context: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", address.port))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(plain)
