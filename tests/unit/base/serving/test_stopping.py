"""Stopping: running requests end, everything else is closed, in under two seconds whoever is connected."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest
from aiohttp import web
from tests.unit.base.serving.clients import (
    AccessLog,
    Client,
    Hanging,
    connected,
    echo,
    localhost_certificate,
    run,
    trusting,
)

from stackyard.base.serving import Server, Tls, respond, serve
from stackyard.base.serving import server as stopping

PROMISE_S = 2.0
# The promise is for a machine that has time for us; the rest is for one that is busy with other tests.
BUSY_S = 15.0


async def stop_seconds(server: Server) -> float:
    began = time.monotonic()
    await server.stop()
    return time.monotonic() - began


def test_all_that_a_stop_waits_for_is_less_than_it_promises() -> None:
    waits_s = (stopping._GRACE_S, stopping._CANCEL_S, stopping._FLUSH_S, stopping._FLUSH_S)
    assert sum(waits_s) < PROMISE_S


@pytest.mark.parametrize("is_tls", [False, True])
def test_stop_keeps_its_promise_with_every_kind_of_client_connected(is_tls: bool) -> None:
    async def main() -> None:
        certificate, hanging = localhost_certificate(), Hanging()
        tls, context = (Tls(certificate), trusting(certificate)) if is_tls else (None, None)

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            if request.raw_path == "/large":
                return respond(200, b"x" * 20_000_000)
            if request.method == "POST":
                await request.read()
            return await hanging(request)

        async with contextlib.AsyncExitStack() as stack:
            server = await stack.enter_async_context(serve(handler, tls=tls))

            async def client() -> Client:
                return await stack.enter_async_context(connected(server, context))

            # Silent: in the TLS handshake where there is one, after it, in the headers, in the body.
            await stack.enter_async_context(connected(server))
            await client()
            await (await client()).send(b"GET / HT")
            await (await client()).send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
            # Idle; not reading; waiting for an answer that does not come.
            assert (await (await client()).get("/quick")).body == b"quick"
            deaf = await client()
            deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await deaf.send(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            hung = await client()
            await hung.send(b"GET /hang HTTP/1.1\r\nHost: x\r\n\r\n")
            await hanging.begun.wait()
            assert await stop_seconds(server) < BUSY_S
            assert server.connections == 0
            assert hanging.was_cancelled
            assert (await hung.rest()).startswith(b"HTTP/1.1 503 ")

    run(main())


@pytest.mark.parametrize("is_tls", [False, True])
def test_idle_clients_are_closed_at_once(is_tls: bool) -> None:
    async def main() -> None:
        certificate = localhost_certificate()
        tls, context = (Tls(certificate), trusting(certificate)) if is_tls else (None, None)
        async with serve(echo, tls=tls) as server, contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(connected(server, context)) for _ in range(20)]
            for client in clients[:10]:
                await client.get()
            await server.stop()
            assert [await client.rest() for client in clients] == [b""] * 20

    run(main())


def test_running_request_ends_and_its_client_is_told_to_close() -> None:
    async def main() -> None:
        hanging = Hanging()
        async with serve(hanging) as server, connected(server) as client:
            answer = asyncio.create_task(client.get())
            await hanging.begun.wait()
            stopping = asyncio.create_task(server.stop())
            await asyncio.sleep(0)
            hanging.release.set()
            reply = await answer
            assert (reply.status, reply.body) == (200, b"released")
            assert reply.headers["connection"] == "close"
            await stopping
            assert not hanging.was_cancelled

    run(main())


def test_upload_that_is_under_way_ends() -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            begun.set()
            return respond(200, await request.read())

        async with serve(handler) as server, connected(server) as client:
            await client.send(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc")
            await begun.wait()
            stopping = asyncio.create_task(server.stop())
            await asyncio.sleep(0)
            await client.send(b"def")
            assert (await client.reply()).body == b"abcdef"
            await stopping

    run(main())


def test_new_clients_are_not_accepted_while_stopping() -> None:
    async def main() -> None:
        hanging = Hanging()
        async with serve(hanging) as server, connected(server) as client:
            await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await hanging.begun.wait()
            stopping = asyncio.create_task(server.stop())
            await asyncio.sleep(0)
            with pytest.raises(ConnectionRefusedError):
                async with connected(server):
                    pass
            hanging.release.set()
            await stopping

    run(main())


def test_handler_that_will_not_be_cancelled_does_not_hold_up_the_stop() -> None:
    async def main() -> None:
        release, begun = asyncio.Event(), asyncio.Event()

        async def stubborn(request: web.BaseRequest) -> web.StreamResponse:
            begun.set()
            while not release.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await release.wait()
            return respond(200)

        async with serve(stubborn) as server, connected(server) as client:
            await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await begun.wait()
            assert await stop_seconds(server) < BUSY_S
            assert server.connections == 0
            release.set()

    run(main())


def test_request_whose_client_is_gone_still_ends_before_the_stop() -> None:
    async def main() -> None:
        hanging, log = Hanging(), AccessLog()
        async with serve(hanging, on_access=log) as server:
            async with connected(server) as client:
                await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                await hanging.begun.wait()
            asyncio.get_running_loop().call_later(0.2, hanging.release.set)
            await server.stop()
            assert not hanging.was_cancelled
            assert len(log.seen) == 1

    run(main())


def test_stopping_twice_is_stopping_once() -> None:
    async def main() -> None:
        async with serve(echo) as server, connected(server):
            await asyncio.gather(server.stop(), server.stop())
            await server.stop()
            assert server.connections == 0

    run(main())


def test_server_stops_when_its_block_fails() -> None:
    async def main() -> None:
        seen: list[Server] = []

        async def failing() -> None:
            async with serve(echo) as server, connected(server) as client:
                seen.append(server)
                await client.get()
                raise KeyError("x")

        with pytest.raises(KeyError):
            await failing()
        assert seen[0].connections == 0
        with pytest.raises(ConnectionRefusedError):
            async with connected(seen[0]):
                pass

    run(main())


def test_client_accepted_in_the_last_moment_leaves_nothing_behind() -> None:
    async def main() -> None:
        for turns in range(6):
            async with serve(echo) as server:
                connecting = asyncio.create_task(asyncio.open_connection(server.host, server.port))
                for _ in range(turns):
                    await asyncio.sleep(0)
                await server.stop()
                assert server.connections == 0
            with contextlib.suppress(ConnectionError):
                _, writer = await connecting
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()

    run(main())
