"""Runs on stacks that are killed without a warning: the next one completes, and nothing is there twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.path_kills import children_of
from tests.support.processes import PATIENCE_S, Watched
from tests.support.stack_repo import StackRepo, make_repo

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

TARGET = "stack:onprem/a"
FOLDER = "stacks/onprem/a"
# `first` is made and stored before `slow` begins; that waits until it is let go.
_MAIN = """
    resource "terraform_data" "first" {
      provisioner "local-exec" { command = "echo made >> ${path.module}/../../../first.log" }
    }
    resource "terraform_data" "slow" {
      depends_on = [terraform_data.first]
      provisioner "local-exec" {
        command = "cd ${path.module}/../../.. && touch started && until [ -e go ]; do sleep 0.05; done"
      }
    }
"""
_BACKENDS = {"store": 'terraform {\n  backend "http" {}\n}\n', "local": ""}
_USUAL = {("store", "the program"), ("local", "both")}


def _repo(folder: Path, backend: str) -> StackRepo:
    files = {f"{FOLDER}/main.tf": _MAIN, f"{FOLDER}/backend.tf": _BACKENDS[backend]}
    repo = make_repo(folder, {name: text for name, text in files.items() if text})
    repo.write({".git/info/exclude": "started\ngo\nfirst.log\n"})
    return repo


def _start(repo: StackRepo, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "stackyard", *words],
        cwd=repo.root,
        env={**os.environ, **repo.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _await(path: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < until, f"{path} does not come"
        time.sleep(0.02)


# Each takes its time: one of each kind in every run, all of them in `make soak`.
@pytest.mark.parametrize(
    ("backend", "who"),
    [
        pytest.param(backend, who, marks=() if (backend, who) in _USUAL else pytest.mark.soak)
        for backend in _BACKENDS
        for who in ("the program", "the engine", "both")
    ],
)
def test_an_apply_that_is_killed_at_work_is_completed_by_the_next(
    tmp_path: Path, backend: str, who: str
) -> None:
    repo = _repo(tmp_path, backend)
    program = _start(repo, "apply", TARGET, "--yes")
    _await(tmp_path / "started")
    engines = list(children_of(program.pid, "tofu"))
    assert engines
    if who != "the engine":
        program.kill()
    if who != "the program":
        for pid in engines:
            os.kill(pid, signal.SIGKILL)
    program.wait(PATIENCE_S)
    (tmp_path / "go").touch()
    # At once: an engine that still stores what it made is waited for.
    again = repo.json("apply", TARGET, "--lock-wait", "30", "--allow-destroy", "terraform_data.slow")
    if who != "the program":
        assert again["applied"]["add"] >= 1
    for pid in engines:
        with Watched(pid) as engine:
            assert engine.has_ended(), "the engine lives on"
    assert repo.actions(TARGET) == {}
    if who == "the program":
        # What the engine made before it ended is in the state, so that it is not made again.
        assert (tmp_path / "first.log").read_text() == "made\n"


# The program, killed where it is about to call something, or has just done so.
_KILLED = """
import os, signal, sys
from stackyard.cli.main import main
from stackyard.path.stacks import adoption
from stackyard.state.run_lock import RunLock

place, name, is_after = {"store": RunLock}.get(sys.argv[1], adoption), sys.argv[1], sys.argv[2] == "after"
real = getattr(place, name)

def killed(*given, **more):
    if is_after:
        real(*given, **more)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(place, name, killed)
main(sys.argv[3:])
"""


def _run_killed(repo: StackRepo, step: str, when: str, *words: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _KILLED, step, when, *words],
        cwd=repo.root,
        env={**os.environ, **repo.env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr


_PLAIN = 'resource "terraform_data" "x" { input = "hello" }\n'


@pytest.mark.parametrize(
    ("step", "when"), [("store", "before"), ("store", "after"), ("write_backend", "after")]
)
def test_an_adoption_that_is_killed_is_completed_by_the_next(tmp_path: Path, step: str, when: str) -> None:
    repo = make_repo(tmp_path, {f"{FOLDER}/main.tf": _PLAIN})
    repo.run("apply", TARGET)
    local = tmp_path / FOLDER / "terraform.tfstate"
    lineage = json.loads(local.read_text())["lineage"]
    _run_killed(repo, step, when, "stack", "adopt", "onprem/a")
    # Whatever the code names is the state, and it holds what was made.
    assert repo.actions(TARGET) == {}
    repo.run("stack", "adopt", "onprem/a")
    assert not local.exists() or not local.stat().st_size, "a second state is left beside the code"
    repo.commit()
    assert repo.actions(TARGET) == {}
    (name,) = [one["name"] for one in repo.json("state", "list")["states"]]
    assert repo.json("state", "show", name)["version"]["lineage"] == lineage


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_leave_that_is_killed_is_completed_by_the_next(tmp_path: Path, when: str) -> None:
    code = 'terraform {\n  backend "http" {}\n}\n' + _PLAIN
    repo = make_repo(tmp_path, {f"{FOLDER}/main.tf": code})
    repo.run("apply", TARGET)
    _run_killed(repo, "write_backend", when, "stack", "leave", "onprem/a")
    assert repo.actions(TARGET) == {}
    ended = repo.run("stack", "leave", "onprem/a", status=None)
    assert ended.status == (0 if when == "before" else 64), ended.stderr
    repo.commit()
    assert repo.actions(TARGET) == {}
    assert (tmp_path / FOLDER / "terraform.tfstate").is_file()
