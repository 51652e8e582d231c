"""Whatever goes wrong at any call of an apply: one more converges, with no guest twice and none lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.path import make_yard
from tests.support.path_faults import Case, Counts, Spot, call_cases, run_case, spots_of, work_cases
from tests.support.path_runs import DNS, WEB, Rig, WatchedJournal, describe, watch_calls

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

NODE = "pve1"
TASKS = ("download", "qmcreate", "resize", "qmstart", "vzcreate", "vzstart")
MAKES_VM = Spot(method="POST", path=f"/nodes/{NODE}/qemu", nth=1)
MAKES_CONTAINER = Spot(method="POST", path=f"/nodes/{NODE}/lxc", nth=1)
SAMPLE = [
    Case(
        kind="drop after",
        name=str(MAKES_VM),
        fault={"kind": "drop", "when": "after", "method": "POST", "path": MAKES_VM.path, "times": 1},
    ),
    Case(
        kind="500 after the work",
        name=str(MAKES_CONTAINER),
        fault={
            "kind": "answer",
            "status": 500,
            "reason": "got bored",
            "when": "after",
            "method": "POST",
            "path": MAKES_CONTAINER.path,
            "times": 1,
        },
    ),
    Case(
        kind="task fails late",
        name="qmstart",
        fault={"kind": "task", "task": "qmstart", "step": 0, "text": "it broke", "times": 1},
    ),
    Case(kind="node down", name=str(MAKES_VM), fault={"kind": "node-down", "node": NODE}, since=MAKES_VM),
]


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Rig, WatchedJournal]]:
    monkeypatch.setenv("STACKYARD_TOFU", str(real_engine(Flavour.TOFU).path))
    with lab.running(nodes=(NODE, "pve2"), ssh_port=0) as running:
        journal = watch_calls(running)
        yard = make_yard(running, tmp_path / "site")
        yard.write_env("t", [WEB, DNS])
        yield Rig(yard=yard), journal


@pytest.mark.parametrize("case", SAMPLE, ids=str)
def test_one_more_apply_converges(rig: tuple[Rig, WatchedJournal], case: Case) -> None:
    run_case(*rig, case)


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
def test_one_more_apply_converges_whatever_went_wrong_at_any_call(rig: tuple[Rig, WatchedJournal]) -> None:
    path, journal = rig
    path.begin()
    assert path.apply() is None
    spots = spots_of(journal.entries())
    cases = [*work_cases(spots, TASKS), *(case for spot in spots for case in call_cases(spot, NODE))]
    counts, problems = Counts.none(), []
    for case in cases:
        try:
            outcome = counts.ended if run_case(path, journal, case) else counts.failed
        except AssertionError as err:
            problems.append(f"{case}: {err}")
            sys.stdout.write(f"FAILED {problems[-1]}\n")
        else:
            outcome[case.kind] += 1
    sys.stdout.write(f"\n{len(spots)} calls, {len(cases)} cases. {counts}\n")
    assert problems == []
    assert counts.ended.total() + counts.failed.total() == len(cases)


def test_a_failure_says_which_guest_which_call_and_what_proxmox_answered(
    rig: tuple[Rig, WatchedJournal],
) -> None:
    path, _ = rig
    path.begin()
    fault = {"status": 500, "reason": "the dog ate it", "method": "POST", "path": MAKES_VM.path}
    path.yard.running.add_fault("answer", **fault)
    error = path.apply()
    assert error is not None
    said = describe(error)
    for part in ("web", f"POST {MAKES_VM.path}", "the dog ate it"):
        assert part in said, said
    assert set(path.yard.guests()) == {501}
    assert path.in_state() == [501]
