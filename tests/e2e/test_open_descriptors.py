"""Nothing leaks a descriptor: counted around the start, the work, the failures and the end of every server.

Every test that runs a command counts too: see `tests.support.forking`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.support.controller import REPO_TOKEN, git_clone, make_site, repository, running
from tests.support.descriptors import THREADS_END_S
from tests.support.flood import flooding, unchecked
from tests.support.processes import PATIENCE_S, open_descriptors
from tests.support.state_client import Client, basic

from stackyard import lab
from stackyard.base.errors import StackyardError
from stackyard.clients.objects import open_objects
from stackyard.state import StateService
from stackyard.state.daemon import DaemonOptions, daemon
from stackyard.state.embedded import serve_embedded

Work = Callable[[], Coroutine[Any, Any, None]]
TIMES = 2


def leaves_nothing(work: Work) -> None:
    """Do something once, so that what is loaded once is loaded, and then check what further times leave."""
    asyncio.run(work())
    before = open_descriptors()
    for _ in range(TIMES):
        asyncio.run(work())
    # Threads that end close their connections to a store with them.
    until = time.monotonic() + THREADS_END_S
    while open_descriptors() - before and time.monotonic() < until:
        threading.Event().wait(0.05)
    assert open_descriptors() - before == set()


@contextlib.asynccontextmanager
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(ssl=unchecked(), limit=0)
    async with aiohttp.ClientSession(connector=connector) as made:
        yield made


async def settle(count: Callable[[], int], most: int) -> None:
    """Wait until no more than so many are open: a connection is closed a little after its client."""
    async with asyncio.timeout(PATIENCE_S):
        while count() > most:
            await asyncio.sleep(0.01)


async def abuse(url: str, path: str, headers: str = "") -> None:
    """Break off uploads, requests and handshakes, and show wrong credentials."""
    host, _, port = url.partition("://")[2].rpartition(":")
    tls = unchecked() if url.startswith("https") else None
    for number in range(10):
        _, writer = await asyncio.open_connection(host, int(port), ssl=tls)
        begun = f"POST {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: 100000\r\n\r\n".encode()
        writer.write(begun[: len(begun) // 2] if number % 2 else begun + b"x" * 1000)
        await writer.drain()
        writer.transport.abort()
        socket.create_connection((host, int(port))).close()
    async with flooding(url, path, width=4) as flood:
        while flood.total < 20:
            await asyncio.sleep(0.01)


async def cancel(made: aiohttp.ClientSession, url: str, **request: Any) -> None:
    """Begin requests and go before they are answered."""
    tasks = [asyncio.create_task(made.get(url, **request).__aenter__()) for _ in range(5)]
    await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    for done in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(done, aiohttp.ClientResponse):
            done.close()


def test_the_embedded_state_service_leaves_nothing_open(tmp_path: Path) -> None:
    async def work() -> None:
        objects = open_objects(tmp_path / "store")
        try:
            async with session() as made, serve_embedded(StateService(objects)) as found:
                client = Client(made, found.url, basic(found.username, found.password))
                await client.cycle(f"state-{uuid.uuid4()}", 1)
                await abuse(found.url, "/states/a", f"Authorization: {client.headers['Authorization']}\r\n")
                await cancel(made, f"{found.url}/states/a", headers=client.headers)
        finally:
            objects.close()

    leaves_nothing(work)


def test_the_state_daemon_leaves_nothing_open(tmp_path: Path) -> None:
    async def work() -> None:
        async with daemon(DaemonOptions(data=tmp_path / "data")) as found, session() as made:
            client = Client(made, found.url, basic(found.username, found.password))
            await client.get("a")
            await settle(lambda: found._server.connections, 1)
            rest = len(os.listdir("/proc/self/fd"))
            for _ in range(20):
                assert (await client.get("a")).status == 404
            await abuse(found.url, "/states/a", f"Authorization: {client.headers['Authorization']}\r\n")
            await settle(lambda: found._server.connections, 1)
            # Reading threads keep a connection each to the store: no more than there are threads.
            assert len(os.listdir("/proc/self/fd")) <= rest + 3 * 32

    leaves_nothing(work)


def test_the_controller_leaves_nothing_open(tmp_path: Path) -> None:
    repository(tmp_path / "bootstrap")
    site = make_site(tmp_path)

    async def work() -> None:
        async with running(site, repos=True, state=tmp_path / "state") as found, session() as made:
            assert await git_clone(found, tmp_path / f"clone-{uuid.uuid4()}") == (0, "")
            for path in (
                "/health",
                "/spec/web1",
                "/bootstrap.git/install.sh",
                "/bootstrap.git/HEAD",
                "/metrics",
            ):
                headers = {"Authorization": f"Bearer {REPO_TOKEN}"}
                async with made.get(f"{found.url}{path}", headers=headers) as answer:
                    await answer.read()
            await abuse(
                found.url, "/bootstrap.git/git-upload-pack", f"Authorization: Bearer {REPO_TOKEN}\r\n"
            )
            await cancel(
                made,
                f"{found.url}/bootstrap.git/info/refs?service=git-upload-pack",
                headers={"Authorization": f"Bearer {REPO_TOKEN}"},
            )
            await found.reload()

    leaves_nothing(work)


def test_the_lab_leaves_nothing_open(tmp_path: Path) -> None:
    async def work() -> None:
        async with lab.start(data=tmp_path / "lab", ssh_port=0) as found, session() as made:
            headers = {"Authorization": f"PVEAPIToken={found.api_token}"}
            for path in ("version", "nodes", "cluster/resources"):
                async with made.get(f"{found.url}/api2/json/{path}", headers=headers) as answer:
                    assert answer.status == 200
            await abuse(found.url, "/api2/json/nodes/pve/storage/local/upload")
            await cancel(made, f"{found.url}/api2/json/nodes", headers=headers)

    leaves_nothing(work)


@pytest.mark.parametrize("what", ["daemon", "controller", "lab"])
def test_a_start_on_a_port_that_is_taken_leaves_nothing_open(tmp_path: Path, what: str) -> None:
    repository(tmp_path / "bootstrap")
    site = make_site(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        async def work() -> None:
            with pytest.raises(StackyardError, match="Cannot listen"):
                await start(what, port)

        async def start(what: str, port: int) -> None:
            if what == "daemon":
                async with daemon(DaemonOptions(data=tmp_path / "data", port=port)):
                    pass
            elif what == "controller":
                async with running(site, repos=True, state=tmp_path / "state", port=port):
                    pass
            else:
                async with lab.start(data=tmp_path / "lab", port=port, ssh_port=0):
                    pass

        leaves_nothing(work)


def test_a_store_that_cannot_be_used_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "objects.sqlite").write_bytes(b"this is no database, and it is long enough" * 100)

    async def work() -> None:
        with pytest.raises(StackyardError):
            async with daemon(DaemonOptions(data=tmp_path / "data")):
                pass

    leaves_nothing(work)
