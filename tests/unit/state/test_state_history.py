"""Versions and the audit log: found again among thousands, dropped by rule, and never changed unnoticed."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import uuid
from collections.abc import Mapping

import orjson
import pytest
from tests.support.state_client import state_body

from stackyard.clients.objects import ANYTHING, Expect, MemoryObjects, StoreDamagedError, Tag
from stackyard.state import (
    Access,
    Actor,
    LockInfo,
    Policy,
    Right,
    StateLockedError,
    StateService,
    VersionKind,
    VersionMissingError,
    make_lock_info,
)
from stackyard.state.maintenance import maintain
from stackyard.state.runs import hold_run

ME = Actor(principal="tests", address="10.0.0.1")
DAY_S = 86_400.0


class Clock:
    """A time of day that a test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def write(service: StateService, *serials: int) -> None:
    for serial in serials:
        lock = make_lock_info(LockInfo(id=str(uuid.uuid4()), who="me"))
        service.locks.lock("a", lock, ME)
        service.contents.write("a", state_body(serial), ME, lock_id=lock.id)
        service.locks.unlock("a", lock.id, ME)


def test_every_version_is_found_by_its_number_however_many_there_are() -> None:
    service = StateService(MemoryObjects())
    write(service, *range(1, 101))
    assert [version.number for version in service.versions.newest_first("a")] == list(range(100, 0, -1))
    for number in (1, 32, 33, 64, 65, 96, 97, 100):
        version = service.versions.get("a", number)
        assert (version.serial, service.versions.read("a", version)) == (number, state_body(number))
    for number in (0, 101, -1):
        with pytest.raises(VersionMissingError):
            service.versions.get("a", number)


def test_a_version_says_who_wrote_it_when_and_under_which_lock() -> None:
    clock = Clock()
    service = StateService(MemoryObjects(), clock=clock)
    write(service, 1)
    version = service.versions.get("a", 1)
    assert (version.principal, version.address, version.at) == ("tests", "10.0.0.1", clock.now)
    assert (version.epoch, version.kind, version.size) == (1, VersionKind.WRITE, len(state_body(1)))
    assert (version.resources, version.instances, version.engine_version) == (1, 1, "1.12.6")


def test_old_versions_are_dropped_by_number_and_age_and_the_current_one_never() -> None:
    clock, objects = Clock(), MemoryObjects()
    service = StateService(objects, Policy(keep_versions=10, keep_versions_s=5 * DAY_S), clock=clock)
    write(service, *range(1, 51))
    assert service.versions.drop_old("a", ME) == 0
    clock.now += 10 * DAY_S
    write(service, *range(51, 56))
    assert service.versions.drop_old("a", ME) == 45
    kept = list(service.versions.newest_first("a"))
    assert [version.number for version in kept] == list(range(55, 45, -1))
    with pytest.raises(VersionMissingError):
        service.versions.get("a", 45)
    assert service.versions.sweep("a", older_than_s=-1.0) == 45
    assert len(objects.list("data/a/bodies/")) == 10
    # The first segment held nothing but dropped versions.
    assert objects.list("data/a/versions/") == ()
    assert all(service.versions.read("a", version) for version in kept)
    assert service.audit.verify("a").is_whole
    clock.now += 100 * DAY_S
    assert service.versions.drop_old("a", ME) == 0


def test_what_a_killed_writer_left_is_swept_and_what_is_being_written_is_not() -> None:
    objects = MemoryObjects()
    service = StateService(objects)
    write(service, 1, 2)
    objects.put("data/a/bodies/orphan-1", b"x", expect=ANYTHING)
    assert service.versions.sweep("a") == 0
    assert service.versions.sweep("a", older_than_s=-1.0) == 1
    assert maintain(service, "a") == 0
    assert len(list(service.versions.newest_first("a"))) == 2


def test_only_so_many_refused_writes_are_kept() -> None:
    service = StateService(MemoryObjects(), Policy(keep_quarantined=3))
    for serial in range(1, 6):
        with pytest.raises(Exception, match="not held"):
            service.contents.write("a", state_body(serial), ME, lock_id="lost")
    assert service.contents.drop_old_quarantined("a") == 2
    assert [one.serial for one in service.contents.list_quarantined("a")] == [3, 4, 5]
    with pytest.raises(VersionMissingError):
        service.contents.read_quarantined("a", "none")


def test_going_back_gives_a_new_version_above_all_others_and_needs_the_lock_to_be_free() -> None:
    service = StateService(MemoryObjects())
    write(service, 1, 2, 3)
    service.locks.lock("a", make_lock_info(LockInfo(id="x", who="me")), ME)
    with pytest.raises(StateLockedError):
        service.versions.roll_back("a", 1, ME)
    service.locks.unlock("a", "x", ME)
    version = service.versions.roll_back("a", 1, ME, note="oops")
    assert (version.number, version.serial, version.kind) == (4, 4, VersionKind.ROLLBACK)
    assert version.note == "Version 1 again. oops"
    assert service.versions.read("a", version) == state_body(1).replace(b'"serial": 1', b'"serial": 4')


