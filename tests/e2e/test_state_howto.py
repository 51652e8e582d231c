"""The how-to about state is true: each of its blocks runs, with a real engine and a real S3 server."""

from __future__ import annotations

import enum
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.support.engine import real_engine
from tests.support.postgres import PASSWORD, USER, Postgres, postgres
from tests.support.seaweed import Seaweed, seaweed
from tests.support.state_store import NAME, Filled, contents, filled

from stackyard.cli.commands.state import state
from stackyard.engine.version import Flavour
from stackyard.state import AuditAction, Right, StateConflictError, VersionKind

__all__ = ["filled", "postgres", "seaweed"]

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "state.md").read_text()
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
BLOCKS = [
    (section.partition("\n")[0], block)
    for section in SECTIONS
    for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
]
ROOT = 'resource "terraform_data" "example" {\n  input = "one"\n}\n'


def servers(script: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """Start the servers that a block uses; return how it reaches them."""
    found: dict[str, str] = {}
    if "S3_ENDPOINT" in script:
        bucket: Seaweed = request.getfixturevalue("seaweed")
        found["S3_ENDPOINT"] = bucket.endpoint
    if "PGHOST" in script:
        server: Postgres = request.getfixturevalue("postgres")
        found |= {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": USER}
        found |= {"PGPASSWORD": PASSWORD, "PGDATABASE": "postgres"}
    return found


@pytest.mark.tofu
@pytest.mark.parametrize(("title", "script"), BLOCKS, ids=[title for title, _ in BLOCKS])
def test_the_commands_of_the_page_work(
    title: str, script: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    tofu = real_engine(Flavour.TOFU).path
    for name, command in (("stackyard", f"{sys.executable} -m stackyard"), ("tofu", str(tofu))):
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "main.tf").write_text(ROOT)
    settings = {"CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1", **servers(script, request)}
    with subprocess.Popen(
        # Job control, as in a shell that a person uses: `kill %1`.
        ["bash", "-euc", f"set -m\ntrap 'kill $(jobs -p) || true' EXIT\n{script}\nwait\n"],
        cwd=folder,
        env={**os.environ, **settings, "PATH": f"{programs}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as shell:
        try:
            printed, _ = shell.communicate(timeout=110)
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, f"{title}: {printed}"
    assert "Error" not in printed


REFERENCE = (Path(__file__).parents[2] / "docs" / "reference" / "state.md").read_text()


def section(title: str) -> str:
    return REFERENCE.partition(f"## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    ("title", "words"),
    [("The audit log", AuditAction), ("A version", VersionKind), ("Rights", Right)],
)
def test_the_reference_has_every_word(title: str, words: type[enum.StrEnum]) -> None:
    assert [word.value for word in words if f"`{word.value}`" not in section(title)] == []


def test_the_reference_has_every_field_of_a_version_and_an_entry(filled: Filled) -> None:
    [*_, version] = filled.run("versions", NAME, "--json").document["versions"]
    assert [name for name in version if f"`{name}`" not in section("A version")] == []
    [*_, entry] = filled.run("audit", NAME, "--json").document["entries"]
    assert [name for name in entry if f"`{name}`" not in section("The audit log")] == []


def test_the_reference_has_every_object_of_a_store(filled: Filled) -> None:
    for serial in range(4, 80):
        filled.write(contents(serial, serial))
    with pytest.raises(StateConflictError):
        filled.write(contents(1, 1))
    filled.run("token", "create", "ci", "--allow", "read")
    with filled.service() as service:
        found = {entry.key for entry in service.objects.list("", limit=10_000)}
    shown = [
        re.sub(r"<\w+>", "[^/]+", re.escape(name).replace(r"\-<n>", "-[^/]+"))
        for name in re.findall(r"`((?:heads|data|system|runs)[^`]*)`", section("Objects"))
    ]
    assert len(shown) == 9
    assert [key for key in found if not any(re.fullmatch(one, key) for one in shown)] == []
    assert "data/env!dev!pve1/audit/00000000" in found


def test_every_verb_is_on_the_page() -> None:
    verbs = state.list_commands(click.Context(state))
    assert [verb for verb in verbs if f"stackyard state {verb}" not in PAGE] == []
