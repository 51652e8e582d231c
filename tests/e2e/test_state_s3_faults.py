"""The state service over a bucket that goes away, hangs and comes back: in doubt, never wrong or stuck."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from tests.support.seaweed import Seaweed, seaweed, start_seaweed
from tests.support.state_client import Client, basic, lock_body, lock_id_of, state_body
from tests.support.state_process import StateProcess, start_service

from stackyard.clients.objects import open_objects
from stackyard.state import StateService

__all__ = ["seaweed"]


@pytest.fixture
def own_seaweed(seaweed: Seaweed, tmp_path: Path) -> Iterator[Seaweed]:
    """Give a server that the test may stop."""
    del seaweed
    server = start_seaweed(tmp_path / "seaweed")
    yield server
    server.kill()


def connected(session: aiohttp.ClientSession, service: StateProcess) -> Client:
    return Client(session, service.url, basic(service.ready["username"], service.ready["password"]))


async def test_a_bucket_that_goes_away_in_the_middle_of_an_apply_loses_nothing(
    own_seaweed: Seaweed, tmp_path: Path
) -> None:
    address = own_seaweed.address("states")

    environment = {"XDG_DATA_HOME": str(tmp_path)}
    service = await start_service("--plain-http", "--store", address, environment=environment)
    async with aiohttp.ClientSession() as session:
        client, lock = connected(session, service), lock_body()
        await client.cycle("a", 1)
        await client.lock("a", lock)
        await asyncio.to_thread(own_seaweed.kill)
        for reply in (
            await client.get("a"),
            await client.get("never"),
            await client.post("a", state_body(2), lock_id_of(lock)),
            await client.unlock("a", lock),
        ):
            assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
        await asyncio.to_thread(own_seaweed.start)
        # As an engine repeats what was not answered.
        while (await client.post("a", state_body(2), lock_id_of(lock))).status == 503:
            await asyncio.sleep(0.5)
        assert (await client.get("a")).body == state_body(2)
        assert (await client.unlock("a", lock)).status == 200
    await service.stop()
    objects = open_objects(address)
    states = StateService(objects)
    assert states.audit.verify("a").is_whole
    assert [version.serial for version in states.versions.newest_first("a")] == [2, 1]
    objects.close()


async def test_a_bucket_that_hangs_does_not_keep_the_service_from_stopping(
    own_seaweed: Seaweed, tmp_path: Path
) -> None:
    environment = {"XDG_DATA_HOME": str(tmp_path)}
    address = own_seaweed.address("states")
    service = await start_service("--plain-http", "--store", address, environment=environment)
    async with aiohttp.ClientSession() as session:
        client = connected(session, service)
        await client.cycle("a", 1)
        own_seaweed.pause()
        hanging = asyncio.create_task(client.get("a"))
        await client.request("GET", "/metrics")
        began = time.monotonic()
        assert await service.stop() == 0
        # The promise is two seconds; the rest is for a machine that is busy with other tests.
        assert time.monotonic() - began < 15
        await asyncio.gather(hanging, return_exceptions=True)
    own_seaweed.resume()
