"""The how-to about state is true: each of its blocks runs, with a real engine and a real S3 server."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.seaweed import Seaweed, seaweed

from stackyard.engine.version import Flavour

__all__ = ["seaweed"]

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "state.md").read_text()
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
BLOCKS = [
    (section.partition("\n")[0], block)
    for section in SECTIONS
    for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
]
ROOT = 'resource "terraform_data" "example" {\n  input = "one"\n}\n'


@pytest.mark.tofu
@pytest.mark.parametrize(("title", "script"), BLOCKS, ids=[title for title, _ in BLOCKS])
def test_the_commands_of_the_page_work(title: str, script: str, tmp_path: Path, seaweed: Seaweed) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    tofu = real_engine(Flavour.TOFU).path
    for name, command in (("stackyard", f"{sys.executable} -m stackyard"), ("tofu", str(tofu))):
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "main.tf").write_text(ROOT)
    settings = {"S3_ENDPOINT": seaweed.endpoint, "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}
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


def test_the_page_shows_everything_that_it_promises() -> None:
    shown = "\n".join(script for _, script in BLOCKS)
    verbs = (
        "list show versions move serve token locks audit backend diff rollback freeze unfreeze prune register"
    )
    assert [verb for verb in verbs.split() if f"stackyard state {verb}" not in shown] == []
