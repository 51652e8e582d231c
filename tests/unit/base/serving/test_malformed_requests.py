"""What is not a request: one small answer, never a traceback, never the handler."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from tests.unit.base.serving.clients import AccessLog, connected, echo, run

from stackyard.base.serving import ServerLimits, respond, serve


@pytest.mark.parametrize(
    "garbage",
    [
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xc3\xbc HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA\x00B: c\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x00" * 5000,
    ],
)
def test_what_is_not_http_gets_one_small_answer(garbage: bytes) -> None:
    async def main() -> None:
        async with serve(echo) as server, connected(server) as client:
            await client.send(garbage)
            reply = await client.reply()
            assert reply.status == 400
            assert reply.body == b"400 Bad Request\n"
            assert await client.rest() == b""

    run(main())


def test_garbage_after_a_good_request_is_refused_too() -> None:
    async def main() -> None:
        async with serve(echo) as server, connected(server) as client:
            assert (await client.get("/1")).body == b"GET /1 "
            await client.send(b"nonsense\r\n\r\n")
            assert (await client.reply()).status == 400
            assert await client.rest() == b""

    run(main())


def test_garbage_in_a_chunked_body_does_not_harm_the_server() -> None:
    async def main() -> None:
        async with serve(echo) as server:
            async with connected(server) as client:
                await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
                assert (await client.reply()).status == 400
            async with connected(server) as client:
                assert (await client.get()).status == 200

    run(main())


def test_garbage_later_in_a_body_ends_the_wait_of_its_handler() -> None:
    async def main() -> None:
        begun, log = asyncio.Event(), AccessLog()

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            begun.set()
            return respond(200, await request.read())

        async with serve(handler, on_access=log) as server, connected(server) as client:
            await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
            await begun.wait()
            await client.send(b"zz\r\n")
            assert (await client.reply()).status == 400
            assert await client.rest() == b""
        assert [access.status for access in log.seen] == [400]

    run(main())


def test_body_that_cannot_be_decompressed_is_a_400() -> None:
    async def main() -> None:
        limits = ServerLimits(decompress_requests=True)
        async with serve(echo, limits=limits) as server, connected(server) as client:
            assert (await client.post(b"not gzip", headers="Content-Encoding: gzip\r\n")).status == 400

    run(main())


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nLong: " + b"a" * 5000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"Many: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 100 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nLong: " + b"a" * 900_000 + b"\r\n\r\n",
    ],
    ids=["line", "field", "fields", "count", "flood"],
)
@pytest.mark.parametrize("piece_bytes", [700, 10_000_000])
def test_large_headers_are_refused(head: bytes, piece_bytes: int) -> None:
    async def main() -> None:
        called = False

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            nonlocal called
            called = True
            return respond(200)

        limits = ServerLimits(max_header_bytes=2000)
        async with serve(handler, limits=limits) as server, connected(server) as client:
            for start in range(0, len(head), piece_bytes):
                await client.send(head[start : start + piece_bytes])
            assert (await client.reply()).status == 431
            assert await client.rest() == b""
        assert not called

    run(main())


def test_headers_within_the_limit_pass_beside_a_large_body() -> None:
    async def main() -> None:
        async with (
            serve(echo, limits=ServerLimits(max_header_bytes=2000)) as server,
            connected(server) as client,
        ):
            assert (await client.post(b"x" * 9000)).status == 200
            for _ in range(5):
                assert (await client.get(headers="Long: " + "a" * 1500 + "\r\n")).status == 200

    run(main())
