"""A compromised inner host behind real SSH: whatever it answers is bounded data, or an error of ours."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gzip
import io
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.inner_machine import INNER, Answering, InnerMachine, Outer, Process, answer, inner_machine

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.clients.ssh import shell as ssh_shell
from stackyard.operator.delegation import delegate, protocol, remote, upload
from stackyard.operator.delegation.delegate import Delegated

pytestmark = pytest.mark.timeout(120)

TOKEN = "root@pam!outer=canary-of-the-outer-run"
DOCUMENT = {
    "schema_version": 2,
    "name": "deep",
    "nodes": [
        {"name": INNER, "type": "pve", "cores": 4, "memory": 8192, "disk": 64, "image": "debian-12"},
        {
            "name": "leaf",
            "type": "vm",
            "parent": INNER,
            "cores": 1,
            "memory": 512,
            "disk": 4,
            "image": "debian-12",
        },
    ],
}
NODE = {"name": "leaf", "status": "completed", "host": INNER}
RESULT: dict[str, Any] = {
    "verb": "create",
    "manifest": "deep",
    "host": INNER,
    "success": True,
    "started_at": "2026-01-01T00:00:00Z",
    "duration_seconds": 1.0,
    "nodes": [NODE],
}


@pytest.fixture
def machine() -> Iterator[InnerMachine]:
    with inner_machine(instead=says(("result", RESULT))) as made:
        yield made


@pytest.fixture
def outer(machine: InnerMachine, tmp_path: Path) -> Outer:
    site = tmp_path / "site"
    files = {
        "site.yaml": "images: {debian-12: {url: 'https://192.0.2.1/a.qcow2'}}\n",
        "nodes/pve1.yaml": "api_endpoint: https://192.0.2.1:8006\ndatastore: local-lvm\n",
        "postures/dev.yaml": "auth: {method: network}\n",
        "secrets.yaml": f"api_tokens: {{pve1: '{TOKEN}'}}\n",
    }
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    archive = tmp_path / "archive.tar.gz"
    archive.write_bytes(b"archive")
    return Outer(
        site=str(site),
        host="pve1",
        inner=machine.host(tmp_path),
        text=json.dumps(DOCUMENT),
        archive=(str(archive), "ab" * 32, len(b"archive")),
    )


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegate, "_MOST_LOSSES", 2)
    monkeypatch.setattr(delegate, "_AGAIN_S", 0.01)


async def mark_of(process: Process) -> str:
    """Return the mark that the order brought along."""
    return str(json.loads(await process.stdin.readline())["mark"])


def line(mark: str, number: Any, kind: str, body: Any) -> bytes:
    return b"\x1e%s %s\n" % (mark.encode(), json.dumps({"n": number, "kind": kind, "body": body}).encode())


def says(*records: tuple[str, Any], ends: bool = True) -> Answering:
    """Return an inner host that says records that are numbered as agreed."""

    async def say(process: Process, script: str) -> None:
        del script
        mark = await mark_of(process)
        for number, (kind, body) in enumerate(records, start=1):
            process.stdout.write(line(mark, number, kind, body))
        if ends:
            process.stdout.write(line(mark, len(records) + 1, "end", {"count": len(records) + 1}))
        process.exit(0)

    return say


def run(outer: Outer, seen: list[events.Event] | None = None) -> Delegated:
    return asyncio.run(outer.delegate((seen if seen is not None else []).append))


def refused(outer: Outer) -> StackyardError:
    """Return the error that a run ends with, which is short enough for a screen."""
    with pytest.raises(StackyardError) as caught:
        run(outer)
    assert len(caught.value.detail) < 20_000
    return caught.value


def test_an_honest_host_is_heard(outer: Outer) -> None:
    assert run(outer).outcome.success


# What a host may answer where a short text is expected.
ODD = {
    "nothing": "",
    "no JSON": "{]",
    "another kind": "5",
    "a list of numbers": "[1, 2]",
    "deep": "[" * 50_000 + "]" * 50_000,
    "a bomb of values": "[" + "0," * 1_500_000 + "0]",
    "terminal escapes": "\x1b[2J\x1b]0;owned\x07",
    "a huge number": "9" * 10_000,
    "a negative number": "-5",
    "a way out": "../../../../etc/passwd",
    "a command": "$(touch /tmp/owned); `id`",
}
ASKED = {
    "the host": "uname -m",
    "what has arrived": "wc -c <",
    "its key": "ssh-keygen",
    "its bridges": "/network --output",
    "its datastores": "/storage",
    "its token": "token add",
    "its roles": "role list",
    "its certificate": "certificates/info",
    "its secrets": "secrets.yaml",
}


@pytest.mark.parametrize("asked", ASKED)
def test_odd_answers_to_the_bootstrap_are_an_error_or_data(
    outer: Outer, machine: InnerMachine, asked: str
) -> None:
    for said in ODD.values():
        machine.answers = {ASKED[asked]: answer(said)}
        with contextlib.suppress(StackyardError):
            assert run(outer).outcome.success
    machine.answers = {ASKED[asked]: answer(f"\x1b[2J {TOKEN}", status=1)}
    assert "canary" not in refused(outer).detail


@pytest.mark.parametrize(
    "said", ["ssh-rsa AAAA", "ssh-ed25519 AAAA\nssh-ed25519 BBBB", 'command="id" ssh-ed25519 A']
)
def test_a_public_key_is_one_of_ours(outer: Outer, machine: InnerMachine, said: str) -> None:
    machine.answers = {"ssh-keygen": answer(said)}
    assert "no public key" in refused(outer).detail


def test_no_error_quotes_the_token_that_a_host_made(outer: Outer, machine: InnerMachine) -> None:
    machine.answers = {"token add": answer('perl: warning\n{"value": "fresh-token"}')}
    assert "fresh-token" not in refused(outer).detail


def test_a_command_that_writes_without_end_is_given_up_once(
    outer: Outer, machine: InnerMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_shell, "_LARGEST_OUTPUT_MIB", 1)

    async def write_on(process: Process, script: str) -> None:
        del script
        while not process.stdout.is_closing():
            process.stdout.write(b"x" * 65536)
            await process.stdout.drain()

    machine.answers = {"role list": write_on}
    assert "wrote more than 1 MiB" in refused(outer).detail
    assert len([script for script in machine.scripts if "role list" in script]) == 1


@pytest.mark.parametrize("is_loud", [False, True])
def test_a_host_that_takes_nothing_of_a_file_is_given_up(
    outer: Outer, machine: InnerMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_loud: bool
) -> None:
    monkeypatch.setattr(upload, "_STALL_S", 0.5)
    archive = tmp_path / "archive.tar.gz"
    archive.write_bytes(os.urandom(2**23))

    async def wait(process: Process, script: str) -> None:
        del script
        while not process.stderr.is_closing():
            if is_loud:
                process.stderr.write(b"\x1b[2J" * 1000)
                await process.stderr.drain()
            await asyncio.sleep(0.01)

    machine.answers = {"wc -c <": answer("0\n"), "tar -xzof -": wait}
    sent = dataclasses.replace(outer, archive=(str(archive), "ab" * 32, archive.stat().st_size))
    assert "took nothing of a file" in refused(sent).detail


def test_no_answer_of_a_host_is_unpacked_or_written_here(
    outer: Outer, machine: InnerMachine, tmp_path: Path
) -> None:
    before = {path for path in tmp_path.rglob("*")}
    for body in (hostile_archive(), gzip.compress(hostile_archive())):
        machine.instead = answer(body)
        machine.answers = dict.fromkeys(ASKED.values(), answer(body))
        refused(outer)
        machine.answers = {}
        refused(dataclasses.replace(outer, silence_s=2.0))
    made = {path for path in tmp_path.rglob("*")} - before
    assert {path.name for path in made} <= {"known_hosts"}
    assert not Path("/tmp/owned-by-an-archive").exists()


def hostile_archive() -> bytes:
    """Return members that leave the folder, lead out of it, are no files, or steer a terminal."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for name, kind, target in (
            ("/tmp/owned-by-an-archive", tarfile.REGTYPE, ""),
            ("../../owned", tarfile.REGTYPE, ""),
            ("link", tarfile.SYMTYPE, "/etc/passwd"),
            ("hard", tarfile.LNKTYPE, "/etc/passwd"),
            ("device", tarfile.CHRTYPE, ""),
            ("\x1b[2Jname", tarfile.REGTYPE, ""),
            ("twice", tarfile.REGTYPE, ""),
            ("twice", tarfile.DIRTYPE, ""),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            archive.addfile(member)
        bomb = tarfile.TarInfo("bomb")
        bomb.size = 2**22
        archive.addfile(bomb, io.BytesIO(bytes(2**22)))
    return whole.getvalue()


