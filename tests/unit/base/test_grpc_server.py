"""The gRPC server that the provider and the lab share."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived

from stackyard.base.grpc_server import ClosingServer
from stackyard.base.serving.certificate import make_certificate
from stackyard.base.serving.sockets import listen
from stackyard.base.serving.tls import Tls, server_context


async def _call(path: Path, method: str) -> dict[str, str]:
    """Call a method as a client does that checks what it gets; return the headers of the answer."""
    reader, writer = await asyncio.open_unix_connection(path)
    connection = H2Connection(H2Configuration(header_encoding="utf-8"))
    connection.initiate_connection()
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    connection.send_headers(1, list(headers.items()), end_stream=True)
    writer.write(connection.data_to_send())
    try:
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, ResponseReceived):
                    return {str(name): str(value) for name, value in event.headers}
        raise AssertionError("the server answered nothing")
    finally:
        writer.close()


async def test_an_unknown_method_is_refused_as_newer_clients_expect(tmp_path: Path) -> None:
    server = ClosingServer([])
    await server.start(path=str(tmp_path / "socket"))
    try:
        answer = await asyncio.wait_for(_call(tmp_path / "socket", "/tfplugin6.Provider/New"), 30)
    finally:
        await server.end()
    assert answer["grpc-status"] == "12"
    assert answer["content-type"].startswith("application/grpc")


async def test_a_client_that_says_nothing_more_does_not_keep_its_connection() -> None:
    context = server_context(Tls(make_certificate(["127.0.0.1"])))
    context.set_alpn_protocols(["h2"])
    server = ClosingServer([])
    sock = listen("127.0.0.1", 0)
    await server.start(sock=sock, ssl=context)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(*sock.getsockname()[:2], ssl=trusting)
    # The settings of HTTP/2: the server has taken the connection.
    assert await reader.read(9)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    began = time.monotonic()
    await server.end()
    assert time.monotonic() - began < 5
    writer.transport.resume_reading()  # type: ignore[attr-defined]
    # TLS itself waits half a minute for such a client.
    async with asyncio.timeout(5):
        while await reader.read(65536):
            pass
    writer.transport.abort()
    await asyncio.sleep(0)
