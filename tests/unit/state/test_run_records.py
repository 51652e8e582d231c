"""Records of runs: the newest first, quickly among many, masked, and honest about runs that are gone."""

from __future__ import annotations

import dataclasses
import random
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.state_stores import Store, store

from stackyard.clients.objects import ABSENT, ANYTHING, ListedObject, MemoryObjects
from stackyard.clients.objects.clock import read_store_clock
from stackyard.clients.objects.holders import describe_process
from stackyard.clients.objects.leases import acquire
from stackyard.state.run_records import (
    Outcome,
    RecordedRun,
    RunRecords,
    RunUnknownError,
    events_prefix,
)
from stackyard.state.runs import hold_run

__all__ = ["store"]

NOW = 1_800_000_000.0
DAY_S = 86_400.0
ELSEWHERE = {**describe_process(), "host": "another"}


def recorded(
    number: int, *, verb: str = "plan", state: str = "env/a/lab", outcome: Outcome = Outcome.DONE
) -> RecordedRun:
    return RecordedRun(
        id=uuid.UUID(int=random.Random(number).getrandbits(128)).hex[:12],
        verb=verb,
        target="env:a",
        state=state,
        by="me",
        machine="alpha",
        version="1",
        started_at=NOW + number,
        outcome=outcome,
        finished_at=NOW + number + 1,
    )


class Shifted(MemoryObjects):
    """A store whose clock differs from ours."""

    def __init__(self, ahead_s: float) -> None:
        super().__init__()
        self.ahead_s = ahead_s

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[ListedObject, ...]:
        found = super().list(prefix, after=after, limit=limit)
        return tuple(dataclasses.replace(one, modified_at=one.modified_at + self.ahead_s) for one in found)


def test_the_newest_come_first_and_are_chosen_by_state_verb_and_outcome() -> None:
    records = RunRecords(MemoryObjects())
    for number in range(30):
        records.write(
            recorded(
                number,
                verb="apply" if number % 2 else "plan",
                state="env/b/lab" if number % 3 == 0 else "env/a/lab",
                outcome=Outcome.FAILED if number % 5 == 0 else Outcome.DONE,
            )
        )
    assert [int(one.started_at - NOW) for one in records.list()] == list(range(29, 9, -1))
    applied = records.list(verb="apply", state="env/b")
    assert [int(one.started_at - NOW) for one in applied] == [27, 21, 15, 9, 3]
    failed = records.list(outcome=Outcome.FAILED, limit=3)
    assert [int(one.started_at - NOW) for one in failed] == [25, 20, 15]
    assert records.list(state="env/b/la") == ()


def test_a_run_is_found_by_the_start_of_its_id_if_only_one_has_it() -> None:
    records = RunRecords(MemoryObjects())
    one = dataclasses.replace(recorded(1), id="aaaa00000000")
    two = dataclasses.replace(recorded(2), id="aaab00000000")
    for run in (one, two):
        records.write(run)
    assert records.find("aaaa") == one
    assert records.find("last") == two
    for which in ("aaa", "b", ""):
        with pytest.raises(RunUnknownError):
            records.find(which)


def test_a_secret_is_masked_before_it_is_stored() -> None:
    objects = MemoryObjects()
    run = dataclasses.replace(recorded(1), error={"detail": "the password hunter2 is wrong"})
    RunRecords(objects).write(run, lambda text: text.replace("hunter2", "***"))
    stored = objects.get(run.key)
    assert stored is not None
    assert b"hunter2" not in stored.data


async def test_a_run_whose_lease_is_gone_or_dead_is_lost_and_one_that_lives_runs() -> None:
    objects = MemoryObjects()
    records = RunRecords(objects)
    alive, gone = (recorded(number, outcome=Outcome.RUNNING) for number in (1, 2))
    for run in (alive, gone):
        records.write(run)
    async with hold_run(objects, alive.id, owner="me@here"):
        assert [run.outcome for run in records.list()] == [Outcome.LOST, Outcome.RUNNING]
    assert [run.outcome for run in records.list()] == [Outcome.LOST, Outcome.LOST]


@pytest.mark.parametrize("ahead_s", [-DAY_S, 0.0, DAY_S])
@pytest.mark.parametrize(("silent_s", "outcome"), [(5.0, Outcome.RUNNING), (90.0, Outcome.LOST)])
def test_the_fate_of_a_run_on_another_machine_does_not_depend_on_our_clock(
    monkeypatch: pytest.MonkeyPatch, ahead_s: float, silent_s: float, outcome: Outcome
) -> None:
    objects = Shifted(ahead_s)
    run = recorded(1, outcome=Outcome.RUNNING)
    RunRecords(objects).write(run)
    real = time.time
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: real() - silent_s)
        assert acquire(objects, f"runs/{run.id}", owner="you@there", promise_s=30.0, facts=ELSEWHERE)
    assert RunRecords(objects).find(run.id).outcome is outcome