# What a host may say in place of an honest result; the name of the error that follows.
BAD_RESULTS: dict[str, dict[str, Any]] = {
    "another verb": {"verb": "destroy"},
    "success as a text": {"success": "false"},
    "an endless time": {"duration_seconds": 1e300},
    "an id beyond all": {"nodes": [{**NODE, "vm_id": 10**30}]},
    "a depth beyond all": {"nodes": [{**NODE, "depth": 10**9}]},
    "an error that is none": {"nodes": [{**NODE, "error": {"a": 1}}]},
    "a cause that is none": {"nodes": [{**NODE, "cause": 5}]},
    "a phase that is none": {"nodes": [{**NODE, "phases": ["x"]}]},
    "no nodes": {"nodes": None},
}


@pytest.mark.parametrize("change", BAD_RESULTS)
def test_a_result_that_is_none_is_refused(outer: Outer, machine: InnerMachine, change: str) -> None:
    machine.instead = says(("result", {**RESULT, **BAD_RESULTS[change]}))
    assert refused(outer).code == "E-DELEGATION-BROKEN"


STREAMS: dict[str, list[tuple[str, Any]]] = {
    "no result": [],
    "an unknown kind": [("boom", {})],
    "a body that is none": [("event", [])],
    "deep": [("event", json.loads('{"a":' * 500 + "0" + "}" * 500))],
    "an error of megabytes": [
        (
            "error",
            {
                "summary": "s" * 10**6,
                "detail": "d" * 10**6,
                "remedy": "r" * 10**6,
                "diagnostics": [{}] * 10**5,
            },
        )
    ],
}


