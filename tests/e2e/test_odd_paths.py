"""No path and no method makes a server fail: what cannot be understood is refused as such."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest
from tests.support.controller import REPO_TOKEN, make_site, repository, running
from tests.support.flood import unchecked
from tests.support.odd_paths import odd_paths
from tests.support.state_client import TOKEN, administrator, basic

from stackyard import lab
from stackyard.base import serving
from stackyard.clients.objects import open_objects
from stackyard.state import StateService
from stackyard.state.http import Authenticator, StateApp

METHODS = (b"GET", b"HEAD", b"POST", b"LOCK", b"UNLOCK", b"PUT", b"DELETE", b"OPTIONS", b"PROPFIND")
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 40))]


async def answers(
    url: str, paths: Iterable[bytes], *, credentials: str, tls: ssl.SSLContext | None
) -> collections.Counter[int]:
    """Ask for each path by one method after the other; return the statuses, 0 for a closed connection."""
    host, _, port = url.partition("://")[2].rpartition(":")
    found: collections.Counter[int] = collections.Counter()
    failed: list[tuple[bytes, bytes]] = []
    slots = asyncio.Semaphore(16)

    async def ask(method: bytes, path: bytes) -> None:
        async with slots:
            reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
            head = method + b" " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            shown = f"Authorization: {credentials}\r\nContent-Length: 2\r\n\r\n{{}}".encode()
            status = 0
            with contextlib.suppress(OSError, ValueError, IndexError):
                writer.write(head + shown)
                line = await reader.readline()
                status = int(line.split(b" ")[1])
                await reader.read()
            writer.close()
        found[status] += 1
        if status == 500:
            failed.append((method, path[:200]))

    await asyncio.gather(*(ask(METHODS[n % len(METHODS)], path) for n, path in enumerate(paths)))
    assert failed == []
    return found


@contextlib.asynccontextmanager
async def state_service(tmp_path: Path) -> AsyncIterator[str]:
    objects = open_objects(tmp_path / "store")
    service = StateService(objects)
    app = StateApp(service, Authenticator(service.principals, own=administrator()))
    try:
        async with serving.serve(app.handle) as server:
            yield server.url
    finally:
        app.close()
        objects.close()


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_path_makes_the_state_service_fail(tmp_path: Path, seed: int) -> None:
    async with state_service(tmp_path) as url:
        shown = basic("admin", TOKEN)["Authorization"]
        paths = odd_paths(b"", b"/states/", b"/states/a", seed=seed, count=60)
        found = await answers(url, paths, credentials=shown, tls=None)
        # 404 would be "no state yet" to an engine, and only a name that may be one gets it.
        assert set(found) <= {0, 200, 400, 404, 405, 409, 414, 422, 431}
        assert found[400] > 100


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_path_makes_the_controller_fail(tmp_path: Path, seed: int) -> None:
    repository(tmp_path / "bootstrap")

    async with running(make_site(tmp_path), repos=True, state=tmp_path / "state") as found:
        prefixes = (
            b"",
            b"/state/",
            b"/state/states/",
            b"/spec/",
            b"/bootstrap.git/",
            b"/bootstrap.git/info/",
        )
        paths = odd_paths(*prefixes, seed=seed, count=5)
        told = await answers(found.url, paths, credentials=f"Bearer {REPO_TOKEN}", tls=unchecked())
        assert max(told) < 500
        assert told[400] > 100


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_path_makes_the_lab_fail(seed: int) -> None:
    async with lab.start() as found:
        shown = f"PVEAPIToken={found.api_token}"
        prefixes = (b"", b"/api2/json/", b"/api2/json/nodes/", b"/api2/extjs/cluster/", b"/_lab/")
        paths = odd_paths(*prefixes, seed=seed, count=5)
        told = await answers(found.url, paths, credentials=shown, tls=unchecked())
        # 501 is what Proxmox says of a path that it does not know.
        assert set(told) & set(range(500, 600)) <= {501}
