"""The commands around the controller, and every command of the chapter that it comes from."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import PROGRAM, Ended, stackyard
from tests.support.controller import make_site, repository
from tests.support.controller_process import serving_process
from tests.support.ports import free_port
from tests.support.processes import PATIENCE_S, Watched

from stackyard.base import serving


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """Give a site and a port, and stop whatever runs there at the end."""
    site, port = make_site(tmp_path), free_port()
    yield site, port
    stackyard("serve", "stop", "--port", str(port))


# What the seed shows with `./run.sh`, and which of its values a machine without them needs replaced.
SEED_COMMANDS = (
    "serve",
    "serve --port 8443 --bind 127.0.0.1",
    "serve --cert /path/to/cert.pem --key /path/to/key.pem",
    "serve --repo-token my-secret-token",
)


@pytest.mark.parametrize("command", SEED_COMMANDS)
async def test_a_command_of_the_seed_works(tmp_path: Path, command: str) -> None:
    site = make_site(tmp_path)
    repository(tmp_path / "bootstrap")
    made = serving.make_certificate(["127.0.0.1"])
    (tmp_path / "cert.pem").write_bytes(made.certificate_pem)
    (tmp_path / "key.pem").write_bytes(made.key_pem)
    words = command.replace("/path/to", str(tmp_path)).split()[1:]
    # The ports of the seed may be in use here; the last one counts.
    arguments = (*words, "--port", "0")

    async with serving_process(site, *arguments) as found:
        assert found.ready.keys() >= {"url", "port", "fingerprint", "specs"}
        assert found.ready["specs"] == ["base", "open", "staged", "web"]
        if "--cert" in words:
            assert found.ready["fingerprint"] == made.fingerprint
        if "--repo-token" in words:
            assert (found.ready["repo_token"], found.ready["repos"]) == ("my-secret-token", ["bootstrap"])
        assert await found.stop() == 0


async def test_the_clients_of_the_seed_work(tmp_path: Path) -> None:
    """`git clone https://.../bootstrap.git`, and curl with a bearer for a single file."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    site = make_site(tmp_path)
    repository(tmp_path / "bootstrap")
    authority = site / ".stackyard" / "controller" / "certificate" / "server.crt"

    async with serving_process(site, "--repo-token", "my-secret-token") as found:
        bearer = "Authorization: Bearer my-secret-token"
        url = f"{found.url}/bootstrap.git"
        curl = ("curl", "-sS", "--cacert", str(authority), "-H", bearer, f"{url}/install.sh")
        fetched = await asyncio.to_thread(subprocess.run, curl, capture_output=True, text=True, check=True)
        assert fetched.stdout == "#!/bin/sh\necho changed\n"
        git = ("git", "-c", f"http.extraHeader={bearer}", "-c", f"http.sslCAInfo={authority}")
        clone = (*git, "clone", "-q", url, str(tmp_path / "clone"))
        await asyncio.to_thread(subprocess.run, clone, check=True)
        assert (tmp_path / "clone" / "install.sh").exists()
        assert await found.stop() == 0


def serve(site: Path, port: int, *words: str) -> Ended:
    return stackyard(
        "serve", *words, "--site", str(site), "--port", str(port), "--bind", "127.0.0.1", "--json"
    )


def test_a_first_start_says_how_far_the_check_of_repositories_is(started: tuple[Path, int]) -> None:
    site, port = started
    repository(site.parent / "bootstrap")
    first = serve(site, port, "start", "--repos")
    assert first.document["repos"] == ["bootstrap"]
    assert "Checking bootstrap for secrets ..." in first.stderr
    assert stackyard("serve", "stop", "--port", str(port)).status == 0
    second = serve(site, port, "start", "--repos")
    assert second.document["pid"] != first.document["pid"]
    assert second.document["repos"] == ["bootstrap"]
    assert "Checking" not in second.stderr


def test_it_goes_to_the_background_and_comes_back(started: tuple[Path, int], home: Path) -> None:
    site, port = started
    status = ("serve", "status", "--port", str(port), "--json")
    nothing = stackyard(*status)
    assert (nothing.status, nothing.document) == (1, {"running": False, "pid": None, "healthy": False})
    began = serve(site, port, "start")
    assert began.status == 0, began
    pid = began.document["pid"]
    place = home / ".local/state/stackyard/controllers" / str(port)
    assert (place / "pid").read_text() == f"{pid}\n"
    assert Path(began.document["log"]).exists()
    found = stackyard(*status)
    assert (found.status, found.document["running"], found.document["healthy"]) == (0, True, True)
    again = serve(site, port, "start")
    assert (again.status, again.document["pid"]) == (0, pid)
    stopped = stackyard("serve", "stop", "--port", str(port), "--json")
    assert (stopped.status, stopped.document) == (0, {"stopped": True, "pid": pid})
    assert not (place / "pid").exists()
    assert stackyard(*status).status == 1
    assert stackyard("serve", "stop", "--port", str(port)).status == 0


def test_one_that_was_killed_is_not_taken_for_running_and_one_that_hangs_is_replaced(
    started: tuple[Path, int],
) -> None:
    site, port = started
    status = ("serve", "status", "--port", str(port), "--json")
    first = serve(site, port, "start").document["pid"]
    with Watched(first) as watched:
        os.kill(first, signal.SIGKILL)
        assert watched.has_ended()
    assert stackyard(*status).status == 1
    second = serve(site, port, "start").document["pid"]
    os.kill(second, signal.SIGSTOP)
    assert stackyard(*status).status == 2
    third = serve(site, port, "start")
    assert third.status == 0, third
    assert third.document["pid"] not in (first, second)
    assert stackyard(*status).status == 0


