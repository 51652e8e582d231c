"""Who gets in when many want to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import ssl

import pytest
from tests.unit.base.serving.clients import Hanging, connected, echo, localhost_certificate, run, trusting

from stackyard.base.serving import ServerLimits, Tls, serve


def test_newcomer_takes_the_place_of_the_longest_silent() -> None:
    async def main() -> None:
        async with (
            serve(echo, limits=ServerLimits(max_connections=2)) as server,
            connected(server) as first,
            connected(server) as second,
        ):
            await first.get()
            await second.get()
            await first.get()
            async with connected(server) as third:
                assert (await third.get()).status == 200
                assert await second.rest() == b""
                assert (await first.get()).status == 200
                assert server.connections == 2

    run(main())


@pytest.mark.parametrize("is_tls", [False, True])
def test_flood_of_silent_clients_keeps_nobody_out(is_tls: bool) -> None:
    async def main() -> None:
        certificate = localhost_certificate()
        tls, context = (Tls(certificate), trusting(certificate)) if is_tls else (None, None)
        limits = ServerLimits(max_connections=10)
        async with serve(echo, tls=tls, limits=limits) as server, contextlib.AsyncExitStack() as stack:
            for _ in range(5):
                for _ in range(20):
                    await stack.enter_async_context(connected(server))
                async with connected(server, context) as client:
                    assert (await client.get()).status == 200
                    assert server.connections <= limits.max_connections + 1

    run(main())


def test_busy_clients_are_never_thrown_out_for_a_newcomer() -> None:
    async def main() -> None:
        hanging = Hanging()
        async with (
            serve(hanging, limits=ServerLimits(max_connections=2)) as server,
            connected(server) as first,
            connected(server) as second,
        ):
            answers = [asyncio.create_task(client.get()) for client in (first, second)]
            while hanging.count < 2:
                await asyncio.sleep(0)
            async with connected(server) as third:
                assert (await third.reply()).status == 503
                assert await third.rest() == b""
            hanging.release.set()
            assert [(await answer).body for answer in answers] == [b"released"] * 2
            async with connected(server) as fourth:
                assert (await fourth.get("/quick")).status == 200

    run(main())


def test_tls_client_past_the_limit_is_closed() -> None:
    async def main() -> None:
        certificate, hanging = localhost_certificate(), Hanging()
        context = trusting(certificate)
        async with (
            serve(hanging, tls=Tls(certificate), limits=ServerLimits(max_connections=1)) as server,
            connected(server, context) as first,
        ):
            answer = asyncio.create_task(first.get())
            await hanging.begun.wait()
            with pytest.raises((ssl.SSLError, ConnectionError)):
                async with connected(server, context) as second:
                    await second.get()
            hanging.release.set()
            assert (await answer).body == b"released"

    run(main())


def test_server_out_of_files_serves_again_when_there_are_some() -> None:
    async def main() -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        async with serve(echo) as server, connected(server) as client:
            await client.get()
            # Enough for the client's own end of a new connection, none for the server's.
            highest = max(int(name) for name in os.listdir("/proc/self/fd"))
            held = [os.open(os.devnull, os.O_RDONLY) for _ in range(highest)]
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(held) + 2, hard))
            try:
                async with connected(server) as late:
                    request = asyncio.create_task(late.get())
                    await asyncio.sleep(0.1)
                    assert not request.done()
                    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                    assert (await request).status == 200
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                for descriptor in held:
                    os.close(descriptor)

    run(main())
