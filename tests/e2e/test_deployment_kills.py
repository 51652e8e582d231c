"""kill -9 at each step of a write, a plan and an apply: no torn object, and the next action is right."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.cli import PROGRAM
from tests.support.deployment import SMALL, edited, place_in, text_of
from tests.support.deployment_rig import TWO, Rig, running_rig
from tests.support.path_kills import children_of
from tests.support.processes import Watched

from stackyard.deployment.fetch import fetch, open_history
from stackyard.deployment.text import parse, same
from stackyard.deployment.writing import Request, write

ROOT = Path(__file__).parents[2]
GROWN = edited(SMALL, **{"containers__my-container__cpu_cores": 4})
# More than a write ever asks of its store.
MOST_STEPS = 60


def killed(folder: Path, moment: str, nth: int, kind: str) -> bool:
    """Run a writer that is killed at a step; tell whether it came so far."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.deployment_killed", str(folder), moment, str(nth), kind],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode == -signal.SIGKILL


def _giving(text: str) -> Callable[[object], bytes]:
    return lambda current: text.encode()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "moment"), [("edit", "before"), ("put", "after")])
def test_a_writer_killed_at_any_step_leaves_a_whole_object_and_the_next_one_goes_on(
    tmp_path: Path, kind: str, moment: str
) -> None:
    steps = 0
    outcomes = set()
    for nth in range(1, MOST_STEPS):
        folder = tmp_path / str(nth)
        folder.mkdir()
        place = place_in(folder, lease_ttl_s=1)
        write(place, Request(kind="put", make=lambda current: text_of(SMALL).encode()))
        was_killed = killed(folder, moment, nth, kind)
        found = fetch(place)
        # Either the old one or the new one, whole.
        is_new = same(found.document.data, GROWN)
        assert is_new or same(found.document.data, SMALL)
        store = open_history(place)
        history = list(store.history())
        assert len(history) == 1 + is_new
        for version in history:
            parse(store.read_version(version).data, "a version")
        store.close()
        outcomes.add(is_new)
        # The next session waits until the dead one's lease is over, and its write succeeds.
        last = text_of(edited(found.document.data, domain="after.example.com"))
        write(place, Request(kind="put", make=_giving(last), wait_s=60))
        assert fetch(place).document.text == last
        steps += 1
        if not was_killed:
            break
    assert steps > 5
    assert outcomes == {False, True}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with running_rig(tmp_path, is_applied=False) as made:
        yield made


def kill_at(rig: Rig, verb: str, wanted: tuple[str, str]) -> bool:
    """Run a verb and kill it when an event of a type and a step or address comes; tell whether it came."""
    program = subprocess.Popen(
        [*PROGRAM, verb, "deployment", "--events", *(["--no-verify"] if verb == "apply" else [])],
        cwd=rig.yard.folder,
        env={**os.environ, **rig.yard.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert program.stdout is not None
    orphans: list[int] = []
    for line in program.stdout:
        event = json.loads(line)
        if event["type"] == wanted[0] and wanted[1] in (event.get("step"), event.get("phase")):
            orphans.extend(children_of(program.pid, "tofu"))
            program.kill()
            break
    program.wait()
    program.stdout.close()
    for pid in orphans:
        with Watched(pid) as engine:
            assert engine.has_ended(), f"the engine {pid} lives on"
    return program.returncode == -signal.SIGKILL


@pytest.mark.tofu
@pytest.mark.timeout(300)
@pytest.mark.soak
def test_a_plan_and_an_apply_killed_at_any_step_are_simply_run_again(rig: Rig) -> None:
    moments = [
        ("plan", ("step.started", "fetch")),
        ("plan", ("step.finished", "survey")),
        ("plan", ("step.started", "plan")),
        ("apply", ("step.finished", "fetch")),
        ("apply", ("step.started", "apply")),
        ("apply", ("resource.applied", "started")),
        ("apply", ("resource.applied", "done")),
    ]
    for verb, wanted in moments:
        assert kill_at(rig, verb, wanted), (verb, wanted)
        assert rig.current() == TWO
        assert rig.versions() == 1
    rig.yard.run("apply", "deployment", "--no-verify")
    assert set(rig.yard.guests()) == {123, 124}
    assert rig.yard.json("plan", "deployment")["has_changes"] is False
