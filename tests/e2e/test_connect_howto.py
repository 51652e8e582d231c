"""The how-to of one's own Proxmox is true: each command of the page runs, in its order, in one folder."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.e2e.test_connect_terminal import Terminal
from tests.support.connecting import Newcomer
from tests.support.engine import real_engine
from tests.support.forking import write_forked_program

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.guard.features import Feature

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "own-proxmox.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
ADDRESS = "https://pve.home:8006"
# Where the page is at a terminal, the test says what a person would have answered.
WRAPPER = """#!/bin/sh
case "$1 $*" in
    *--print*|*--fingerprint*) ;;
    connect*) set -- "$@" --user root@pam --fingerprint "$FINGERPRINT" ;;
esac
exec {program} "$@"
"""


def test_the_page_can_be_followed_from_an_empty_folder_to_a_first_apply(tmp_path: Path, home: Path) -> None:
    first, *others = BLOCKS
    make, connect = first.strip().splitlines()
    assert make == "mkdir my-yard && cd my-yard"
    (folder := tmp_path / "my-yard").mkdir()
    (tmp_path / "bin").mkdir()
    program = write_forked_program(tmp_path / "forked" / "stackyard")
    (tmp_path / "bin" / "stackyard").write_text(WRAPPER.format(program=program))
    (tmp_path / "bin" / "stackyard").chmod(0o755)
    with lab.running(nodes=("pve",)) as running:
        (home / "pve-password").write_text(running.password)
        who = Newcomer(running=running, folder=folder)
        # A guest that was there before.
        who.api.nodes("pve").qemu.post(vmid=200, name="nas", memory=512, scsi0="local-lvm:4")
        terminal = Terminal(*connect.replace(ADDRESS, running.url).split()[1:], folder=folder)
        terminal.answer("Trust it? [y/N]", "y")
        terminal.answer("User [root@pam]", "")
        terminal.answer("Password of root@pam", running.password)
        terminal.answer("Do this? [Y/n]", "")
        assert terminal.end() == 0, terminal.seen
        env = {
            **os.environ,
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            "FINGERPRINT": running.fingerprint,
            "STACKYARD_PVE_PASSWORD": running.password,
            "STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path),
        }
        for script in others:
            done = subprocess.run(
                ["bash", "-euc", script.replace(ADDRESS, running.url)],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
            assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        assert sorted(row["name"] for row in who.api.cluster.resources.get(type="vm")) == ["first", "nas"]


def test_the_page_describes_every_feature() -> None:
    described = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert described == [feature.value for feature in Feature]
