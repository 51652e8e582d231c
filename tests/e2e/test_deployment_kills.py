"""kill -9 at each step of a write, a plan and an apply: no torn object, and the next action is right."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.deployment import SMALL, edited, place_in, text_of
from tests.support.deployment_rig import TWO, Rig, running_rig
from tests.support.forking import fork_program, run_forked
from tests.support.path_kills import children_of
from tests.support.processes import PATIENCE_S, Watched

from stackyard.sources.deployment.fetch import fetch, open_history
from stackyard.sources.deployment.text import parse, same
from stackyard.sources.deployment.write import WriteRequest, write

GROWN = edited(SMALL, **{"containers__my-container__cpu_cores": 4})
# More than a write ever asks of its store.
MOST_STEPS = 60
STEPS_AT_ONCE = 8


def killed(folder: Path, moment: str, nth: int, kind: str) -> bool:
    """Run a writer that is killed at a step; tell whether it came so far."""
    arguments = (str(folder), moment, str(nth), kind)
    entry = "tests.support.deployment_killed:run"
    status, _, said = run_forked(arguments, entry=entry, timeout_s=PATIENCE_S)
    assert status in (0, -signal.SIGKILL), said.decode()
    return status == -signal.SIGKILL


def _giving(text: str) -> Callable[[object], bytes]:
    return lambda current: text.encode()


def killed_and_gone_on(folder: Path, moment: str, nth: int, kind: str) -> tuple[bool, bool]:
    """Kill a writer at a step and write after it; tell whether it came so far and whether it wrote."""
    folder.mkdir()
    place = place_in(folder, lease_ttl_s=1)
    write(place, WriteRequest(kind="put", make=lambda current: text_of(SMALL).encode()))
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
    # The next session waits until the dead one's lease is over, and its write succeeds.
    last = text_of(edited(found.document.data, domain="after.example.com"))
    write(place, WriteRequest(kind="put", make=_giving(last), wait_s=60))
    assert fetch(place).document.text == last
    return was_killed, is_new


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "moment"), [("edit", "before"), ("put", "after")])
def test_a_writer_killed_at_any_step_leaves_a_whole_object_and_the_next_one_goes_on(
    tmp_path: Path, kind: str, moment: str
) -> None:
    seen: list[tuple[bool, bool]] = []

    def step(nth: int) -> tuple[bool, bool]:
        return killed_and_gone_on(tmp_path / str(nth), moment, nth, kind)

    # Most of the time they wait for the end of a lease: side by side.
    with ThreadPoolExecutor(STEPS_AT_ONCE) as pool:
        while all(was_killed for was_killed, _ in seen) and len(seen) < MOST_STEPS:
            seen += pool.map(step, range(len(seen) + 1, len(seen) + 1 + STEPS_AT_ONCE))
    assert sum(was_killed for was_killed, _ in seen) >= 5
    assert not all(was_killed for was_killed, _ in seen)
    assert {is_new for _, is_new in seen} == {False, True}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with running_rig(tmp_path, is_applied=False) as made:
        yield made


def kill_at(rig: Rig, verb: str, wanted: tuple[str, str]) -> bool:
    """Run a verb and kill it when an event of a type and a step or address comes; tell whether it came."""
    options = ["--no-verify"] if verb == "apply" else []
    out, out_end = os.pipe()
    with open(os.devnull, "r+b") as nothing, open(out_end, "wb"):
        program = fork_program(
            (verb, "deployment", "--events", *options),
            streams=(nothing.fileno(), out_end, nothing.fileno()),
            cwd=rig.yard.folder,
            env={**os.environ, **rig.yard.env},
        )
    orphans: list[int] = []
    with open(out) as events:
        for line in events:
            event = json.loads(line)
            if event["type"] == wanted[0] and wanted[1] in (event.get("step"), event.get("phase")):
                orphans.extend(children_of(program.pid, "tofu"))
                program.kill()
                break
        status = program.wait()
    for pid in orphans:
        with Watched(pid) as engine:
            assert engine.has_ended(), f"the engine {pid} lives on"
    return status == -signal.SIGKILL


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
