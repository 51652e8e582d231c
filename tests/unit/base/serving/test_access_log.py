"""What is told about requests, and what is not."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from tests.unit.base.serving.clients import AccessLog, connected, echo, run

from stackyard.base.serving import mask_path, respond, serve


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/plain", "/plain"),
        ("/state/a?ID=1234&force=1", "/state/a?ID=1234&force=1"),
        ("/x?password=hunter2&b=1", "/x?password=********&b=1"),
        ("/x?b=1&cipassword=a%20b", "/x?b=1&cipassword=********"),
        ("/x?vncticket=PVE:1;Token=t", "/x?vncticket=********;Token=********"),
        (
            "/x?API_KEY=k&client_secret=s&otp=123456",
            "/x?API_KEY=********&client_secret=********&otp=********",
        ),
        ("/x?%70assword=hunter2", "/x?%70assword=********"),
        ("/x?password=a=b", "/x?password=********"),
        ("/x?password=&token", "/x?password=&token"),
        ("http://user:hunter2@host/x?ID=1", "http://********@host/x?ID=1"),
        ("/mail/a@b.c", "/mail/a@b.c"),
        ("/\udcff", "/\\udcff"),
    ],
)
def test_secret_query_values_are_masked(path: str, shown: str) -> None:
    assert mask_path(path) == shown


def test_each_request_is_told_once_with_its_outcome() -> None:
    async def main() -> None:
        log = AccessLog()
        async with serve(echo, on_access=log) as server, connected(server) as client:
            await client.get("/a%2Fb?token=t0p&ID=7")
            reply = await client.get("/second", method="UNLOCK")
            first, second = await log.wait(2)
        assert (first.method, first.path, first.status) == ("GET", "/a%2Fb?token=********&ID=7", 200)
        assert (second.method, second.path, second.error) == ("UNLOCK", "/second", None)
        assert second.bytes > len(reply.body)
        assert second.elapsed_s >= 0
        assert first.peer.startswith("127.0.0.1:")
        assert len(log.seen) == 2

    run(main())


def test_error_of_a_handler_is_told_here_and_not_to_the_client() -> None:
    async def failing(request: web.BaseRequest) -> web.StreamResponse:
        raise KeyError("the inner secret")

    async def main() -> None:
        log = AccessLog()
        async with serve(failing, on_access=log) as server, connected(server) as client:
            await client.send(b"GET / HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n")
            answer = await client.rest()
            (access,) = await log.wait()
        assert answer.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
        assert b"inner" not in answer
        assert b"Traceback" not in answer
        assert isinstance(access.error, KeyError)
        assert access.status == 500

    run(main())


@pytest.mark.parametrize(
    "error", [TimeoutError("slow"), ConnectionRefusedError("upstream"), asyncio.CancelledError()]
)
def test_any_error_of_a_handler_is_a_500(error: BaseException) -> None:
    async def failing(request: web.BaseRequest) -> web.StreamResponse:
        raise error

    async def main() -> None:
        log = AccessLog()
        async with serve(failing, on_access=log) as server, connected(server) as client:
            reply = await client.get()
            (access,) = await log.wait()
        assert reply.status == 500
        assert access.error is error

    run(main())


def test_failing_log_costs_no_client_its_answer() -> None:
    def failing(access: object) -> None:
        raise ValueError("disk full")

    async def main() -> None:
        told: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
        async with serve(echo, on_access=failing) as server, connected(server) as client:
            for _ in range(3):
                assert (await client.get()).status == 200
        assert [str(error) for error in told] == ["disk full"] * 3

    run(main())


def test_what_is_not_http_is_told_without_its_content() -> None:
    async def main() -> None:
        log = AccessLog()
        async with serve(echo, on_access=log) as server, connected(server) as client:
            await client.send(b"\x16\x03\x01 password=hunter2\r\n\r\n")
            await client.rest()
            (access,) = await log.wait()
        assert (access.method, access.path, access.status) == ("-", "-", 400)
        assert access.error is not None

    run(main())


def test_handler_that_fails_after_it_began_is_told_and_the_client_sees_a_cut() -> None:
    async def failing(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        raise KeyError("later")

    async def main() -> None:
        log = AccessLog()
        async with serve(failing, on_access=log) as server, connected(server) as client:
            await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = await client.rest()
            (access,) = await log.wait()
        assert answer.endswith(b"4\r\nhalf\r\n")
        assert isinstance(access.error, KeyError)

    run(main())


def test_nothing_but_the_request_line_is_told() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        return respond(200, b"answer")

    async def main() -> None:
        log = AccessLog()
        async with serve(handler, on_access=log) as server, connected(server) as client:
            head = b"POST /x HTTP/1.1\r\nHost: x\r\nAuthorization: hunter2\r\nContent-Length: 7\r\n\r\n"
            await client.send(head + b"hunter3")
            await client.reply()
            (access,) = await log.wait()
        assert "hunter" not in repr(access)

    run(main())
