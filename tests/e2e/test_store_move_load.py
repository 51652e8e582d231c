"""A store is moved while runs go on: from kind to kind, killed and repeated, and nothing is lost."""

from __future__ import annotations

import contextlib
import itertools
import random
from pathlib import Path

import pytest
from tests.support.path_runs import DNS
from tests.support.two_machines import KINDS, Machine, SharedStore, share_store, two_machines

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(1800)]

MOVED = "E-STORE-MOVED"


def kill_and_move(machine: Machine, origin: str, destination: str, chosen: random.Random, kills: int) -> int:
    """Move, killed some times at random and repeated; return how often it was killed."""
    killed = 0
    for _ in range(kills):
        with machine.start("store", "move", origin, destination) as moving:
            # It is killed at the end of the block if it still runs.
            killed += not moving.ends_within(chosen.uniform(0.05, 1.5))
    ended_again = machine.run("store", "move", origin, destination, "--json", status=None)
    assert ended_again.status == 0 or ended_again.document["error"]["code"] == MOVED, ended_again.stdout
    return killed


def test_a_move_under_load_through_every_kind_of_store_loses_nothing(tmp_path: Path) -> None:
    chosen = random.Random(7)
    with contextlib.ExitStack() as stack:
        stores: list[SharedStore] = [
            stack.enter_context(share_store(kind, tmp_path / kind)) for kind in KINDS
        ]
        first = stores[0]
        pair = stack.enter_context(two_machines(first, tmp_path, are_apart=False))
        pair.write_env("t", [DNS])
        a, b = pair.with_stores(*stores)
        a.run("apply", "t", "--no-verify")
        for number, (old, new) in enumerate(itertools.pairwise(stores)):
            pair.write_env("t", [{**DNS, "tags": [f"n{number}"]}])
            # A run is at work when the move begins: it is waited for.
            pair.slow_down(1.0)
            with b.start("apply", "t", "--no-verify") as running:
                kill_and_move(a, old.address, new.address, chosen, kills=2)
                status = running.wait()
            pair.slow_down(0.0)
            assert status == 0 or MOVED in running.output, running.output
            pair.choose(new)
            b.run("apply", "t", "--no-verify")
            assert sorted(b.guests()) == [501]
            assert a.json("plan", "t")["has_changes"] is False
            assert b.guests()[501]["config"]["tags"].find(f"n{number}") >= 0
        verbs = [run["verb"] for run in a.json("runs", "list", "-n", "100")["runs"]]
        assert verbs.count("apply") >= 1 + len(stores) - 1
        assert pair.creations() == {501: 1}


@pytest.mark.soak
def test_a_move_that_was_given_up_leaves_the_old_store_in_use(tmp_path: Path) -> None:
    with (
        share_store("postgresql", tmp_path) as old,
        share_store("s3", tmp_path) as new,
        two_machines(old, tmp_path, are_apart=False) as pair,
    ):
        pair.write_env("t", [DNS])
        a, b = pair.with_stores(new)
        a.run("apply", "t", "--no-verify")
        pair.slow_down(20.0)
        pair.write_env("t", [DNS, {**DNS, "name": "two", "vmid": 502}])
        with b.start("apply", "t", "--no-verify") as running:
            while not b.json("runs", "list", "--outcome", "running")["runs"]:
                pass
            error = a.json("store", "move", old.address, new.address, "--wait", "1", status=75)["error"]
            assert error["code"] == "E-STORE-IN-USE"
            assert b.json("plan", "t", status=65)["error"]["code"] == MOVED
            a.run("store", "move", old.address, "--abort")
            pair.slow_down(0.0)
            assert running.wait() == 0, running.output
        assert a.json("plan", "t")["has_changes"] is False
        a.run("store", "move", old.address, new.address)
        pair.choose(new)
        assert b.json("plan", "t")["has_changes"] is False
        assert sorted(b.guests()) == [501, 502]
