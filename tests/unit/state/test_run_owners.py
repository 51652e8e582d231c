"""Principals that are limited to a prefix: they run stackyard, and leave the runs of others alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from tests.support.object_service import ObjectService, object_service

from stackyard.clients.objects import (
    ABSENT,
    ANYTHING,
    ConflictError,
    MemoryObjects,
    Objects,
    StoreReadOnlyError,
    acquire,
    read_lease,
)
from stackyard.clients.objects.clock import read_store_clock
from stackyard.sources.store.identity import change_identity, read_identity
from stackyard.state import Access, Actor, Right, StateService
from stackyard.state.record_keys import parse_record_key
from stackyard.state.run_records import Outcome, RecordedRun, RunRecords
from stackyard.state.runs import RunWatch, hold_run

ME = Actor(principal="tests")
RUN = "0123456789ab"
DAY_S = 86_400.0


PREFIXES = {"dev": "env/dev", "dev2": "env/dev/lab", "net": "env/dev/net", "prod": "env/prod"}


class Site:
    """A service with a principal for each of some prefixes."""

    def __init__(self, service: ObjectService) -> None:
        self.objects = service.service.objects
        self._service = service
        # Before the first request: the service reads them again only from time to time.
        self._tokens = {
            name: service.service.principals.add(name, [Access(prefix=prefix, rights=(Right.STORE,))], ME)[1]
            for name, prefix in PREFIXES.items()
        }

    def open(self, name: str) -> Objects:
        """Open the store as one of them, or as an administrator."""
        return self._service.open(*([self._tokens[name]] if name in self._tokens else []))


@pytest.fixture
def site() -> Iterator[Site]:
    with object_service(MemoryObjects()) as made:
        yield Site(made)


def recorded(run_id: str, state: str, *, started_at: float = 1_800_000_000.0) -> RecordedRun:
    return RecordedRun(
        id=run_id,
        verb="apply",
        target=state,
        state=state,
        by="me",
        machine="alpha",
        version="1",
        started_at=started_at,
    )


def begin(objects: Objects, run_id: str = RUN, state: str = "env/dev/lab") -> RecordedRun:
    """Begin a run, as a process does that never ends it."""
    assert acquire(objects, f"runs/{run_id}", owner="me", promise_s=30.0)
    run = recorded(run_id, state)
    RunRecords(objects).write(run)
    RunRecords(objects).add_events(run_id, 0, [b'{"type": "x"}'])
    return run


async def test_a_run_with_a_token_for_one_prefix_leaves_everything_that_it_needs(
    site: Site,
) -> None:
    inner = site.objects
    change_identity(inner, lambda now: now)
    objects = site.open("dev")
    assert read_identity(objects) == read_identity(inner)
    async with hold_run(objects, RUN, owner="me@here", promise_s=0.3):
        records, run = RunRecords(objects), recorded(RUN, "env/dev/lab")
        records.write(run)
        locks = StateService(objects).locks
        locks.lock("env/dev/lab", b'{"ID": "x", "Who": "me"}', ME, lease=f"runs/{RUN}")
        for number in range(2):
            records.add_events(RUN, number, [b'{"type": "x"}'])
        for key in ("operator-locks/env!dev!lab", "inner/env!dev!lab/pve1/heads/x", "ssh/known_hosts"):
            objects.put(key, b"", expect=ABSENT)
        assert read_store_clock(objects) > 0
        assert records.find("last").outcome is Outcome.RUNNING
        locks.unlock("env/dev/lab", "x", ME)
        records.forget(RUN)
    assert inner.list("runs/") == ()
    assert [event["type"] for _, event in records.events(RUN)] == ["x", "x"]
    assert records.prune(1, now=1_800_000_000.0 + 2 * DAY_S) == 1
    for prefix in ("records/", "run-events/", "run-owners/"):
        assert inner.list(prefix) == ()


@pytest.mark.parametrize("by", ["prod", "admin", "directly"])
def test_the_run_of_another_is_read_and_not_touched(site: Site, by: str) -> None:
    inner = site.objects
    begin(inner if by == "directly" else site.open(by), state="env/prod/lab")
    before = {one.key: inner.get(one.key) for one in inner.list("") if not one.key.startswith("system/")}
    ours = site.open("dev")
    lease = read_lease(ours, f"runs/{RUN}")
    assert lease is not None
    for key in (f"runs/{RUN}", f"run-events/{RUN}/00000000", f"run-control/{RUN}", f"run-events/{RUN}/1"):
        for expect in (ANYTHING, lease.tag):
            with pytest.raises(StoreReadOnlyError, match=f"dev did not start the run {RUN}"):
                ours.put(key, b"forged", expect=expect)
        with pytest.raises(StoreReadOnlyError, match=f"dev did not start the run {RUN}"):
            ours.put("heads/env!dev", b"", expect=ANYTHING, before={key: b"forged"})
    for key in (f"runs/{RUN}", f"run-events/{RUN}/00000000"):
        with pytest.raises(StoreReadOnlyError, match=f"dev did not start the run {RUN}"):
            ours.delete(key)
    with pytest.raises(StoreReadOnlyError):
        RunRecords(ours).write(recorded(RUN, "env/dev/lab", started_at=1.0))
    with pytest.raises((StoreReadOnlyError, ConflictError)):
        ours.put(f"runs/{RUN}", b"forged", expect=ABSENT)
    after = {one.key: inner.get(one.key) for one in inner.list("") if not one.key.startswith("system/")}
    assert after == before
    assert RunWatch(ours).explain_death(f"runs/{RUN}") is None


@pytest.mark.parametrize("key", [f"runs/{RUN}/below", f"runs/{RUN}"])
def test_who_fails_to_create_a_lease_is_not_its_owner(site: Site, key: str) -> None:
    inner, ours = site.objects, site.open("dev")
    assert acquire(inner, f"runs/{RUN}", owner="prod", promise_s=30.0)
    with contextlib.suppress(ConflictError):
        ours.put(key, b"", expect=ABSENT)
    with pytest.raises(StoreReadOnlyError):
        ours.delete(f"runs/{RUN}")
    with pytest.raises(StoreReadOnlyError):
        ours.put(f"run-events/{RUN}/1", b"", expect=ANYTHING)


def test_the_id_of_a_run_that_ended_is_not_used_again_by_another(site: Site) -> None:
    inner, ours = site.objects, site.open("dev")
    begin(inner, state="env/prod/lab")
    inner.delete(f"runs/{RUN}")
    with pytest.raises(StoreReadOnlyError):
        ours.put(f"runs/{RUN}", b"", expect=ABSENT)


def test_who_has_the_state_of_a_run_stops_it_and_removes_it_when_it_is_old(site: Site) -> None:
    inner = site.objects
    run = begin(site.open("dev"))
    two, other = site.open("dev2"), site.open("net")
    with pytest.raises(StoreReadOnlyError):
        RunRecords(other).ask_to_stop(run, "other")
    RunRecords(two).ask_to_stop(run, "two")
    found = RunRecords(inner).read_stop_request(RUN)
    assert found is not None
    assert found.by == "two"
    with pytest.raises(StoreReadOnlyError):
        two.delete(f"runs/{RUN}")
    inner.delete(f"runs/{RUN}")
    later = 1_800_000_000.0 + 2 * DAY_S
    assert RunRecords(other).prune(1, now=later) == 0
    assert RunRecords(two).prune(1, now=later) == 1
    assert [one.key for one in inner.list("") if RUN in one.key] == []


def test_what_is_of_no_owner_does_not_keep_a_limited_principal_from_removing_the_rest(
    site: Site,
) -> None:
    inner, ours = site.objects, site.open("dev")
    begin(inner, "aaaaaaaaaaaa")
    begin(ours, "bbbbbbbbbbbb")
    ours.delete("runs/bbbbbbbbbbbb")
    assert RunRecords(ours).prune(1, now=1_800_000_000.0 + 2 * DAY_S) == 1
    left = [parse_record_key(one.key) for one in inner.list("records/")]
    assert [one.id for one in left if one] == ["aaaaaaaaaaaa"]


def test_a_lease_that_is_removed_twice_is_no_error(site: Site) -> None:
    ours = site.open("dev")
    assert acquire(ours, f"runs/{RUN}", owner="me", promise_s=30.0)
    for _ in range(2):
        ours.delete(f"runs/{RUN}")
    assert site.objects.list("run-owners/") == ()
