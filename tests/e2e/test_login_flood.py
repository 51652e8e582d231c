"""Wrong logins without end: they are limited and counted, and an honest client notices nothing of them."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from tests.support.controller import REPO_TOKEN, make_site, repository
from tests.support.controller_process import serving_process
from tests.support.flood import Flood, flooding, unchecked
from tests.support.lab_process import start_lab
from tests.support.state_client import Client, basic
from tests.support.state_process import start_service

from stackyard.clients.objects import open_objects
from stackyard.state import StateService
from stackyard.state.embedded import serve_embedded
from stackyard.state.model import AuditAction

MORE = re.compile(r"(\d+) more refused logins")
Honest = Callable[[int], Awaitable[None]]


@contextlib.asynccontextmanager
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(ssl=unchecked())
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as made:
        yield made


async def endure(honest: Honest, flood: Flood, *, attempts: int, rounds: int = 5) -> None:
    """Let the honest client do its work until it and the flood have both had their share."""
    while flood.honest_rounds < rounds or flood.total < attempts:
        await honest(flood.honest_rounds)
        flood.honest_rounds += 1


def tell(capsys: pytest.CaptureFixture[str], what: str, flood: Flood) -> None:
    with capsys.disabled():
        done = f"{flood.honest_rounds} rounds of an honest client, none refused"
        print(f"\n{what}: {flood.total} wrong logins, by status {flood.statuses()}; {done}")  # noqa: T201


def noted(service: StateService) -> tuple[int, int]:
    """Return how many entries of refused logins there are, and how many attempts they speak of."""
    details = [
        entry.detail for entry in service.audit.entries("") if entry.action is AuditAction.LOGIN_REFUSED
    ]
    counted = [int(found[1]) if (found := MORE.match(detail)) else 1 for detail in details]
    return len(details), sum(counted)


SIZES = [
    pytest.param(48, 300, id="short"),
    pytest.param(200, 20_000, id="long", marks=[pytest.mark.soak, pytest.mark.timeout(1200)]),
]


@pytest.mark.parametrize(("width", "attempts"), SIZES)
def test_a_flood_keeps_no_run_from_its_embedded_state(
    tmp_path: Path, width: int, attempts: int, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run() -> Flood:
        async with session() as made, serve_embedded(service) as found:
            client = Client(made, found.url, basic(found.username, found.password))

            async def honest(number: int) -> None:
                await client.cycle("prod/net", number + 1)
                assert (await client.get("prod/net")).status == 200

            async with flooding(found.url, "/states/prod/net", width=width) as flood:
                await endure(honest, flood, attempts=attempts)
        return flood

    objects = open_objects(tmp_path / "store")
    service = StateService(objects)
    try:
        flood = asyncio.run(run())
        entries, spoken_of = noted(service)
        tell(capsys, f"embedded state, {entries} entries in the audit log", flood)
        assert entries <= 20
        assert spoken_of == flood.attempts
        assert service.audit.verify("").is_whole
    finally:
        objects.close()


@pytest.mark.parametrize(("width", "attempts"), SIZES)
def test_a_flood_keeps_nobody_from_the_state_daemon(
    tmp_path: Path, width: int, attempts: int, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run() -> Flood:
        daemon = await start_service(data=tmp_path / "data")
        try:
            async with session() as made:
                client = Client(made, daemon.url, basic(daemon.ready["username"], daemon.ready["password"]))

                async def honest(number: int) -> None:
                    await client.cycle("prod/net", number + 1)
                    assert (await client.get("prod/net")).status == 200

                async with flooding(daemon.url, "/states/prod/net", width=width) as flood:
                    await endure(honest, flood, attempts=attempts)
            assert await daemon.stop() == 0
        finally:
            await daemon.kill()
        return flood

    flood = asyncio.run(run())
    objects = open_objects(tmp_path / "data")
    try:
        entries, spoken_of = noted(StateService(objects))
    finally:
        objects.close()
    tell(capsys, f"state daemon, {entries} entries in the audit log", flood)
    assert entries <= 20
    assert spoken_of == flood.attempts


@pytest.mark.parametrize(("width", "attempts"), SIZES)
def test_a_flood_keeps_no_guest_from_the_controller(
    tmp_path: Path, width: int, attempts: int, capsys: pytest.CaptureFixture[str]
) -> None:
    repository(tmp_path / "bootstrap")

    async def run() -> Flood:
        options = ("--repos", "--repo-token", REPO_TOKEN, "--state", str(tmp_path / "state"))
        async with serving_process(make_site(tmp_path), *options) as found, session() as made:

            async def asked(where: str, token: str) -> int:
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                async with made.get(f"{found.url}{where}", headers=headers) as answer:
                    await answer.read()
                    return answer.status

            async def honest(number: int) -> None:
                del number
                assert await asked("/spec/web1", "node-token-of-web1") == 200
                assert await asked("/bootstrap.git/HEAD", REPO_TOKEN) == 200
                assert await asked("/health", "") == 200

            async with (
                flooding(found.url, "/spec/web1", width=width) as flood,
                flooding(found.url, "/bootstrap.git/HEAD", width=width // 4),
                flooding(found.url, "/state/states/prod/net", width=width // 4),
            ):
                await endure(honest, flood, attempts=attempts)
            assert await found.stop() == 0
        return flood

    tell(capsys, "controller", asyncio.run(run()))


@pytest.mark.parametrize(("width", "attempts"), SIZES)
def test_a_flood_keeps_nobody_from_the_lab(
    tmp_path: Path, width: int, attempts: int, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run() -> Flood:
        # Proxmox keeps whoever shows a wrong password waiting; all others go on.
        found = await start_lab(tmp_path / "data", "--latency", "auth=1")
        try:
            async with session() as made:
                url, token = found.ready["url"], {"Authorization": f"PVEAPIToken={found.ready['api_token']}"}
                login = {"username": "root@pam", "password": found.ready["password"]}

                async def honest(number: int) -> None:
                    del number
                    async with made.get(f"{url}/api2/json/version", headers=token) as answer:
                        assert answer.status == 200
                    async with made.post(f"{url}/api2/json/access/ticket", data=login) as answer:
                        assert answer.status == 200

                async with (
                    flooding(url, "/api2/json/version", width=width) as flood,
                    flooding(
                        url,
                        "/api2/json/access/ticket?username=root@pam&password=guess",
                        method="POST",
                        headers="Content-Length: 0\r\n",
                        width=70,
                    ),
                ):
                    await endure(honest, flood, attempts=attempts)
        finally:
            await found.kill()
        return flood

    tell(capsys, "lab", asyncio.run(run()))


async def test_a_right_token_is_answered_after_every_limit_was_passed(tmp_path: Path) -> None:
    """The context of a check that the flood itself might miss: the limits were really reached."""

    objects = open_objects(tmp_path / "store")
    try:
        async with session() as made, serve_embedded(StateService(objects)) as found:
            wrong = Client(made, found.url, basic(found.username, "guess"))
            statuses = [(await wrong.get("a")).status for _ in range(11)]
            assert statuses == [401] * 10 + [429]
            right = Client(made, found.url, basic(found.username, found.password))
            assert (await right.get("a")).status == 404
    finally:
        objects.close()
