"""Clients that take too long: each is closed, and only it."""

from __future__ import annotations

import asyncio
import math
import socket

import pytest
from aiohttp import web
from tests.unit.base.serving.clients import AccessLog, connected, echo, localhost_certificate, run, trusting

from stackyard.base.serving import ClientStalledError, ServerLimits, Tls, respond, serve

SHORT_S = 0.2
# What must not pass between two steps of a client that is not slow, on a loaded machine either.
ENOUGH_S = 0.5
LARGE = b"x" * 20_000_000


def test_client_that_says_nothing_is_closed() -> None:
    async def main() -> None:
        log = AccessLog()
        limits = ServerLimits(header_timeout_s=SHORT_S)
        async with serve(echo, limits=limits, on_access=log) as server, connected(server) as client:
            assert await client.rest() == b""
        assert log.seen == []

    run(main())


def test_client_that_never_ends_its_headers_is_closed_however_it_trickles() -> None:
    async def main() -> None:
        log = AccessLog()
        limits = ServerLimits(header_timeout_s=SHORT_S, idle_timeout_s=1000)
        async with serve(echo, limits=limits, on_access=log) as server, connected(server) as client:
            answer = asyncio.create_task(client.rest())
            await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n")
            while not answer.done():
                await client.send(b"A: b\r\n")
                await asyncio.sleep(SHORT_S / 10)
            assert (await answer).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
            (access,) = await log.wait()
        assert isinstance(access.error, ClientStalledError)

    run(main())


def test_headers_of_a_later_request_have_the_same_deadline() -> None:
    async def main() -> None:
        limits = ServerLimits(header_timeout_s=ENOUGH_S, idle_timeout_s=1000)
        async with serve(echo, limits=limits) as server, connected(server) as client:
            assert (await client.get()).status == 200
            await client.send(b"GET / HTT")
            assert (await client.rest()).startswith(b"HTTP/1.1 408 ")

    run(main())


def test_idle_time_before_a_request_does_not_count_for_its_headers() -> None:
    async def main() -> None:
        limits = ServerLimits(header_timeout_s=ENOUGH_S, idle_timeout_s=1000)
        async with serve(echo, limits=limits) as server, connected(server) as client:
            assert (await client.get()).status == 200
            await asyncio.sleep(ENOUGH_S * 1.2)
            assert (await client.get()).status == 200

    run(main())


def test_silent_tls_handshake_is_closed() -> None:
    async def main() -> None:
        limits = ServerLimits(header_timeout_s=SHORT_S)
        async with serve(echo, tls=Tls(localhost_certificate()), limits=limits) as server:
            async with connected(server) as client:
                assert await client.rest() == b""
            async with connected(server) as client:
                await client.send(b"\x16\x03\x01\x02\x00\x01")
                assert await client.rest() == b""

    run(main())


def test_silent_client_after_the_tls_handshake_is_closed() -> None:
    async def main() -> None:
        certificate = localhost_certificate()
        # Long enough for a handshake on a loaded machine.
        tls, limits = Tls(certificate), ServerLimits(header_timeout_s=1.0)
        async with serve(echo, tls=tls, limits=limits) as server:
            client = connected(server, trusting(certificate))
            async with client as silent:
                assert await silent.rest() == b""

    run(main())


def test_body_that_stops_is_closed_with_408() -> None:
    async def main() -> None:
        log = AccessLog()
        limits = ServerLimits(body_timeout_s=SHORT_S)
        async with serve(echo, limits=limits, on_access=log) as server, connected(server) as client:
            await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
            assert (await client.reply()).status == 408
            assert await client.rest() == b""
            (access,) = await log.wait()
        assert access.status == 408
        assert isinstance(access.error, ClientStalledError)

    run(main())


def test_slow_body_that_keeps_coming_is_taken() -> None:
    async def main() -> None:
        limits = ServerLimits(body_timeout_s=1.0)
        async with serve(echo, limits=limits) as server, connected(server) as client:
            await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 13\r\n\r\n")
            for _ in range(13):
                await asyncio.sleep(0.1)
                await client.send(b"x")
            assert (await client.reply()).status == 200

    run(main())


