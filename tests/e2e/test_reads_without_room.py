"""Every verb that only looks works on a disk that is full, and makes nothing on it."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.cli import LONGEST_S, PROGRAM, Ended
from tests.support.deployment_rig import TWO, Rig, shared_rig

from stackyard.clients.objects import open_objects
from stackyard.state import StateService

READS = (
    "deployment show",
    "deployment history",
    "deployment lease status",
    "deployment explain second",
    "state list",
    "state show {state}",
    "state versions {state}",
    "state locks",
    "state audit {state}",
    "output deployment",
    "inventory render deployment",
    "inventory show deployment",
    "explain test",
    "lab status",
)


def _without_room() -> None:
    # No file may grow by a byte: the system itself refuses to write, as with a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def on_full_disk(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> Ended:
    """Run the program to its end where nothing can be written; what it prints goes into pipes."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {}), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
        preexec_fn=_without_room,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with shared_rig(tmp_path_factory.mktemp("room")) as made:
        made.plant({**TWO, "domain": "example.com"})
        made.yard.run("inventory", "publish", "deployment")
        yield made


def _files(folder: Path) -> dict[str, int]:
    kept = folder / ".stackyard"
    return {str(path.relative_to(kept)): path.stat().st_mtime_ns for path in kept.rglob("*")}


@functools.cache
def _state_in(folder: Path) -> str:
    with contextlib.closing(open_objects(folder / ".stackyard" / "state", create=False)) as objects:
        return next(StateService(objects).names())


@pytest.mark.parametrize("verb", READS)
def test_what_only_looks_needs_no_room(rig: Rig, verb: str) -> None:
    yard = replace(rig.yard, program=on_full_disk)
    words = verb.format(state=_state_in(rig.yard.folder)).split()
    usual = rig.yard.run(*words, "--json", status=None)
    before = _files(rig.yard.folder)
    ended = yard.run(*words, "--json", status=usual.status)
    assert usual.status in (0, 1, 65, 69), usual.stdout
    assert '"E-STORE' not in usual.stdout
    assert ended.document.keys() == usual.document.keys()
    assert _files(rig.yard.folder) == before


def test_what_writes_says_that_there_is_no_room(rig: Rig) -> None:
    yard = replace(rig.yard, program=on_full_disk)
    error = yard.json("deployment", "edit", "--set", "domain=x.com", status=69)["error"]
    assert error["code"] in ("E-STORE-FULL", "E-STORE")
    assert rig.current()["domain"] == "example.com"
