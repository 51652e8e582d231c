"""The tutorial of pull requests does what it says: its commands run against a real Gitea and a lab."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.engine import real_engine
from tests.support.gitea import Gitea, require_gitea
from tests.support.pages import Block, Reader
from tests.support.ports import free_port

from stackyard.engine.version import Flavour

pytestmark = [
    pytest.mark.tofu,
    pytest.mark.judges("gitea"),
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not on PATH"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not on PATH"),
]

PAGE = "docs/tutorial/pull-requests.md"
PORT = "44444"
# What a reader looks for in what a block prints; the page says so.
EXPECTED = (
    ("gitops check", "It accepts direct pushes", "requires 0 approvals"),
    ("gitops check --fix", "mended: It accepts direct pushes"),
    ("git push -q origin main", "protected branch main"),
    ("gitops plan 1", "changes (1 create)"),
    ("issues/1/comments", "1 to create", "1 more approval of this plan"),
    ("pulls/1/reviews", "changes (1 create)"),
    ("gitops apply 1", "applied (1 create)"),
    ("lab journal", "poolid=apps"),
    ("gitops status 1", "applied (1 create)"),
    ("wait-for 2", "stackyard allow destroy stack:pools"),
    ("allow destroy", "to be applied (removed)"),
    ("pulls/2/merge", "1 destroyed"),
)


def _write_gitea_program(server: Gitea, folder: Path) -> None:
    """Write a `gitea` that has its configuration, and does not run as root."""
    plain = "" if os.geteuid() else "setpriv --reuid nobody --regid nogroup --clear-groups "
    command = f"{plain}{shlex.quote(str(server.program))} --config {server.folder}/app.ini"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "gitea"
    program.write_text(f'#!/bin/sh\ncd {server.folder}\nHOME={server.folder} exec {command} "$@"\n')
    program.chmod(0o755)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    server = require_gitea()
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("setpriv is not on PATH: Gitea does not run as root")
    made = Reader(
        folder=tmp_path,
        programs=tmp_path / "bin",
        env={"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path), "GITEA": server.url},
    )
    _write_gitea_program(server, made.programs)
    yield made
    exported = made.programs / "exported"
    found = re.search(r'SERVER="(\d+)"', exported.read_text() if exported.exists() else "")
    if found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(found[1]), signal.SIGTERM)
    stackyard("lab", "down", "--all")


def test_the_page_can_be_followed_from_its_start_to_its_end(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = str(free_port())
    expected = iter(EXPECTED)
    command, *words = next(expected)

    def type_on_a_free_port(block: Block) -> str:
        script = block.script.replace(f"127.0.0.1:{PORT}", f"127.0.0.1:{port}")
        script = script.replace("gitops serve", f"gitops serve --port {port}")
        return Reader.type(reader, Block(script=script, status=block.status, picture=block.picture))

    monkeypatch.setattr(reader, "type", type_on_a_free_port)
    for block, printed in reader.follow(PAGE):
        if command in block.script and all(word in printed for word in words):
            command, *words = next(expected, ("-",))
    assert command == "-", f"never printed after `{command}`: {words}"