def test_history_is_kept_on_the_word_of_the_store_and_not_of_our_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    objects = MemoryObjects()
    old, new = (
        dataclasses.replace(recorded(number), started_at=time.time() - days * DAY_S)
        for number, days in ((1, 100), (2, 10))
    )
    records = RunRecords(objects)
    for run in (old, new):
        records.write(run)
        records.add_events(run.id, 0, [b'{"type": "x"}'])
    ahead = Shifted(0.0)
    monkeypatch.setattr("stackyard.state.run_records.read_store_clock", lambda _: time.time() - 300 * DAY_S)
    assert RunRecords(objects).prune(90) == 0
    monkeypatch.undo()
    assert RunRecords(objects).prune(90) == 1
    assert [run.id for run in records.list()] == [new.id]
    assert objects.list(events_prefix(old.id)) == ()
    assert list(records.events(new.id)) != []
    assert abs(read_store_clock(ahead) - time.time()) < 5
    assert ahead.list("") == ()


async def test_a_run_that_ends_removes_leases_that_are_old_by_the_clock_of_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    objects = MemoryObjects()
    acquire(objects, "runs/of-another", owner="you@there", promise_s=30.0, facts=ELSEWHERE)
    async with hold_run(objects, "0123456789ab", owner="me@here"):
        real = time.time
        # Our clock jumps ahead by a month; the store's does not.
        monkeypatch.setattr(time, "time", lambda: real() + 30 * DAY_S)
    assert [one.key for one in objects.list("runs/")] == ["runs/of-another"]


def test_events_come_back_in_order_and_only_the_new_ones_on_request() -> None:
    records = RunRecords(MemoryObjects())
    for number in range(3):
        records.add_events("aa", number, [b'{"seq": %d}' % (2 * number + part) for part in range(2)])
    seen = list(records.events("aa"))
    assert [event["seq"] for _, event in seen] == list(range(6))
    assert [event["seq"] for _, event in records.events("aa", after=seen[3][0])] == [4, 5]


def test_a_request_to_stop_names_who_asked_and_is_forgotten_with_the_run() -> None:
    objects = MemoryObjects()
    records, run = RunRecords(objects), recorded(1)
    assert records.read_stop_request(run.id) is None
    records.ask_to_stop(run, "anna")
    found = records.read_stop_request(run.id)
    assert found is not None
    assert found.by == "anna"
    records.forget(run.id)
    assert records.read_stop_request(run.id) is None
    objects.put(f"run-control/{run.id}", b"nonsense", expect=ANYTHING)
    assert records.read_stop_request(run.id) is not None


@pytest.mark.parametrize("data", [b"", b"{}", b'{"format": 1, "run": []}', b'{"format": 99, "run": {}}'])
def test_a_damaged_record_is_named(data: bytes) -> None:
    objects, run = MemoryObjects(), recorded(1)
    objects.put(run.key, data, expect=ANYTHING)
    RunRecords(objects).write(recorded(2))
    found = {run.id: run for run in RunRecords(objects).list()}
    assert len(found) == 2, "it hides no other"
    assert found[run.id].outcome is Outcome.UNREADABLE
    assert "records/" in str(found[run.id].error)


@pytest.mark.parametrize(
    "store",
    # To write so many objects to a bucket takes half a minute.
    ["sqlite", "postgresql", "http-sqlite", pytest.param("s3", marks=pytest.mark.soak)],
    indirect=True,
)
def test_the_newest_twenty_of_ten_thousand_are_listed_at_once(store: Store) -> None:
    objects = store.open()
    records = RunRecords(objects)
    kept = MemoryObjects()
    for number in range(10_000):
        RunRecords(kept).write(recorded(number))
    written = {one.key: found.data for one in all_of(kept) if (found := kept.get(one.key)) is not None}
    # Many in one write, where the store has that: only the list is measured.
    keys = sorted(written)
    parts = [keys[start : start + 100] for start in range(0, len(keys), 100)]
    with ThreadPoolExecutor(16) as pool:
        list(
            pool.map(
                lambda part: objects.put(
                    part[0], written[part[0]], expect=ABSENT, before={key: written[key] for key in part[1:]}
                ),
                parts,
            )
        )
    took = []
    for _ in range(5):
        began = time.perf_counter()
        assert [int(one.started_at - NOW) for one in records.list()] == list(range(9999, 9979, -1))
        took.append(time.perf_counter() - began)
    sys.stdout.write(f"{store.kind}: 20 of 10,000 in {min(took) * 1000:.0f} ms\n")
    # The best of five, on a machine that runs other tests.
    assert min(took) < 0.3


def all_of(objects: MemoryObjects) -> Iterator[ListedObject]:
    after = ""
    while listed := objects.list("", after=after):
        yield from listed
        after = listed[-1].key
