"""Real git against the controller: by both protocols, many at once, while the repository changes."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.support.controller import REPO_TOKEN, Asking, asking, git_clone, make_site, repository, running
from tests.support.controller_process import ControllerProcess, patient_process
from tests.support.flood import unchecked
from tests.support.processes import PATIENCE_S
from tests.support.repositories import git

from stackyard.base.serving import ServerLimits
from stackyard.controller import RunningController

# How git is told which protocol to speak.
PROTOCOLS = {
    "version 2": {"GIT_PROTOCOL_FROM_USER": "1"},
    "version 0": {"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_1": "protocol.version", "GIT_CONFIG_VALUE_1": "0"},
    "dumb": {"GIT_SMART_HTTP": "0"},
}
MANY = 20
# A quarter of them is kept free, and the program itself has some thirty open.
FEW_FILES, CROWD = 128, 150


def commit_file(source: Path, name: str, text: str) -> None:
    """Commit one file, and leave what else there is as it is."""
    (source / name).write_text(text)
    assert git(source, "add", name).returncode == 0
    assert git(source, "commit", "--quiet", "--message", name, "--", name).returncode == 0


@asynccontextmanager
async def guests(found: ControllerProcess, *, force_close: bool = False) -> AsyncIterator[Asking]:
    """Give a client of a controller that stands for any number of guests."""
    connector = aiohttp.TCPConnector(ssl=unchecked(), limit=0, force_close=force_close)
    timeout = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield Asking(session, found.url)


@asynccontextmanager
async def serving(tmp_path: Path, *, files: int = 3) -> AsyncIterator[tuple[RunningController, Path]]:
    source = repository(tmp_path / "bootstrap", files=files)
    # Hundreds of handshakes at once take their time where server and clients share a loaded core.
    patient = ServerLimits(header_timeout_s=PATIENCE_S * 4, max_connections=4096)
    async with running(make_site(tmp_path), repos=True, limits=patient) as found:
        yield found, source


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_git_clones_and_fetches(tmp_path: Path, protocol: str) -> None:
    async with serving(tmp_path) as (found, source):
        place = tmp_path / "clone"
        variables = PROTOCOLS[protocol]
        assert await git_clone(found, place, **variables) == (0, "")
        assert (place / "install.sh").read_text() == "#!/bin/sh\necho installed\n"
        shown = await asyncio.to_thread(git, place, "show", "origin/_working:install.sh")
        assert shown.stdout == "#!/bin/sh\necho changed\n"
        names = await asyncio.to_thread(git, place, "ls-tree", "-r", "--name-only", "origin/_working")
        assert not {"debug.log", "secrets.yaml"} & set(names.stdout.splitlines())
        assert (await asyncio.to_thread(git, place, "fsck", "--strict")).returncode == 0
        await asyncio.to_thread(commit_file, source, "later.txt", "later")
        again = tmp_path / "again"
        assert await git_clone(found, again, "--branch", "_working", **variables) == (0, "")
        assert (again / "later.txt").read_text() == "later"
        assert (again / "new.txt").read_text() == "not committed\n"


async def test_a_clone_by_the_smart_protocol_takes_three_requests(tmp_path: Path) -> None:
    async with serving(tmp_path, files=200) as (found, _), asking(found) as client:
        assert await git_clone(found, tmp_path / "clone") == (0, "")
        text = (await client("/metrics")).body.decode()
        # One that tells what the server speaks; then one for the refs and one for all objects.
        assert 'requests_total{route="git-refs",status="200"} 1\n' in text
        assert 'requests_total{route="git-pack",status="200"} 2\n' in text
        assert 'route="file"' not in text


async def test_a_shallow_clone_and_one_without_contents_work(tmp_path: Path) -> None:
    async with serving(tmp_path) as (found, _):
        assert await git_clone(found, tmp_path / "shallow", "--depth", "1") == (0, "")
        count = await asyncio.to_thread(git, tmp_path / "shallow", "rev-list", "--count", "HEAD")
        assert count.stdout.strip() == "1"
        partial = ("--filter=blob:none", "--no-checkout")
        assert await git_clone(found, tmp_path / "partial", *partial) == (0, "")


@pytest.mark.parametrize("protocol", ["version 2", "dumb"])
async def test_git_without_the_right_token_gets_nothing(tmp_path: Path, protocol: str) -> None:
    async with serving(tmp_path) as (found, _):
        status, errors = await git_clone(found, tmp_path / "clone", token="wrong", **PROTOCOLS[protocol])
        assert status != 0
        assert "403" in errors
        assert not (tmp_path / "clone").exists()


async def test_git_takes_the_token_as_the_password_of_its_address(tmp_path: Path) -> None:
    async with serving(tmp_path) as (found, _):
        found.url = found.url.replace("https://", f"https://guest:{REPO_TOKEN}@")
        # The header of the other tests would win.
        assert await git_clone(found, tmp_path / "clone", GIT_CONFIG_COUNT="0") == (0, "")


async def test_git_does_not_trust_another_server(tmp_path: Path) -> None:
    other = tmp_path / "other.pem"

    async with serving(tmp_path) as (found, _):
        async with running(make_site(tmp_path / "second"), cert_dir=tmp_path / "cert") as second:
            other.write_bytes(second.certificate_pem)
        status, errors = await git_clone(found, tmp_path / "clone", GIT_SSL_CAINFO=str(other))
        assert (status != 0, "certificate" in errors.lower()) == (True, True)


async def clone_many(tmp_path: Path, count: int, *, at_once: int) -> list[tuple[int, str]]:
    """Clone by every protocol in turn, while somebody works in the repository."""
    slots = asyncio.Semaphore(at_once)
    async with serving(tmp_path, files=50) as (found, source):

        async def guest(number: int) -> tuple[int, str]:
            async with slots:
                protocol = list(PROTOCOLS.values())[number % len(PROTOCOLS)]
                ended = await git_clone(found, tmp_path / f"clone{number}", **protocol)
                if ended[0] == 0 and number % 10 == 0:
                    place = tmp_path / f"clone{number}"
                    checked = await asyncio.to_thread(git, place, "fsck")
                    return checked.returncode, checked.stderr
                return ended

        async def work() -> None:
            for number in range(10):
                await asyncio.to_thread((source / "new.txt").write_text, f"version {number}\n")
                await asyncio.to_thread(commit_file, source, f"work{number}.txt", str(number))
                await asyncio.sleep(0.05)

        *ended, _ = await asyncio.gather(*(guest(number) for number in range(count)), work())
    return [one for one in ended if one is not None]


def test_many_guests_clone_at_once_while_somebody_works(tmp_path: Path) -> None:
    ended = asyncio.run(clone_many(tmp_path, MANY, at_once=MANY))
    assert [one for one in ended if one[0] != 0] == []
    assert len(ended) == MANY


def lines(*texts: str) -> bytes:
    """Return lines as git frames them; `|` separates, and the end is added."""
    framed = ("0001" if text == "|" else f"{len(text) + 5:04x}{text}\n" for text in texts)
    return ("".join(framed) + "0000").encode()


async def fetch_all(client: Asking) -> bytes:
    """Do what git does in a clone of version 2, fetch a spec in between, and return the pack."""
    version = {"Git-Protocol": "version=2", "Content-Type": "application/x-git-upload-pack-request"}
    told = await client("/bootstrap.git/info/refs?service=git-upload-pack", REPO_TOKEN, headers=version)
    assert told.status == 200
    post: dict[str, Any] = {"method": "POST", "headers": version}
    asked = lines("command=ls-refs", "|", "ref-prefix refs/heads/_working")
    refs = await client("/bootstrap.git/git-upload-pack", REPO_TOKEN, data=asked, **post)
    commit_id = refs.body[4:44].decode()
    assert (await client("/spec/web1", "node-token-of-web1")).status == 200
    asked = lines("command=fetch", "|", f"want {commit_id}", "done")
    pack = await client("/bootstrap.git/git-upload-pack", REPO_TOKEN, data=asked, **post)
    assert (refs.status, pack.status) == (200, 200)
    return pack.body


def test_five_hundred_guests_fetch_everything_at_once(tmp_path: Path) -> None:
    repository(tmp_path / "bootstrap", files=50)

    async def run() -> list[bytes]:
        # In a process of its own: five hundred guests do not share the descriptors of their controller.
        site = make_site(tmp_path)
        async with patient_process(site, repo_token=REPO_TOKEN) as found, guests(found) as client:
            return await asyncio.gather(*(fetch_all(client) for _ in range(500)))

    packs = asyncio.run(run())
    assert len(packs) == 500
    assert {b"PACK" in pack for pack in packs} == {True}
    assert len(set(packs)) == 1


def test_guests_beyond_the_descriptors_of_a_controller_wait_and_are_served(tmp_path: Path) -> None:
    repository(tmp_path / "bootstrap", files=50)

    async def run() -> tuple[list[bytes], int, bytes]:
        site = make_site(tmp_path)
        async with (
            patient_process(site, repo_token=REPO_TOKEN, open_files=FEW_FILES) as found,
            guests(found, force_close=True) as client,
        ):
            packs = await asyncio.gather(*(fetch_all(client) for _ in range(CROWD)))
            taken = len(os.listdir(f"/proc/{found.process.pid}/fd"))
            return packs, taken, (await client("/metrics")).body

    packs, taken, metrics = asyncio.run(run())
    assert len(packs) == CROWD
    assert {b"PACK" in pack for pack in packs} == {True}
    assert taken < FEW_FILES
    assert not [line for line in metrics.decode().splitlines() if re.search(r'status="5\d\d"', line)]


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_five_hundred_guests_clone_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    ended = asyncio.run(clone_many(tmp_path, 500, at_once=500))
    failed = [one for one in ended if one[0] != 0]
    with capsys.disabled():
        took = time.monotonic() - began
        print(f"\n{len(ended)} clones at once, {len(failed)} failed, {took:.1f} s")  # noqa: T201 - its result
    assert failed == []