def test_a_start_that_fails_says_why(started: tuple[Path, int], tmp_path: Path) -> None:
    site, port = started
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        busy = serve(site, port, "start")
        assert (busy.status, busy.document["error"]["code"]) == (1, "E-LISTEN-IN-USE")
    half = serve(site, port, "start", "--cert", "cert.pem")
    assert (half.status, half.document["error"]["code"]) == (64, "E-USAGE")
    nowhere = serve(tmp_path / "nowhere", port, "start")
    assert (nowhere.status, nowhere.document["error"]["code"]) == (65, "E-SITE-NOT-FOUND")
    empty = serve(site, port, "start", "--repos-dir", str(site))
    assert (empty.status, empty.document["error"]["code"]) == (65, "E-CONTROLLER-REPOSITORIES")


def test_an_option_before_the_verb_is_refused_and_not_lost(tmp_path: Path) -> None:
    ended = stackyard("serve", "--port", "1", "start", "--site", str(make_site(tmp_path)), "--json")
    assert (ended.status, ended.document["error"]["code"]) == (64, "E-USAGE")


def test_the_token_of_the_repositories_is_in_no_argument_of_the_background(started: tuple[Path, int]) -> None:
    site, port = started
    repository(site.parent / "bootstrap")
    began = serve(site, port, "start", "--repo-token", "my-secret-token")
    assert began.document["repo_token"] == "my-secret-token"
    arguments = Path(f"/proc/{began.document['pid']}/cmdline").read_bytes()
    assert b"my-secret-token" not in arguments


def test_tokens_are_issued_listed_inspected_revoked_and_rotated(tmp_path: Path) -> None:
    site = make_site(tmp_path)

    def token(*words: str) -> Ended:
        return stackyard("serve", "token", *words, "--site", str(site), "--json")

    issued = token("issue", "--node", "web1", "--expires", "2h", "--note", "first boot").document
    assert (issued["node"], issued["note"], issued["revoked_at"]) == ("web1", "first boot", None)
    (listed,) = token("list").document["tokens"]
    assert listed == {key: value for key, value in issued.items() if key != "token"}
    seen = token("inspect", issued["token"]).document
    assert (seen["id"], seen["node"], seen["verified"]) == (issued["id"], "web1", False)
    assert token("inspect", issued["token"], "--verify").status == 0
    assert token("revoke", issued["id"]).document["revoked_at"] is not None
    refused = token("inspect", issued["token"], "--verify")
    assert (refused.status, refused.document["error"]["code"]) == (65, "E-TOKEN")
    other = token("issue", "--repo", "*").document["token"]
    assert token("rotate", "--overlap", "1h").status == 0
    assert token("inspect", other, "--verify").status == 0
    assert token("rotate", "--overlap", "0s").status == 0
    assert token("inspect", other, "--verify").status == 65
    assert token("issue").status == 65


async def test_a_token_works_at_a_running_controller_at_once_and_ends_there_at_once(tmp_path: Path) -> None:
    site = make_site(tmp_path)

    async with serving_process(site) as found:

        def token(*words: str) -> dict[str, Any]:
            return stackyard("serve", "token", *words, "--site", str(site), "--json").document

        def get() -> int:
            options = (
                "--server",
                found.url,
                "--identity",
                "web1",
                "--pin",
                found.ready["pin"],
                "--out",
                "-",
            )
            return stackyard("spec", "get", *options, env={"STACKYARD_TOKEN": issued["token"]}).status

        issued = await asyncio.to_thread(token, "issue", "--node", "web1")
        assert await asyncio.to_thread(get) == 0
        await asyncio.to_thread(token, "revoke", issued["id"])
        assert await asyncio.to_thread(get) == 1


def test_the_unit_runs_this_program_with_these_options(tmp_path: Path) -> None:
    site = make_site(tmp_path / "a site")
    ended = stackyard("serve", "unit", "--site", str(site), "--repos", "--port", "8443", "--json")
    unit = ended.document["unit"]
    line = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert line is not None
    assert f'"{site}"' in line[1]
    assert "--port=8443" in line[1]
    assert "Type=notify\n" in unit
    assert "ExecReload=/bin/kill -HUP $MAINPID\n" in unit
    if shutil.which("systemd-analyze") is None:
        return
    path = tmp_path / "stackyard.service"
    path.write_text(unit)
    done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
    assert "Unknown" not in done.stderr


def test_systemd_is_told_when_it_is_ready(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(PATIENCE_S)
        thread = threading.Thread(target=lambda: heard.append(listening.recv(100)))
        thread.start()

        async def run() -> None:
            async with serving_process(site, NOTIFY_SOCKET=str(tmp_path / "notify")) as found:
                await asyncio.to_thread(thread.join)
                assert await found.stop() == 0

        asyncio.run(run())
    assert heard == [b"READY=1"]


def test_help_teaches_and_names_every_verb() -> None:
    text = stackyard("serve", "--help").stdout
    for word in ("start", "stop", "status", "unit", "token", "SIGHUP", "--repos", "44443"):
        assert word in text
    assert PROGRAM
