"""Two machines whose runs are killed again and again, each in turn: the other always completes the work."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import pytest
from tests.support.lab_consistency import problems_in
from tests.support.path_runs import DNS, WEB
from tests.support.two_machines import KINDS, Machine, TwoMachines, share_store, two_machines

pytestmark = [pytest.mark.tofu, pytest.mark.soak, pytest.mark.timeout(6 * 3600)]

KILLS = int(os.environ.get("STACKYARD_TEST_KILLS", "200"))
# An apply of both guests makes about so many calls, and a destroy.
CALLS = {"apply": 44, "destroy": 22}
VERBS = {
    "apply": ("apply", "t", "--no-verify"),
    "destroy": ("destroy", "t", "--allow-destroy", "web,dns"),
}


def check(pair: TwoMachines, machine: Machine, wanted: list[int]) -> None:
    """Find exactly the wanted guests: each once, in the state, running, and nothing left in the journal."""
    assert sorted(machine.guests()) == machine.in_state() == wanted
    assert {guest["status"] for guest in machine.guests().values()} <= {"running"}
    assert machine.keys("journal/") == []
    assert pair.running.on_loop(lambda: problems_in(pair.running.world)) == []
    assert all(count <= 1 for count in created_since(pair).values())


def created_since(pair: TwoMachines) -> dict[int, int]:
    """Return how often each guest was created beyond how often it was destroyed."""
    made = pair.creations()
    gone = sum(1 for entry in pair.running.world.journal.entries() if is_removal(entry.result or ""))
    return {vm_id: max(0, count - gone) for vm_id, count in made.items()}


def is_removal(upid: str) -> bool:
    parts = upid.split(":")
    return len(parts) > 7 and parts[5] in ("qmdestroy", "vzdestroy")


@pytest.mark.parametrize("kind", KINDS)
def test_work_that_is_killed_on_one_machine_is_completed_on_the_other(tmp_path: Path, kind: str) -> None:
    seed = int(os.environ.get("STACKYARD_TEST_SEED") or random.SystemRandom().randrange(2**32))
    chosen = random.Random(seed)
    # So many for each kind of store.
    rounds, killed, late = KILLS // len(KINDS) + 1, 0, 0
    with share_store(kind, tmp_path) as store, two_machines(store, tmp_path, are_apart=False) as pair:
        pair.write_env("t", [WEB, DNS])
        began = time.monotonic()
        while killed < rounds:
            verb = "destroy" if pair.first.in_state() else "apply"
            victim, survivor = chosen.sample([pair.first, pair.second], 2)
            nth = chosen.randint(1, CALLS[verb])
            if pair.kill_at(victim, nth, *VERBS[verb]):
                killed += 1
            else:
                late += 1
            if chosen.random() < 0.5:
                victim.forget()
            survivor.run(*VERBS[verb])
            wanted = [500, 501] if verb == "apply" else []
            assert sorted(survivor.guests()) == wanted, (seed, verb, nth)
            check(pair, survivor, wanted)
        history = survivor.json("state", "versions", "env/t/lab", status=None)
        lost = survivor.json("runs", "list", "--outcome", "lost", "-n", "1000")["runs"]
        took = time.monotonic() - began
    sys.stdout.write(
        f"\n{kind}: {killed} killed, {late} ended before, {len(lost)} on record as lost,"
        f" {len(history.get('versions', ()))} versions kept, {took:.0f} s, seed {seed}\n"
    )
    assert len(lost) <= killed
