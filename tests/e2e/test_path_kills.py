"""A run that is killed at any moment: the next one goes on, with no stuck lock and no guest twice or lost."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.path import make_yard
from tests.support.path_kills import engine_killed, program_killed
from tests.support.path_runs import DNS, WEB, Rig, WatchedJournal, watch_calls

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

Kill = Callable[[Rig, WatchedJournal, int], bool]
# An apply of the two guests makes a few more calls than this.
CALLS = 36
ROUNDS = 60


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Rig, WatchedJournal]]:
    monkeypatch.setenv("STACKYARD_TOFU", str(real_engine(Flavour.TOFU).path))
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0) as running:
        journal = watch_calls(running)
        yard = make_yard(running, tmp_path / "site")
        yard.write_env("t", [WEB, DNS])
        yield Rig(yard=yard), journal


def go_on_after(rig: Rig, journal: WatchedJournal, kill: Kill, nth: int) -> bool:
    """Kill, then apply once more; tell whether there was something to kill."""
    rig.begin()
    was_killed = kill(rig, journal, nth)
    rig.settle()
    made = rig.creations()
    assert all(count <= 1 for count in made.values()), made
    return was_killed


@pytest.mark.parametrize(("kill", "nth"), [(program_killed, 14), (program_killed, 22), (engine_killed, 24)])
def test_the_next_run_goes_on(rig: tuple[Rig, WatchedJournal], kill: Kill, nth: int) -> None:
    assert go_on_after(*rig, kill, nth)


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("kill", [program_killed, engine_killed])
def test_the_next_run_goes_on_wherever_the_last_was_killed(
    rig: tuple[Rig, WatchedJournal], kill: Kill
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chosen = random.Random(seed)
    points = [*range(1, CALLS + 1), *(chosen.randint(1, CALLS) for _ in range(ROUNDS - CALLS))]
    killed, problems = 0, []
    for nth in points:
        try:
            killed += go_on_after(*rig, kill, nth)
        except AssertionError as err:
            problems.append(f"call {nth}: {err}")
            sys.stdout.write(f"FAILED {problems[-1]}\n")
    sys.stdout.write(f"\n{kill.__name__}: {len(points)} runs, {killed} killed, seed {seed}\n")
    assert problems == []
    assert killed > ROUNDS // 2
