"""The state service under faults that are done, not played: kills, a full disk, many writers at once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import sys
import threading
from pathlib import Path

import aiohttp
import pytest
from tests.support.processes import PATIENCE_S
from tests.support.state_client import Client, basic, lock_body, lock_id_of, state_body
from tests.support.state_faults import check_history, write_through_kills
from tests.support.state_process import start_service

ROOT = Path(__file__).parents[2]

# Locks (asking again until it is granted), reads, writes one more, unlocks; as often as it is told.
WRITER = """
import sys, threading
from pathlib import Path
from tests.support.state_client import lock_body, lock_id_of, state_body
from stackyard.clients.objects import open_objects
from stackyard.state import Actor, StateLockedError, StateService

service, me = StateService(open_objects(Path(sys.argv[1]))), Actor(principal="writer")
pause = threading.Event()
for _ in range(int(sys.argv[2])):
    lock = lock_body()
    while True:
        try:
            service.locks.lock("a", lock, me)
            break
        except StateLockedError:
            pause.wait(0.01)
    head = service.head("a")
    service.contents.write("a", state_body((head.serial or 0) + 1), me, lock_id=lock_id_of(lock))
    service.locks.unlock("a", lock_id_of(lock), me)
service.objects.close()
"""


def write_from_processes(data: Path, *, processes: int, cycles: int) -> None:
    """Have several processes write one state through one file, each many times."""

    async def run() -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        started = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", WRITER, str(data), str(cycles), env=environment
            )
            for _ in range(processes)
        ]
        assert [await process.wait() for process in started] == [0] * processes

    asyncio.run(run())


def test_a_kill_at_any_moment_leaves_the_old_state_or_the_new_one(tmp_path: Path) -> None:
    done = asyncio.run(write_through_kills(tmp_path, kills=4, writes_between=2, seed=7))
    assert (done.kills, done.writes) == (4, 12)
    assert check_history(tmp_path) == 12


def test_two_processes_never_hold_the_lock_at_once_and_lose_no_write(tmp_path: Path) -> None:
    write_from_processes(tmp_path, processes=2, cycles=20)
    assert check_history(tmp_path) == 40


def test_fifty_clients_write_in_turn_and_lose_no_write(tmp_path: Path) -> None:
    async def write(client: Client) -> None:
        lock = lock_body()
        while (await client.lock("a", lock)).status != 200:
            await asyncio.sleep(0.05)
        found = await client.get("a")
        serial = json.loads(found.body)["serial"] if found.status == 200 else 0
        assert (await client.post("a", state_body(serial + 1), lock_id_of(lock))).status == 200
        assert (await client.unlock("a", lock)).status == 200

    async def run() -> None:
        service = await start_service("--plain-http", data=tmp_path)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            headers = basic(service.ready["username"], service.ready["password"])
            clients = [Client(session, service.url, headers) for _ in range(50)]
            await asyncio.wait_for(asyncio.gather(*(write(client) for client in clients)), PATIENCE_S)
        await service.stop()

    asyncio.run(run())
    assert check_history(tmp_path) == 50


async def test_a_full_disk_refuses_writes_keeps_what_is_there_and_recovers(tmp_path: Path) -> None:
    noise = random.Random(5)

    def large(serial: int) -> bytes:
        return state_body(serial, note=noise.randbytes(100_000).hex())

    # A file may grow to two megabytes: the system itself then refuses to write, as with a full disk.
    full = await start_service("--plain-http", data=tmp_path, largest_bytes=2_048_000)
    lock, stored, body, serial = lock_body(), b"", b"", 0
    async with aiohttp.ClientSession() as session:
        client = Client(session, full.url, basic(full.ready["username"], full.ready["password"]))
        assert (await client.lock("a", lock)).status == 200
        while True:
            serial += 1
            stored, body = body, large(serial)
            reply = await client.post("a", body, lock_id_of(lock))
            if reply.status != 200:
                break
        assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
        assert serial > 3
        assert (await client.get("a")).body == stored
        await full.kill()
        roomy = await start_service("--plain-http", data=tmp_path)
        client = Client(session, roomy.url, basic(roomy.ready["username"], roomy.ready["password"]))
        assert (await client.get("a")).body == stored
        assert (await client.post("a", body, lock_id_of(lock))).status == 200
        assert (await client.unlock("a", lock)).status == 200
        await roomy.stop()
    assert check_history(tmp_path) == serial


async def test_health_says_that_no_write_is_possible_and_that_it_is_again_without_a_restart(
    tmp_path: Path,
) -> None:
    noise = random.Random(6)
    lock = lock_body()

    service = await start_service("--plain-http", data=tmp_path)
    pid, roomy = service.process.pid, resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
    async with aiohttp.ClientSession() as session:
        client = Client(session, service.url, basic(service.ready["username"], service.ready["password"]))
        assert (await client.request("GET", "/health")).document == {"status": "ok"}
        assert (await client.lock("a", lock)).status == 200
        # No file of the service may grow: the system itself refuses it, as with a full disk.
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, roomy[1]))
        body = state_body(1, note=noise.randbytes(100_000).hex())
        assert (await client.post("a", body, lock_id_of(lock))).status == 503
        ill = await client.request("GET", "/health")
        assert (ill.status, ill.document["status"]) == (503, "failed")
        assert ill.document["code"].startswith("E-STORE")
        assert str(tmp_path) not in ill.body.decode()
        assert (await client.get("a")).status == 404
        resource.prlimit(pid, resource.RLIMIT_FSIZE, roomy)
        while (await client.request("GET", "/health")).status != 200:
            await asyncio.sleep(0.05)
        assert (await client.post("a", body, lock_id_of(lock))).status == 200
    await service.stop()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_soak_two_hundred_kills_during_a_thousand_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = asyncio.run(write_through_kills(tmp_path, kills=200, writes_between=4, seed=1))
    versions = check_history(tmp_path)
    assert (done.kills, done.writes, versions) == (200, 1000, 1000)
    with capsys.disabled():
        steps = ", ".join(f"{count} in {step}" for step, count in sorted(done.steps.items()))
        sys.stdout.write(f"\nstate: {done.kills} kills ({steps}), {versions} of {done.writes} writes there\n")


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_soak_two_processes_five_hundred_cycles_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_from_processes(tmp_path, processes=2, cycles=500)
    versions = check_history(tmp_path)
    assert versions == 1000
    with capsys.disabled():
        sys.stdout.write(f"\nstate: 2 processes, {versions} of 1000 writes there, one holder at any time\n")


async def test_a_reader_beside_writers_always_sees_a_whole_state(tmp_path: Path) -> None:
    service = await start_service("--plain-http", data=tmp_path)
    async with aiohttp.ClientSession() as session:
        client = Client(session, service.url, basic(service.ready["username"], service.ready["password"]))
        await client.cycle("a", 1)
        stop, seen = threading.Event(), []

        async def read() -> None:
            while not stop.is_set():
                found = await client.get("a")
                assert found.status == 200
                seen.append(json.loads(found.body)["serial"])

        reading = asyncio.create_task(read())
        for serial in range(2, 22):
            await client.cycle("a", serial)
        stop.set()
        await reading
        assert seen == sorted(seen)
        assert seen[-1] >= 20
    await service.stop()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_soak_ten_thousand_idle_connections_hold_up_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run() -> int:
        service = await start_service("--plain-http", data=tmp_path)
        port = int(service.url.rpartition(":")[2])
        idle = []
        for _ in range(100):
            opening = (asyncio.open_connection("127.0.0.1", port) for _ in range(100))
            idle += await asyncio.gather(*opening)
        async with aiohttp.ClientSession() as session:
            client = Client(session, service.url, basic(service.ready["username"], service.ready["password"]))
            for serial in range(1, 21):
                await client.cycle("a", serial)
        for _, writer in idle:
            writer.transport.abort()
        await service.stop()
        return len(idle)

    count = asyncio.run(run())
    assert (count, check_history(tmp_path)) == (10_000, 20)
    with capsys.disabled():
        sys.stdout.write(f"\nstate: 20 cycles beside {count} idle connections\n")
