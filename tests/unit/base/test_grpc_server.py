"""The gRPC server that the provider and the lab share."""

from __future__ import annotations

import asyncio
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived

from stackyard.base.grpc_server import ClosingServer


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
