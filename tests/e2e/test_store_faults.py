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
from tests.support.two_machines import KINDS, SharedStore, TwoMachines, share_store, two_machines

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


@pytest.fixture(params=KINDS)
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


@pytest.mark.parametrize("nth", [16, 30])
def test_a_store_that_is_lost_during_an_apply_costs_nothing_that_was_made(gated: Gated, nth: int) -> None:
    pair = gated.pair
    a, b = pair.first, pair.second
    error = shut_at(gated, nth, "apply", "t", "--no-verify")
    print(nth, error["code"], error["status"], error["detail"], error["remedy"])
    gated.gate.open()
    left = list(a.base.glob("work/*/errored.tfstate"))
    print(left, sorted(a.guests()), a.keys("journal/"))
    a.run("apply", "t", "--no-verify")
    assert sorted(a.guests()) == a.in_state() == [500, 501]
    assert pair.creations() == {500: 1, 501: 1}
    assert b.json("plan", "t")["has_changes"] is False
