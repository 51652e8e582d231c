"""Clients that go in the middle of something."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from tests.unit.base.serving.clients import (
    AccessLog,
    Hanging,
    connected,
    echo,
    localhost_certificate,
    run,
    trusting,
)

from stackyard.base.serving import ClientGoneError, Tls, respond, serve


@pytest.mark.parametrize("is_tls", [False, True])
def test_handler_ends_its_work_when_its_client_goes(is_tls: bool) -> None:
    async def main() -> None:
        certificate, hanging, log = localhost_certificate(), Hanging(), AccessLog()
        tls, context = (Tls(certificate), trusting(certificate)) if is_tls else (None, None)
        async with serve(hanging, tls=tls, on_access=log) as server:
            async with connected(server, context) as client:
                await client.send(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n")
                await hanging.begun.wait()
            while server.connections:
                await asyncio.sleep(0.01)
            hanging.release.set()
            (access,) = await log.wait()
        assert not hanging.was_cancelled
        assert access.status == 200
        assert isinstance(access.error, ClientGoneError)

    run(main())


def test_client_that_goes_in_the_middle_of_its_body_is_an_error_of_that_request_alone() -> None:
    async def main() -> None:
        begun, log = asyncio.Event(), AccessLog()

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            begun.set()
            return respond(200, await request.read())

        async with serve(handler, on_access=log) as server:
            async with connected(server) as client:
                await client.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
                await begun.wait()
            (access,) = await log.wait()
            async with connected(server) as client:
                assert (await client.get()).status == 200
        assert isinstance(access.error, ClientGoneError)
        assert access.status == 400

    run(main())


def test_client_that_goes_while_a_handler_streams_is_no_fault_of_the_handler() -> None:
    async def main() -> None:
        gone, log = asyncio.Event(), AccessLog()

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await gone.wait()
            await response.write(b"too late")
            return response

        async with serve(handler, on_access=log) as server:
            async with connected(server) as client:
                await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                await client.reader.readuntil(b"\r\n\r\n")
            while server.connections:
                await asyncio.sleep(0.01)
            gone.set()
            (access,) = await log.wait()
        assert isinstance(access.error, ClientGoneError)

    run(main())


@pytest.mark.parametrize("is_tls", [False, True])
def test_request_that_comes_with_the_end_of_its_client_harms_nobody(is_tls: bool) -> None:
    async def main() -> None:
        certificate = localhost_certificate()
        tls, context = (Tls(certificate), trusting(certificate)) if is_tls else (None, None)
        async with serve(echo, tls=tls) as server:
            for _ in range(30):
                async with connected(server, context) as client:
                    await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
            async with connected(server, context) as client:
                assert (await client.get()).status == 200

    run(main())


def test_tls_client_that_does_not_say_goodbye_is_closed() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        # aiohttp closes the transport of a websocket once more than others.
        socket = web.WebSocketResponse(timeout=0.1)
        await socket.prepare(request)
        await socket.close()
        return socket

    async def main() -> None:
        certificate = localhost_certificate()
        async with (
            serve(handler, tls=Tls(certificate)) as server,
            connected(server, trusting(certificate)) as client,
        ):
            transport = client.writer.transport
            assert isinstance(transport, asyncio.Transport)
            transport.pause_reading()
            upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            await client.send(f"GET / HTTP/1.1\r\nHost: x\r\n{upgrade}{key}\r\n".encode())
            while server.connections:
                await asyncio.sleep(0.01)

    run(main())


@pytest.mark.parametrize("is_tls", [False, True])
def test_client_that_goes_in_the_middle_of_the_response_is_told_as_gone(is_tls: bool) -> None:
    async def main() -> None:
        certificate, log = localhost_certificate(), AccessLog()
        tls, context = (Tls(certificate), trusting(certificate)) if is_tls else (None, None)

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            return respond(200, b"x" * 50_000_000)

        async with serve(handler, tls=tls, on_access=log) as server:
            async with connected(server, context) as client:
                await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                await client.reader.read(1000)
            (access,) = await log.wait()
        assert isinstance(access.error, ClientGoneError)
        assert access.bytes < 50_000_000

    run(main())
