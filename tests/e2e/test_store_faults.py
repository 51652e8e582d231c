"""A store that cannot be used, is not ours, or goes away during a run: named, and nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.path_runs import DNS, WEB
from tests.support.tcp_gate import TcpGate, run_gate
from tests.support.two_machines import KINDS, Machine, SharedStore, TwoMachines, share_store, two_machines

from pvelab.server.journal import JournalEntry

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]

UNREACHABLE, REFUSED, BUSY = 69, 65, 75


@dataclass(frozen=True)
class Gated:
    """Two machines whose way to the store can be broken."""

    pair: TwoMachines
    gate: TcpGate


def behind(store: SharedStore, port: int) -> SharedStore:
    """Return a store as it is reached by another port of this machine."""
    return replace(store, address=re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", store.address))


def port_of(store: SharedStore) -> int:
    found = re.search(r"127\.0\.0\.1:(\d+)", store.address)
    assert found is not None
    return int(found[1])


# The clients of a database and of a service wait for half a minute at each step; that of a bucket does not.
SLOW = [pytest.param(kind, marks=pytest.mark.soak) for kind in KINDS if kind != "s3"]


@pytest.fixture(params=["s3", *SLOW])
def gated(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Gated]:
    with (
        share_store(request.param, tmp_path) as store,
        run_gate(port_of(store)) as gate,
        two_machines(behind(store, gate.port), tmp_path) as pair,
    ):
        pair.write_env("t", [WEB, DNS])
        yield Gated(pair, gate)


def shut_at(gated: Gated, nth: int, *arguments: str) -> dict[str, Any]:
    """Run on the first machine, break the way to the store at the nth call of the lab; return the error."""
    first = gated.pair.journal.count

    def saw(entry: JournalEntry) -> None:
        if entry.number == first + nth:
            gated.gate.shut()

    gated.pair.journal.on_call = saw
    try:
        ended = gated.pair.first.run(*arguments, "--json", status=None)
    finally:
        gated.pair.journal.on_call = None
    assert gated.gate.is_shut, "it never came so far"
    return dict(ended.document["error"], status=ended.status)


def test_a_store_that_cannot_be_reached_is_named_before_anything_is_done(gated: Gated) -> None:
    gated.gate.shut()
    for verb in (("plan", "t"), ("apply", "t"), ("output", "t"), ("runs", "list"), ("store", "show")):
        error = gated.pair.first.json(*verb, status=UNREACHABLE)["error"]
        assert "127.0.0.1" in f"{error['detail']} {error['remedy']}", (verb, error)
    assert gated.pair.first.guests() == {}
    gated.gate.open()
    gated.pair.second.run("apply", "t", "--no-verify")
    assert sorted(gated.pair.second.guests()) == [500, 501]


def names_unstored(machine: Machine, *arguments: str) -> bool:
    """Tell whether a verb names the state that waits on this machine, and its file."""
    ended = machine.run(*arguments, status=None)
    said = ended.stdout + ended.stderr
    return "errored.tfstate holds the state env/t/lab" in said.replace("\n", " ")


def lose_store_after_work(gated: Gated) -> None:
    """Apply, and lose the store when the guests are made and the state is not stored yet."""
    pair = gated.pair
    first = pair.journal.count

    def saw(entry: JournalEntry) -> None:
        is_start = entry.method == "POST" and entry.path.endswith("/status/start")
        if is_start and entry.number > first and len(pair.first.running.world.guests.all()) == 2:
            gated.gate.shut()

    pair.journal.on_call = saw
    try:
        ended = pair.first.run("apply", "t", "--no-verify", "--json", status=None)
    finally:
        pair.journal.on_call = None
    assert gated.gate.is_shut, "it never came so far"
    error = ended.document["error"]
    assert ended.status in (1, UNREACHABLE), error
    assert error["remedy"], error


def test_a_state_that_could_not_be_stored_is_named_by_every_verb_and_stored_by_the_next_run(
    gated: Gated,
) -> None:
    pair = gated.pair
    a, b = pair.first, pair.second
    lose_store_after_work(gated)
    left = list(a.base.glob("work/*/errored.tfstate"))
    assert len(left) == 1
    assert left[0].stat().st_mode & 0o077 == 0
    gated.gate.open()
    for verb in (("output", "t"), ("runs", "list"), ("state", "list"), ("plans", "list")):
        assert names_unstored(a, *verb), verb
    assert not names_unstored(b, "runs", "list")
    assert names_unstored(a, "plan", "dev")
    ended = a.run("apply", "t", "--no-verify")
    assert "is stored now" in ended.stderr
    assert not names_unstored(a, "runs", "list")
    assert sorted(a.guests()) == a.in_state() == [500, 501]
    assert pair.creations() == {500: 1, 501: 1}
    assert a.keys("journal/") == []
    assert b.json("plan", "t")["has_changes"] is False


@pytest.mark.soak
def test_the_other_machine_continues_from_the_journal_when_the_first_could_not_store_its_state(
    gated: Gated,
) -> None:
    pair = gated.pair
    a, b = pair.first, pair.second
    shut_at(gated, 22, "apply", "t", "--no-verify")
    gated.gate.open()
    b.run("apply", "t", "--no-verify")
    assert sorted(b.guests()) == b.in_state() == [500, 501]
    assert pair.creations() == {500: 1, 501: 1}
    if list(a.base.glob("work/*/errored.tfstate")):
        error = a.json("apply", "t", status=None).get("error")
        assert error is None or error["code"] == "E-STATE-ERRORED"