@pytest.mark.parametrize("stream", STREAMS)
def test_records_that_are_none_are_refused(outer: Outer, machine: InnerMachine, stream: str) -> None:
    machine.instead = says(*STREAMS[stream])
    error = refused(outer)
    assert error.code in ("E-DELEGATION-BROKEN", "E-DELEGATION-RUN")
    assert len(error.remedy or "") < 20_000


@pytest.mark.parametrize("cut", ["silence", "an end in the middle", "an endless line", "endless text"])
def test_a_host_that_never_comes_to_an_end_is_given_up(
    outer: Outer, machine: InnerMachine, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    monkeypatch.setattr(protocol, "_LONGEST_BYTES", 2**20)
    monkeypatch.setattr(remote, "_MOST_BYTES", 2**21)

    async def misbehave(process: Process, script: str) -> None:
        del script
        mark = await mark_of(process)
        process.stdout.write(line(mark, 1, "beat", {}))
        if cut == "an end in the middle":
            process.stdout.write(line(mark, 2, "result", RESULT)[:-20])
            process.exit(0)
        while cut != "an end in the middle" and not process.stdout.is_closing():
            if cut != "silence":
                process.stdout.write(b"x" * 65536 + (b"\n" if cut == "endless text" else b""))
                await process.stdout.drain()
            await asyncio.sleep(0.01)

    machine.instead = misbehave
    code = refused(dataclasses.replace(outer, silence_s=1.0)).code
    assert code == (
        "E-DELEGATION-BROKEN"
        if cut.startswith("an endless") or cut == "endless text"
        else "E-DELEGATION-LOST"
    )


def test_what_a_host_says_is_named_cut_and_masked(outer: Outer, machine: InnerMachine) -> None:
    secret = TOKEN.partition("=")[2]
    other = {"type": "step.started", "step": "../other", "title": f"\x1b[2J {secret}"}
    log = {"type": "log", "level": "warning", "source": "stackyard", "text": "x" * 10**6 + secret}
    whole = {"type": "run.finished", "outcome": "done"}
    node = {**NODE, "error": f"it said {secret}"}
    machine.instead = says(
        *[("event", one) for one in (other, log, whole, {"type": "unknown"}, {"type": 5})],
        (
            "result",
            {**RESULT, "success": False, "error": secret, "nodes": [node, {**NODE, "name": "stranger"}]},
        ),
    )
    seen: list[events.Event] = []
    outcome = run(outer, seen).outcome
    assert secret not in repr(outcome)
    inside = [event for event in seen if "other" in repr(event) or "warning" in repr(event)]
    assert len(inside) == 2
    assert all(repr(event).find(INNER) >= 0 for event in inside)
    assert secret not in repr(seen)
    assert max(len(repr(event)) for event in seen) < 100_000
    machine.instead = says(
        ("error", {"summary": "s", "code": "E-X", "detail": secret, "remedy": f"run {secret}"})
    )
    error = refused(outer)
    assert secret not in error.detail + (error.remedy or "")
    machine.answers = {"role list": answer(f"no JSON {secret}")}
    assert secret not in refused(outer).detail
