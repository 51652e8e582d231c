"""Requests as the handler sees them: methods, paths, bodies."""

from __future__ import annotations

import gzip

import pytest
from aiohttp import web
from tests.unit.base.serving.clients import AccessLog, connected, echo, run

from stackyard.base.serving import ServerLimits, is_chunked, respond, serve


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "LOCK", "UNLOCK", "OPTIONS"])
def test_any_method_of_http_reaches_the_handler(method: str) -> None:
    async def main() -> None:
        async with serve(echo) as server, connected(server) as client:
            assert (await client.get("/state", method=method)).body == f"{method} /state ".encode()

    run(main())


@pytest.mark.parametrize("path", ["/a%2Fb/%20c?x=%26&y", "//double", "/a/../b", "/%C3%BC", "/?", "/*"])
def test_path_reaches_the_handler_undecoded(path: str) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return respond(200, f"{request.raw_path}|{request.rel_url.raw_path}".encode())

    async def main() -> None:
        async with serve(handler) as server, connected(server) as client:
            whole, _, alone = (await client.get(path)).body.decode().partition("|")
        assert whole == path
        assert alone == path.partition("?")[0]

    run(main())


def test_one_connection_serves_many_requests_also_sent_ahead() -> None:
    async def main() -> None:
        async with serve(echo) as server, connected(server) as client:
            await client.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % n for n in range(200)))
            seen = [(await client.reply()).body for _ in range(200)]
            assert server.connections == 1
        assert seen == [b"GET /%d " % number for number in range(200)]

    run(main())


def test_request_sent_byte_by_byte_is_understood() -> None:
    async def main() -> None:
        async with serve(echo) as server, connected(server) as client:
            for byte in b"PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc":
                await client.send(bytes([byte]))
            assert (await client.reply()).body == b"PUT /x abc"

    run(main())


def test_body_of_twenty_megabytes_is_read() -> None:
    body = b"0123456789abcdef" * 1_300_000

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return respond(200, b"same" if await request.read() == body else b"different")

    async def main() -> None:
        async with serve(handler) as server, connected(server) as client:
            assert (await client.post(body)).body == b"same"

    run(main())


def test_chunked_body_is_known_as_such_and_read() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        seen = f"{is_chunked(request)} {request.content_length} "
        return respond(200, seen.encode() + await request.read())

    async def main() -> None:
        async with serve(handler) as server, connected(server) as client:
            await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n")
            await client.send(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
            assert (await client.reply()).body == b"True None abcde"
            assert (await client.post(b"x")).body == b"False 1 x"

    run(main())


@pytest.mark.parametrize("decompress", [False, True])
def test_compressed_body_stays_as_sent_unless_asked(decompress: bool) -> None:
    packed = gzip.compress(b"plain text" * 100)
    expected = b"plain text" * 100 if decompress else packed

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return respond(200, await request.read())

    async def main() -> None:
        limits = ServerLimits(decompress_requests=decompress)
        async with serve(handler, limits=limits) as server, connected(server) as client:
            assert (await client.post(packed, headers="Content-Encoding: gzip\r\n")).body == expected

    run(main())


def test_compressed_body_cannot_unpack_past_the_limit() -> None:
    async def main() -> None:
        limits = ServerLimits(decompress_requests=True, max_body_bytes=10_000)
        async with serve(echo, limits=limits) as server, connected(server) as client:
            bomb = gzip.compress(b"0" * 5_000_000)
            assert (await client.post(bomb, headers="Content-Encoding: gzip\r\n")).status == 413

    run(main())


def test_declared_body_over_the_limit_is_refused_before_it_is_sent() -> None:
    async def main() -> None:
        log, limits = AccessLog(), ServerLimits(max_body_bytes=100)
        async with serve(echo, limits=limits, on_access=log) as server, connected(server) as client:
            asking = "Content-Length: 101\r\nExpect: 100-continue\r\n"
            reply = await client.get(method="POST", headers=asking)
            (access,) = await log.wait()
        assert reply.status == access.status == 413
        assert reply.headers["connection"] == "close"

    run(main())


def test_client_that_sends_a_large_body_at_once_still_reads_its_413() -> None:
    async def main() -> None:
        async with (
            serve(echo, limits=ServerLimits(max_body_bytes=100)) as server,
            connected(server) as client,
        ):
            assert (await client.post(b"x" * 5_000_000)).status == 413
            assert await client.rest() == b""

    run(main())


def test_chunked_body_over_the_limit_is_refused_when_it_passes_it() -> None:
    async def main() -> None:
        async with (
            serve(echo, limits=ServerLimits(max_body_bytes=100)) as server,
            connected(server) as client,
        ):
            await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            await client.send(b"80\r\n" + b"x" * 128 + b"\r\n")
            assert (await client.reply()).status == 413

    run(main())


def test_body_of_exactly_the_limit_is_taken() -> None:
    async def main() -> None:
        async with (
            serve(echo, limits=ServerLimits(max_body_bytes=100)) as server,
            connected(server) as client,
        ):
            assert (await client.post(b"x" * 100)).body == b"POST / " + b"x" * 100
            assert (await client.get()).status == 200

    run(main())


def test_handler_that_streams_sets_its_own_limit() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        size = 0
        async for piece in request.content.iter_any():
            size += len(piece)
        return respond(200, str(size).encode())

    async def main() -> None:
        async with (
            serve(handler, limits=ServerLimits(max_body_bytes=100)) as server,
            connected(server) as client,
        ):
            assert (await client.post(b"x" * 3_000_000)).body == b"3000000"

    run(main())


def test_unread_body_does_not_disturb_the_next_request() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return respond(200, request.raw_path.encode())

    async def main() -> None:
        async with serve(handler) as server, connected(server) as client:
            assert (await client.post(b"x" * 3_000_000, path="/1")).body == b"/1"
            assert (await client.get("/2")).body == b"/2"

    run(main())


def test_client_that_asks_first_is_told_to_go_on() -> None:
    async def main() -> None:
        async with serve(echo) as server, connected(server) as client:
            asking = "Content-Length: 3\r\nExpect: 100-continue\r\n"
            assert (await client.get("/x", method="PUT", headers=asking)).status == 100
            await client.send(b"abc")
            assert (await client.reply()).body == b"PUT /x abc"

    run(main())


def test_body_cut_off_by_the_client_is_no_request() -> None:
    async def main() -> None:
        log = AccessLog()
        async with serve(echo, on_access=log) as server, connected(server) as client:
            await client.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
            client.writer.write_eof()
            assert b" 200 " not in await client.rest()
            (access,) = await log.wait()
        assert access.error is not None

    run(main())


def test_websocket_can_be_served() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str("hello")
        await socket.close()
        return socket

    async def main() -> None:
        upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        async with serve(handler) as server, connected(server) as client:
            key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            reply = await client.get("/ws", headers=upgrade + key)
            assert reply.status == 101
            assert await client.reader.readexactly(7) == b"\x81\x05hello"
            await client.send(b"\x88\x80mask")

    run(main())
