"""Two machines with one store: what one begins the other continues, whatever each has on its own disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.path_runs import DNS, WEB
from tests.support.two_machines import KINDS, Machine, TwoMachines, share_store, two_machines

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]

BOTH = ("--allow-destroy", "web,dns")
# Calls of an apply after which a guest is begun and not done.
HALF_MADE = 22


@pytest.fixture(params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TwoMachines]:
    with share_store(request.param, tmp_path) as store, two_machines(store, tmp_path) as made:
        made.write_env("t", [WEB, DNS])
        yield made


def meddle(pair: TwoMachines, vm_id: int, **options: Any) -> None:
    """Change a guest by hand, behind the back of everything."""
    world = pair.running.world

    def change() -> None:
        with world.store.transaction():
            guest = world.guests.get(vm_id)
            assert guest is not None
            world.store.put("guests", str(vm_id), {**guest, "config": {**guest["config"], **options}})

    pair.running.on_loop(change)


def test_an_env_lives_on_both_machines_in_turn(pair: TwoMachines, tmp_path: Path) -> None:
    a, b = pair.first, pair.second
    assert a.json("plan", "t")["has_changes"]
    a.forget()
    b.run("apply", "t")
    b.forget()
    assert a.json("plan", "t", "--detailed-exitcode")["has_changes"] is False
    assert a.json("drift", "t")["has_drift"] is False
    assert {guest["vm_id"] for guest in a.json("output", "t")["guests"].values()} == {500, 501}
    a.forget()
    assert a.json("inventory", "show", "env:t")["freshness"] == "current"

    pair.write_env("t", [{**WEB, "tags": ["one"]}, DNS])
    a.run("plan", "t", "--out", str(tmp_path / "saved plan"))
    a.forget()
    b.forget()
    assert b.json("apply", "t", "--plan", str(tmp_path / "saved plan"))["applied"]["change"] == 1
    assert a.json("plan", "t")["has_changes"] is False

    pair.write_env("t", [{**WEB, "tags": ["two"]}, DNS])
    saved = b.json("plan", "t", "--out", "store:")["plan"]
    b.forget()
    a.forget()
    assert [one["id"] for one in a.json("plans", "list")["plans"]] == [saved.removeprefix("store:")]
    assert a.json("apply", "t", "--plan", saved)["applied"]["change"] == 1
    assert b.json("plan", "t")["has_changes"] is False

    meddle(pair, 500, tags="surprise")
    a.forget()
    assert [one["subject"] for one in b.json("drift", "t")["managed"]] == ["VM web (500 on pve1)"]
    b.forget()
    a.run("apply", "t", "--no-verify")
    assert b.json("drift", "t")["has_drift"] is False

    b.forget()
    b.run("destroy", "t", *BOTH)
    a.forget()
    assert pair.first.guests() == {}
    assert a.in_state() == []
    assert pair.creations() == {500: 1, 501: 1}
    assert a.keys("journal/") == []


def settle(pair: TwoMachines, machine: Machine) -> None:
    """Apply once more, and find exactly the wanted guests: each once, in the state, nothing left to do."""
    machine.run("apply", "t", "--no-verify")
    assert sorted(machine.guests()) == machine.in_state() == [500, 501]
    assert {guest["status"] for guest in machine.guests().values()} == {"running"}
    assert machine.json("plan", "t")["has_changes"] is False
    assert machine.keys("journal/") == []
    assert pair.creations() == {500: 1, 501: 1}


def test_what_a_killed_run_left_half_made_is_completed_on_the_other_machine(pair: TwoMachines) -> None:
    assert pair.kill_at(pair.first, HALF_MADE, "apply", "t", "--no-verify")
    pair.first.forget()
    settle(pair, pair.second)
    first = pair.second.json("runs", "list", "--verb", "apply")["runs"][-1]
    assert first["machine"] == pair.host_of(pair.first)
    # It counts as lost once its heartbeat is overdue by the clock of the store.
    assert first["outcome"] in ("running", "lost")
