"""Signals: TERM and INT end the controller in time and tidily, HUP makes it read everything again."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import signal
import ssl
import time
from pathlib import Path

import aiohttp
import pytest
from tests.support.controller import SITE_TOKEN, make_site, repository
from tests.support.controller_process import ControllerProcess, serving_process
from tests.support.repositories import git

from stackyard.base import serving


def shown_fingerprint(found: ControllerProcess) -> str:
    pem = ssl.get_server_certificate(("127.0.0.1", found.ready["port"]))
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest().hex(":").upper()


async def wait_for_fingerprint(found: ControllerProcess, wanted: str) -> None:
    while await asyncio.to_thread(shown_fingerprint, found) != wanted:
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_stops_in_time_with_clients_connected_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    source = repository(tmp_path / "bootstrap")
    (source / "large.bin").write_bytes(bytes(range(256)) * 80_000)

    async with serving_process(make_site(tmp_path), "--repos", TMPDIR=str(place)) as found:
        token = found.ready["repo_token"]
        assert [path.name[:23] for path in place.iterdir()] == ["stackyard-repositories-"]
        context = ssl._create_unverified_context()
        clients = [
            await asyncio.open_connection("127.0.0.1", found.ready["port"], ssl=context) for _ in range(100)
        ]
        half = await asyncio.open_connection("127.0.0.1", found.ready["port"])
        for count, (_, writer) in enumerate(clients):
            head = "GET /bootstrap.git/large.bin HTTP/1.1\r\nHost: x\r\n"
            # Some are idle, some in the middle of a request, some do not read what they asked for.
            if count % 3 == 1:
                writer.write(head.encode())
            elif count % 3 == 2:
                writer.write(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
        await clients[2][0].read(100)
        began = time.monotonic()
        assert await found.stop(number) == 0
        # The promise is two seconds; the rest is for a machine that is busy with other tests.
        assert time.monotonic() - began < 20
        for _, writer in [*clients, half]:
            writer.transport.abort()
    assert list(place.iterdir()) == []


async def test_hup_reads_specs_secrets_certificates_and_repositories_anew_and_closes_nothing(
    tmp_path: Path,
) -> None:
    site, cert, key = make_site(tmp_path), tmp_path / "cert.pem", tmp_path / "key.pem"
    repository(tmp_path / "bootstrap")

    def write_certificate() -> str:
        made = serving.make_certificate(["127.0.0.1"])
        cert.write_bytes(made.certificate_pem)
        key.write_bytes(made.key_pem)
        return made.fingerprint

    first = write_certificate()
    options = ("--repos", "--cert", str(cert), "--key", str(key))
    async with serving_process(site, *options) as found:
        assert found.ready["fingerprint"] == first
        # What is not asked for a while is kept, however long the reading takes.
        connector = aiohttp.TCPConnector(ssl=False, limit=1, keepalive_timeout=600)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def status(path: str, token: str) -> int:
                headers = {"Authorization": f"Bearer {token}"}
                async with session.get(f"{found.url}{path}", headers=headers) as answer:
                    await answer.read()
                    return answer.status

            repo_token = found.ready["repo_token"]
            assert await status("/spec/staged", SITE_TOKEN) == 200
            reader = next(iter(connector._conns.values()))[0][0]
            second = write_certificate()
            secrets = site / "secrets.yaml"
            secrets.write_text(secrets.read_text().replace(SITE_TOKEN, "another-token"))
            (site / "v2/specs/added.yaml").write_text("schema_version: 1\naccess: {posture: dev}\n")
            await asyncio.to_thread(repository, tmp_path / "later")
            found.process.send_signal(signal.SIGHUP)
            await wait_for_fingerprint(found, second)
            while await status("/later.git/HEAD", repo_token) != 200:
                await asyncio.sleep(0.05)
            assert await status("/spec/staged", SITE_TOKEN) == 403
            assert await status("/spec/staged", "another-token") == 200
            assert await status("/spec/added", "") == 200
            # All of it over the connection of before.
            assert next(iter(connector._conns.values()))[0][0] is reader
        assert await found.stop() == 0


async def test_hup_with_a_broken_site_changes_nothing(tmp_path: Path) -> None:
    site, cert, key = make_site(tmp_path), tmp_path / "cert.pem", tmp_path / "key.pem"
    made = serving.make_certificate(["127.0.0.1"])
    cert.write_bytes(made.certificate_pem)
    key.write_bytes(made.key_pem)

    async with serving_process(site, "--cert", str(cert), "--key", str(key)) as found:
        (site / "secrets.yaml").write_text("auth: [no\n")
        found.process.send_signal(signal.SIGHUP)
        (site / "secrets.yaml").write_text(f"auth: {{site_token: {SITE_TOKEN}}}\n")
        # The second one is heard after the first was dealt with.
        other = serving.make_certificate(["127.0.0.1"])
        cert.write_bytes(other.certificate_pem)
        key.write_bytes(other.key_pem)
        found.process.send_signal(signal.SIGHUP)
        with contextlib.suppress(ssl.SSLError):
            await asyncio.wait_for(wait_for_fingerprint(found, other.fingerprint), 60)
        assert await found.stop() == 0


def test_a_site_that_is_a_repository_is_left_clean(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    git(site, "init", "--quiet")
    (site / ".gitignore").write_text(".stackyard/\nsecrets.yaml\n")
    git(site, "add", "--all")
    git(site, "commit", "--quiet", "--message", "site")

    async def run() -> None:
        async with serving_process(site, "--repos", "--no-state") as found:
            assert found.ready["repos"] == ["site-config"]
            assert await found.stop() == 0

    asyncio.run(run())
    assert git(site, "status", "--porcelain").stdout == ""
