"""Responses as they go over the wire."""

from __future__ import annotations

import pytest
from aiohttp import web
from tests.unit.base.serving.clients import AccessLog, Reply, connected, localhost_certificate, run, trusting

from stackyard.base.serving import ServerLimits, Tls, respond, serve


def answered(response: web.StreamResponse, *, method: str = "GET") -> Reply:
    """Return what a client sees when the handler returns this."""
    replies: list[Reply] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return response

    async def main() -> None:
        async with serve(handler) as server, connected(server) as client:
            replies.append(await client.get(method=method))

    run(main())
    return replies[0]


@pytest.mark.parametrize(
    ("status", "reason", "line"),
    [
        (595, "Connection refused", b"HTTP/1.1 595 Connection refused"),
        (596, None, b"HTTP/1.1 596 "),
        (500, "VM 100 already exists on node 'pve1'", b"HTTP/1.1 500 VM 100 already exists on node 'pve1'"),
        (200, None, b"HTTP/1.1 200 OK"),
        (400, "é ☃", "HTTP/1.1 400 é ☃".encode()),
        (500, "a\r\nSet-Cookie: evil=1\r\n\r\n<html>", b"HTTP/1.1 500 a Set-Cookie: evil=1 <html>"),
        (500, "line one\nline two\n", b"HTTP/1.1 500 line one line two"),
        (500, "nul\x00 tab\t del\x7f \ud800", b"HTTP/1.1 500 nul  tab  del  ?"),
    ],
)
def test_status_line_on_the_wire(status: int, reason: str | None, line: bytes) -> None:
    reply = answered(respond(status, b"{}", reason=reason))
    assert reply.status_line == line
    assert "set-cookie" not in reply.headers
    assert reply.body == b"{}"


def test_header_value_cannot_bring_another_header() -> None:
    reply = answered(respond(200, b"", headers={"Location": "/a\r\nSet-Cookie: evil=1"}))
    assert reply.headers["location"] == "/a Set-Cookie: evil=1"
    assert "set-cookie" not in reply.headers


def test_header_that_cannot_be_sent_is_a_500_and_not_a_dead_connection() -> None:
    reply = answered(web.Response(status=200, headers={"Bad\r\nName": "x"}))
    assert reply.status == 500
    assert "name" not in reply.headers


def test_chunked_response_that_cannot_begin_is_a_whole_500() -> None:
    broken = web.StreamResponse(headers={"X": "a\nb"})
    broken.enable_chunked_encoding()
    reply = answered(broken)
    assert (reply.status, reply.body) == (500, b"500 Internal Server Error\n")


def test_content_type_and_server_are_as_asked() -> None:
    reply = answered(respond(200, b"{}", content_type="application/json;charset=UTF-8"))
    assert reply.headers["content-type"] == "application/json;charset=UTF-8"
    assert reply.headers["server"] == "stackyard"
    reply = answered(respond(200, b"x", headers={"server": "pve-api-daemon/3.0", "content-type": "text/css"}))
    assert (reply.headers["server"], reply.headers["content-type"]) == ("pve-api-daemon/3.0", "text/css")


def test_headers_may_come_twice() -> None:
    response = respond(200, headers=[("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])
    assert response.headers.getall("Set-Cookie") == ["a=1", "b=2"]


def test_empty_body_has_no_content_type() -> None:
    reply = answered(respond(200))
    assert reply.headers["content-length"] == "0"
    assert "content-type" not in reply.headers


@pytest.mark.parametrize("size", [5, 3_000_000])
def test_head_tells_the_length_and_sends_nothing(size: int) -> None:
    reply = answered(respond(200, b"x" * size), method="HEAD")
    assert reply.headers["content-length"] == str(size)


@pytest.mark.parametrize("is_tls", [False, True])
def test_large_body_arrives_whole(is_tls: bool) -> None:
    body = bytes(range(256)) * 80_000

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return respond(200, body)

    async def main() -> None:
        certificate = localhost_certificate()
        tls, context = (Tls(certificate), trusting(certificate)) if is_tls else (None, None)
        async with serve(handler, tls=tls) as server, connected(server, context) as client:
            assert (await client.get()).body == body
            assert (await client.get()).body == body

    run(main())


def test_handler_without_a_response_is_a_500() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return None  # type: ignore[return-value]

    async def main() -> None:
        log = AccessLog()
        async with serve(handler, on_access=log) as server, connected(server) as client:
            assert (await client.get()).status == 500
            (access,) = await log.wait()
        assert "NoneType" in str(access.error)

    run(main())


def test_response_that_is_returned_twice_is_a_500_and_no_client_hangs() -> None:
    response = respond(200, b"once")

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return response

    async def main() -> None:
        async with serve(handler) as server, connected(server) as client:
            assert (await client.get()).status == 200
            assert (await client.get()).status == 500

    run(main())


def test_second_response_to_one_request_is_never_sent() -> None:
    async def returning(request: web.BaseRequest) -> web.StreamResponse:
        first = web.StreamResponse()
        await first.prepare(request)
        return respond(200, b"second")

    async def raising(request: web.BaseRequest) -> web.StreamResponse:
        first = web.StreamResponse()
        await first.prepare(request)
        raise web.HTTPNotFound(text="second")

    async def main() -> None:
        for handler in (returning, raising):
            log = AccessLog()
            async with serve(handler, on_access=log) as server, connected(server) as client:
                await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert (await client.rest()).count(b"HTTP/1.1") == 1
                (access,) = await log.wait()
            assert access.error is not None

    run(main())


def test_aiohttp_exceptions_are_answers() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        raise web.HTTPNotFound(text="no such thing")

    async def main() -> None:
        log = AccessLog()
        async with (
            serve(handler, on_access=log, limits=ServerLimits()) as server,
            connected(server) as client,
        ):
            reply = await client.get()
            assert (reply.status, reply.body) == (404, b"no such thing")
            assert reply.headers["server"] == "stackyard"
            assert (await client.get()).status == 404
        assert [access.error for access in log.seen] == [None, None]

    run(main())