def test_handler_that_does_not_read_blames_no_client() -> None:
    body = b"x" * 5_000_000

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(SHORT_S * 3)
        return respond(200, str(len(await request.read())).encode())

    async def main() -> None:
        limits = ServerLimits(body_timeout_s=SHORT_S)
        async with serve(handler, limits=limits) as server, connected(server) as client:
            assert (await client.post(body)).body == b"5000000"

    run(main())


def test_long_work_of_a_handler_has_no_deadline() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        await asyncio.sleep(ENOUGH_S * 1.5)
        return respond(200, b"done")

    async def main() -> None:
        short = ServerLimits(
            header_timeout_s=ENOUGH_S,
            body_timeout_s=ENOUGH_S,
            idle_timeout_s=ENOUGH_S,
            write_timeout_s=ENOUGH_S,
        )
        async with serve(handler, limits=short) as server, connected(server) as client:
            assert (await client.post(b"x")).body == b"done"

    run(main())


def test_idle_client_is_closed_after_its_time_and_not_before() -> None:
    async def main() -> None:
        loop, answered_at = asyncio.get_running_loop(), 0.0

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            nonlocal answered_at
            # Where the idle time begins: the client may hear of it much later.
            answered_at = loop.time()
            return respond(200)

        limits = ServerLimits(idle_timeout_s=SHORT_S, header_timeout_s=1000)
        async with serve(handler, limits=limits) as server, connected(server) as client:
            assert (await client.get()).status == 200
            assert await client.rest() == b""
            assert loop.time() - answered_at > SHORT_S * 0.9

    run(main())


@pytest.mark.parametrize("is_tls", [False, True])
@pytest.mark.parametrize("headers", ["", "Connection: close\r\n"])
def test_client_that_never_reads_is_closed(is_tls: bool, headers: str) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return respond(200, LARGE)

    async def main() -> None:
        log, certificate = AccessLog(), localhost_certificate()
        tls, context = (Tls(certificate), trusting(certificate)) if is_tls else (None, None)
        limits = ServerLimits(write_timeout_s=SHORT_S)
        async with (
            serve(handler, tls=tls, limits=limits, on_access=log) as server,
            connected(server, context) as client,
        ):
            transport = client.writer.transport
            assert isinstance(transport, asyncio.Transport)
            transport.pause_reading()
            await client.send(f"GET / HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())
            (access,) = await log.wait()
        assert access.error is not None
        assert access.bytes < len(LARGE)

    run(main())


def test_client_that_reads_slowly_gets_everything() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return respond(200, LARGE)

    async def main() -> None:
        limits = ServerLimits(write_timeout_s=2.0)
        async with serve(handler, limits=limits) as server, connected(server) as client:
            await client.send(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            received = 0
            while data := await client.reader.read(1_000_000):
                received += len(data)
                await asyncio.sleep(0.01)
            assert received > len(LARGE)

    run(main())


def test_many_silent_clients_delay_nobody() -> None:
    async def main() -> None:
        async with serve(echo) as server:
            silent = [socket.create_connection((server.host, server.port)) for _ in range(200)]
            try:
                for half in silent[:100]:
                    half.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
                async with connected(server) as client:
                    for number in range(50):
                        assert (await client.get(f"/{number}")).status == 200
                    assert server.connections == 201
            finally:
                for client_socket in silent:
                    client_socket.close()

    run(main())


def test_vanished_client_is_noticed_by_the_system() -> None:
    seen: list[int] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        sock = request.get_extra_info("socket")
        seen.append(sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
        seen.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE))
        seen.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))
        return respond(200)

    async def main() -> None:
        async with (
            serve(handler, limits=ServerLimits(write_timeout_s=12)) as server,
            connected(server) as client,
        ):
            await client.get()
        alive, idle_s, unacknowledged_ms = seen
        assert alive == 1
        assert idle_s <= 60
        assert unacknowledged_ms == 12_000

    run(main())


def test_limits_may_be_endless() -> None:
    async def main() -> None:
        endless = ServerLimits(
            header_timeout_s=math.inf,
            body_timeout_s=math.inf,
            idle_timeout_s=math.inf,
            write_timeout_s=math.inf,
        )
        async with serve(echo, limits=endless) as server, connected(server) as client:
            assert (await client.post(b"x" * 1_000_000)).status == 200

    run(main())


def test_limit_of_zero_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="header_timeout_s"):
        ServerLimits(header_timeout_s=0)
    with pytest.raises(ValueError, match="max_connections"):
        ServerLimits(max_connections=-1)