def test_the_audit_log_shows_every_change_of_any_entry() -> None:
    objects = MemoryObjects()
    service = StateService(objects)
    write(service, *range(1, 31))
    verdict = service.audit.verify("a")
    assert (verdict.entries, verdict.is_whole) == (90, True)
    assert [entry.seq for entry in service.audit.entries("a", after=60)] == list(range(61, 91))
    head = objects.get("heads/a")
    assert head is not None
    for change in ({"detail": "nothing happened"}, {"principal": "somebody"}, {"hash": "0" * 64}):
        document = orjson.loads(head.data)
        document["head"]["audit"]["tail"][3].update(change)
        objects.put("heads/a", orjson.dumps(document), expect=ANYTHING)
        assert "was changed" in service.audit.verify("a").problem
    document = orjson.loads(head.data)
    del document["head"]["audit"]["tail"][-1]
    objects.put("heads/a", orjson.dumps(document), expect=ANYTHING)
    assert "should end with entry 90" in service.audit.verify("a").problem
    objects.put("heads/a", head.data, expect=ANYTHING)
    objects.delete("data/a/audit/00000000")
    assert "missing" in service.audit.verify("a").problem


def test_the_service_has_an_audit_log_of_its_own() -> None:
    service = StateService(MemoryObjects())
    for number in range(40):
        service.principals.add(f"p{number}", [Access(rights=(Right.READ,))], ME)
    verdict = service.audit.verify("")
    assert (verdict.entries, verdict.is_whole) == (40, True)
    assert [entry.detail for entry in service.audit.entries("", after=39)] == ["p39: read on everything"]


def test_a_damaged_content_is_never_served() -> None:
    objects = MemoryObjects()
    service = StateService(objects)
    write(service, 1)
    (entry,) = objects.list("data/a/bodies/")
    stored = objects.get(entry.key)
    assert stored is not None
    other = StateService(MemoryObjects())
    write(other, 2)
    (foreign,) = other.objects.list("data/a/bodies/")
    swapped = other.objects.get(foreign.key)
    assert swapped is not None
    for data in (b"", stored.data[:-3], stored.data[:20] + b"\xff" + stored.data[21:], swapped.data):
        objects.put(entry.key, data, expect=ANYTHING)
        with pytest.raises(StoreDamagedError):
            service.contents.read("a")
    objects.delete(entry.key)
    with pytest.raises(StoreDamagedError):
        service.contents.read("a")
    objects.put("heads/a", b"{", expect=ANYTHING)
    with pytest.raises(StoreDamagedError):
        service.contents.read("a")


def test_a_head_of_a_newer_stackyard_is_left_alone() -> None:
    objects = MemoryObjects()
    service = StateService(objects)
    write(service, 1)
    stored = objects.get("heads/a")
    assert stored is not None
    objects.put("heads/a", stored.data.replace(b'"format":1', b'"format":2', 1), expect=ANYTHING)
    with pytest.raises(StoreDamagedError, match="newer stackyard"):
        service.head("a")


def test_locks_are_reported_with_age_holder_and_whether_somebody_should_look() -> None:
    clock = Clock()
    service = StateService(MemoryObjects(), Policy(stale_after_s=100.0), clock=clock)
    held = service.locks.lock("prod/a", make_lock_info(LockInfo(id="x", who="me@here")), ME)
    service.register("prod/b", ME)
    service.locks.freeze("prod/b", ME, reason="holidays")
    service.register("dev/c", ME)
    clock.now += 90
    service.contents.write("prod/a", state_body(1), ME, lock_id="x")
    clock.now += 90
    first, second = service.locks.report("prod")
    assert (first.name, first.age_s, first.is_stale) == ("prod/a", 180.0, False)
    assert first.held == dataclasses.replace(held, last_write_at=clock.now - 90)
    assert (second.name, second.held, second.freeze and second.freeze.reason) == ("prod/b", None, "holidays")
    clock.now += 20
    assert [report.is_stale for report in service.locks.report("prod/a")] == [True]
    assert list(service.locks.report("dev")) == []


def test_the_lock_of_a_run_that_ended_without_unlocking_is_taken_over() -> None:
    service = StateService(MemoryObjects())

    async def run() -> None:
        async with hold_run(service.objects, "one", owner="me") as lease:
            service.locks.lock("a", make_lock_info(LockInfo(id="x", who="me")), ME, lease=lease)
            with pytest.raises(StateLockedError):
                service.locks.lock("a", make_lock_info(LockInfo(id="y", who="them")), ME)

    asyncio.run(run())
    assert service.objects.list("runs/") == ()
    assert service.locks.lock("a", make_lock_info(LockInfo(id="y", who="them")), ME).epoch == 2


class Slow(MemoryObjects):
    """A store in which every write but the first takes until it is let through; it notes what is done."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []
        self.begun, self.let = threading.Event(), threading.Event()

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        if self.done:
            self.begun.set()
            self.let.wait()
        tag = super().put(key, data, expect=expect, before=before)
        self.done.append("put")
        return tag

    def delete(self, key: str) -> None:
        super().delete(key)
        self.done.append("delete")


def test_a_run_that_ends_while_it_gives_a_sign_of_life_is_removed_behind_that() -> None:
    objects = Slow()

    async def run() -> None:
        async with hold_run(objects, "one", owner="me", promise_s=0.03, on_loss=lambda reason: None):
            await asyncio.to_thread(objects.begun.wait)
            asyncio.get_running_loop().call_later(0.1, objects.let.set)

    asyncio.run(run())
    assert objects.done == ["put", "put", "delete"]
    assert objects.list("runs/") == ()
