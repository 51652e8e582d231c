"""A client of HTTP that ends leaves no socket open, whatever the server does or does not do."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import aiohttp

from stackyard.base.serving import Certificate, make_certificate
from stackyard.base.sockets import ClientSockets


@contextlib.contextmanager
def silent_server(certificate: Certificate, folder: Path, received: threading.Event) -> Iterator[int]:
    """A server that takes a connection and a request, and then says nothing: no answer, no farewell."""
    pair = folder / "pair.pem"
    pair.write_bytes(certificate.key_pem + certificate.certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    over = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(65536)
            received.set()
            over.wait(60)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            over.set()
            thread.join()


class Watched(ClientSockets):
    """Remembers every socket."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[socket.socket] = []

    def make(self, address: aiohttp.AddrInfoType) -> socket.socket:
        self.all.append(super().make(address))
        return self.all[-1]


async def test_a_request_that_is_cancelled_before_its_answer_leaves_no_socket_open(tmp_path: Path) -> None:
    certificate, received = make_certificate(["127.0.0.1"]), threading.Event()
    trust = ssl.create_default_context(cadata=certificate.certificate_pem.decode())
    sockets = Watched()
    with silent_server(certificate, tmp_path, received) as port:
        connector = aiohttp.TCPConnector(ssl=trust, socket_factory=sockets.make)
        async with aiohttp.ClientSession(connector=connector) as session:
            request = asyncio.ensure_future(session.get(f"https://127.0.0.1:{port}/"))
            assert await asyncio.to_thread(received.wait, 60)
            request.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await request
        # TLS waits for a farewell, and the session does not wait for TLS.
        assert [one.fileno() >= 0 for one in sockets.all] == [True]
        await sockets.close()
        assert [one.fileno() for one in sockets.all] == [-1]


async def test_a_connection_that_never_came_about_leaves_no_socket_open() -> None:
    sockets = Watched()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        connector = aiohttp.TCPConnector(socket_factory=sockets.make)
        async with aiohttp.ClientSession(connector=connector) as session:
            request = asyncio.ensure_future(session.get(f"https://127.0.0.1:{deaf.getsockname()[1]}/"))
            while not sockets.all:
                await asyncio.sleep(0)
            request.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await request
        await sockets.close()
        assert [one.fileno() for one in sockets.all] == [-1]


async def test_sockets_that_were_never_connected_or_are_closed_already_are_no_problem() -> None:
    sockets = ClientSockets()
    address = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 1))
    with sockets.make(address):
        await sockets.close()
    await sockets.close()
