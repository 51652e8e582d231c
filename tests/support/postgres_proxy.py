"""A TCP proxy that breaks a connection to PostgreSQL exactly before or after the server does its work."""

from __future__ import annotations

import contextlib
import enum
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

__all__ = ["Cut", "TcpProxy", "run_proxy", "run_tls_proxy"]

SSL_REQUEST_BYTES = 8
# ReadyForQuery outside of a transaction: the last thing that a server says to a request.
READY = b"Z\x00\x00\x00\x05I"


class Cut(enum.Enum):
    """Where the connection breaks."""

    BEFORE = "the request does not arrive"
    AFTER = "the request is done, and its reply does not arrive"
    LATE = "the connection breaks, and the request arrives only when the test says so"


@dataclass
class TcpProxy:
    """Stands between clients and a server.

    Attributes:
        target: The port of the server.
        port: Its own port.
        cuts: What happens to the coming requests of connections that are open; nothing when used up.
        on_cut: Called before the client learns that its connection is lost.
        done: How many connections were cut.
        late: Delivers the requests that are held back.
    """

    target: int
    port: int = 0
    cuts: list[Cut] = field(default_factory=list)
    on_cut: Callable[[], object] = field(default=lambda: None)
    done: int = 0
    late: list[Callable[[], None]] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    def cut(self, *cuts: Cut) -> None:
        """Cut the connections that are open now at their next request."""
        for link in self.links:
            link.is_armed = True
        self.cuts.extend(cuts)

    def deliver(self) -> None:
        """Deliver what is held back, and return when the server has done it."""
        for send in self.late:
            send()
        self.late.clear()

    def report_cut(self) -> None:
        self.done += 1
        self.on_cut()


@dataclass(eq=False)
class Link:
    """One client with its connection to the server."""

    proxy: TcpProxy
    client: socket.socket
    server: socket.socket
    is_armed: bool = False
    swallows: Cut | None = None

    def run(self) -> None:
        back = threading.Thread(target=self._relay_replies)
        back.start()
        with contextlib.suppress(OSError):
            while (data := self.client.recv(65536)) and self._pass_on(data, back):
                pass
        if self.swallows is not Cut.LATE:
            shut(self.server)
        back.join()
        self.proxy.links.remove(self)

    def _pass_on(self, data: bytes, back: threading.Thread) -> bool:
        """Pass a request on, unless the connection breaks here."""
        cut = self.proxy.cuts.pop(0) if self.is_armed and self.proxy.cuts else None
        self.is_armed = self.is_armed and cut is None
        self.swallows = cut or self.swallows
        if cut not in (Cut.BEFORE, Cut.LATE):
            self.server.sendall(data)
            return True

        def deliver() -> None:
            self.server.sendall(data)
            back.join()

        if cut is Cut.LATE:
            self.proxy.late.append(deliver)
        self.proxy.report_cut()
        shut(self.client)
        return False

    def _relay_replies(self) -> None:
        swallowed = b""
        with contextlib.suppress(OSError):
            while data := self.server.recv(65536):
                if self.swallows is None:
                    self.client.sendall(data)
                    continue
                swallowed += data
                if swallowed.endswith(READY):
                    if self.swallows is Cut.AFTER:
                        self.proxy.report_cut()
                    break
        shut(self.server)
        shut(self.client)


def shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def run_proxy(target: int) -> Iterator[TcpProxy]:
    """Run a proxy in threads."""
    proxy = TcpProxy(target)

    def serve(client: socket.socket) -> None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", target)) as server:
            link = Link(proxy, client, server)
            proxy.links.append(link)
            link.run()

    with _accept(serve) as proxy.port:
        yield proxy
        for link in list(proxy.links):
            shut(link.client)
            shut(link.server)


@contextlib.contextmanager
def run_tls_proxy(target: int, certificate: str, key: str) -> Iterator[int]:
    """Add TLS to a server that has none, as PostgreSQL speaks it; give the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    ends: list[socket.socket] = []

    def serve(client: socket.socket) -> None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", target)) as server:
            ends.append(server)
            client.recv(SSL_REQUEST_BYTES)
            client.sendall(b"S")
            with context.wrap_socket(client, server_side=True) as safe:
                ends.append(safe)
                # One thread for both directions: a TLS connection must not be used by two.
                while True:
                    for end in select.select([safe, server], [], [])[0]:
                        data = end.recv(65536)
                        (server if end is safe else safe).sendall(data)
                        if not data:
                            return

    with _accept(serve) as port:
        yield port
        for end in ends:
            shut(end)


@contextlib.contextmanager
def _accept(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Serve each client in a thread, until the block ends and all of them are gone."""
    threads: list[threading.Thread] = []

    def act(client: socket.socket) -> None:
        with client:
            serve(client)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threads.append(threading.Thread(target=act, args=(listening.accept()[0],)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield listening.getsockname()[1]
        finally:
            shut(listening)
            accepting.join()
            for thread in threads:
                thread.join()
