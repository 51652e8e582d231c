"""The page about logging in to guests is true: its commands and its playbook are run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.forking import write_forked_program
from tests.support.lab_inside import need_sandbox

# A playbook over SSH, twice: it takes a minute where four tests share two cores.
pytestmark = pytest.mark.timeout(600)

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "lab-guests.md").read_text()
WRAPPER = """#!/bin/sh
if [ "$1 $2" = "lab up" ]; then set -- "$@" --port 0; fi
exec {program} "$@"
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Give an environment in which `stackyard` takes any port, and leave no lab behind."""
    need_sandbox()
    if not all(map(shutil.which, ("bash", "ssh", "ssh-keygen"))):
        pytest.skip("OpenSSH's client is not installed")
    folder = tmp_path / "bin"
    folder.mkdir()
    program = write_forked_program(tmp_path / "forked" / "stackyard")
    (folder / "stackyard").write_text(WRAPPER.format(program=program))
    (folder / "stackyard").chmod(0o755)
    yield {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    stackyard("lab", "down", "--all")


def run(script: str, env: dict[str, str], cwd: Path) -> str:
    done = subprocess.run(
        ["bash", "-euc", script],
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_guest_is_made_and_logged_in_to_as_the_page_says(
    environment: dict[str, str], tmp_path: Path
) -> None:
    make, inventory, down = blocks("sh")
    out = run(make, environment, tmp_path)
    assert "Inside guests: sandbox." in out
    assert "status: done" in out
    assert "active\nhello\n" in out
    assert "Setting up jq" in out
    run(inventory, environment, tmp_path)
    assert "ansible_user=ops" in (tmp_path / "inventory.ini").read_text()
    run(down, environment, tmp_path)


def test_the_playbook_of_the_page_runs_and_changes_nothing_the_second_time(
    environment: dict[str, str], tmp_path: Path
) -> None:
    playbook = str(Path(sys.executable).parent / "ansible-playbook")
    make, inventory, down = blocks("sh")
    (tmp_path / "site.yml").write_text(blocks("yaml")[0])
    run(make, environment, tmp_path)
    run(inventory, environment, tmp_path)
    env = {
        **environment,
        "ANSIBLE_HOME": str(tmp_path / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(tmp_path / "tmp"),
        # The folder of a test is too long for the name of a socket.
        "ANSIBLE_SSH_ARGS": "-o ControlMaster=no",
    }
    first = run(f"{playbook} -i inventory.ini site.yml", env, tmp_path)
    assert "failed=0" in first
    assert "changed=2" in first
    assert "changed=0" in run(f"{playbook} -i inventory.ini site.yml", env, tmp_path)
    run(down, environment, tmp_path)
