"""Writers that are interrupted, and what must be true of their states afterwards."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from tests.support.state_client import Client, basic, lock_body, lock_id_of, state_body
from tests.support.state_process import StateProcess, start_service

from stackyard.clients.objects import open_objects
from stackyard.state import AuditAction, StateService

__all__ = ["Kills", "check_history", "write_through_kills"]

# The longest time into a request at which the service is killed; a request takes about this long.
LATEST_KILL_S = 0.03


@dataclass
class Kills:
    """What happened while a writer wrote and its service was killed again and again."""

    kills: int = 0
    writes: int = 0
    repeated: int = 0
    steps: dict[str, int] = field(default_factory=dict)


async def write_through_kills(data: Path, *, kills: int, writes_between: int, seed: int) -> Kills:
    """Lock, write and unlock, with the service killed in between; a request is repeated until answered."""
    chance, done = random.Random(seed), Kills()
    service = await start_service("--plain-http", data=data)
    serial = 0
    async with aiohttp.ClientSession() as session:
        while done.kills < kills:
            for _ in range(writes_between):
                serial += 1
                await _cycle(_client(session, service), serial)
                done.writes += 1
            serial += 1
            service = await _killed_cycle(session, service, data, serial, chance, done)
    await service.stop()
    return done


def _client(session: aiohttp.ClientSession, service: StateProcess) -> Client:
    return Client(session, service.url, basic(service.ready["username"], service.ready["password"]))


async def _cycle(client: Client, serial: int) -> None:
    lock = lock_body()
    assert (await client.lock("a", lock)).status == 200
    assert (await client.post("a", state_body(serial), lock_id_of(lock))).status == 200
    assert (await client.unlock("a", lock)).status == 200


async def _killed_cycle(
    session: aiohttp.ClientSession,
    service: StateProcess,
    data: Path,
    serial: int,
    chance: random.Random,
    done: Kills,
) -> StateProcess:
    """Kill the service in one of the three requests, start it again, and go on as an engine would."""
    lock = lock_body()
    step = chance.choice(["LOCK", "POST", "UNLOCK"])
    for method in ("LOCK", "POST", "UNLOCK"):
        while True:
            request = asyncio.create_task(_send(_client(session, service), method, lock, serial))
            if method == step:
                step = ""
                await asyncio.sleep(chance.uniform(0, LATEST_KILL_S))
                await service.kill()
                done.kills += 1
                done.steps[method] = done.steps.get(method, 0) + 1
                await asyncio.gather(request, return_exceptions=True)
                service = await start_service("--plain-http", data=data)
                await _check_between(_client(session, service), method, serial)
                done.repeated += 1
                continue
            assert await request == 200, method
            break
    done.writes += 1
    return service


async def _send(client: Client, method: str, lock: bytes, serial: int) -> int:
    if method == "POST":
        return (await client.post("a", state_body(serial), lock_id_of(lock))).status
    return (await client.request(method, "/states/a", lock)).status


async def _check_between(client: Client, method: str, serial: int) -> None:
    """After a kill the state is the old one or the new one, whole."""
    found = await client.get("a")
    before = [] if serial == 1 else [state_body(serial - 1)]
    allowed = {"LOCK": before, "POST": [*before, state_body(serial)], "UNLOCK": [state_body(serial)]}[method]
    assert found.body in (allowed or [b""])
    assert found.status == (200 if found.body else 404)


def check_history(data: Path, name: str = "a") -> int:
    """Check everything that a store says of a state; return how many versions it has."""
    objects = open_objects(data)
    service = StateService(objects)
    try:
        assert service.audit.verify(name).is_whole
        holder, serial = "", 0
        for entry in service.audit.entries(name):
            if entry.action is AuditAction.LOCKED:
                assert holder == "", "two held the lock"
                holder = entry.lock_id
            elif entry.action is AuditAction.UNLOCKED:
                assert holder == entry.lock_id
                holder = ""
            elif entry.action is AuditAction.WRITTEN:
                assert (holder, entry.serial) == (entry.lock_id, serial + 1)
                serial += 1
        assert holder == ""
        versions = list(service.versions.newest_first(name))
        assert [version.serial for version in versions] == list(range(serial, 0, -1))
        for version in versions:
            assert service.versions.read(name, version)
        service.versions.sweep(name, older_than_s=-1.0)
        assert len(objects.list(f"data/{name}/bodies/", limit=100_000)) == len(versions)
        return len(versions)
    finally:
        objects.close()
