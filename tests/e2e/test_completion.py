"""A shell completes what the site and its store have, and says nothing where there is neither."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import PROGRAM, fresh, stackyard
from tests.support.path import SMALL_GUEST, Yard, make_yard

from stackyard import lab

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with lab.running(nodes=("pve1",)) as running:
        made = make_yard(running, tmp_path / "yard")
        made.write_env("one", [SMALL_GUEST])
        yield made


def offered(line: str, folder: Path) -> list[str]:
    words = line.split(" ")
    env = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_STACKYARD_COMPLETE": "bash_complete"}
    ended = fresh(cwd=folder, env=env)
    return [row.partition(",")[2] for row in ended.stdout.splitlines() if row]


def test_targets_hosts_and_guests_of_the_site_are_offered(yard: Yard) -> None:
    assert {"one", "env:one", "site:shared"} <= set(offered("stackyard plan ", yard.folder))
    assert offered("stackyard drift env:o", yard.folder) == ["env:one"]
    assert offered("stackyard apply one -H la", yard.folder) == ["lab"]
    assert offered("stackyard apply one --allow-destroy w", yard.folder) == ["web"]
    assert offered("stackyard apply one --allow-destroy other,w", yard.folder) == ["other,web"]
    assert "env/one/lab" not in offered("stackyard state show ", yard.folder)
    (yard.folder / "hypervisors").mkdir()
    (yard.folder / "hypervisors" / "home.yaml").write_text("pools: {apps: {}}\n")
    assert offered("stackyard plan hyp", yard.folder) == ["hypervisor:home"]
    assert offered("stackyard explain hyp", yard.folder) == ["hypervisor:home"]


@pytest.mark.tofu
def test_states_and_the_guests_in_them_are_offered(yard: Yard) -> None:
    yard.run("apply", "one", "--no-verify")
    assert offered("stackyard state show env/o", yard.folder) == ["env/one/lab"]
    # What is gone from the input is what has to be named.
    yard.write_env("one", [{**SMALL_GUEST, "name": "other", "vmid": 102}])
    assert offered("stackyard apply one --allow-destroy w", yard.folder) == ["web"]


def test_a_broken_site_and_no_site_offer_what_there_is(yard: Yard, tmp_path: Path) -> None:
    (yard.folder / "envs" / "broken.yaml").write_text("vms: [")
    assert "broken" in offered("stackyard plan ", yard.folder)
    assert offered("stackyard apply broken --allow-destroy w", yard.folder) == []
    assert offered("stackyard plan ", tmp_path) == []
    assert "plan" in offered("stackyard pl", tmp_path)


def test_bash_completes_behind_a_colon(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "script").write_text(stackyard("completion", "bash").stdout)
    program = tmp_path / "bin" / "stackyard"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    program.chmod(0o755)
    typed = (
        f". {tmp_path}/script; COMP_LINE='stackyard plan env:o'; COMP_POINT=${{#COMP_LINE}};"
        " COMP_WORDS=(stackyard plan env : o); COMP_CWORD=4; COMPREPLY=();"
        ' _stackyard_completion stackyard; echo "${COMPREPLY[@]}"'
    )
    ended = subprocess.run(
        ["bash", "-c", typed],
        cwd=yard.folder,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ended.stdout.split() == ["one"], ended.stderr
