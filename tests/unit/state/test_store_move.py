"""Moving a store: complete, repeatable after a kill at any write, and never two stores in use at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest
from tests.support.object_service import object_service
from tests.support.state_client import lock_body, state_body

from stackyard.clients.objects import (
    ABSENT,
    Expect,
    ListedObject,
    MemoryObjects,
    Stored,
    StoreDeniedError,
    Tag,
)
from stackyard.sources.store.identity import StoreMovedError, change_identity, read_identity
from stackyard.state import Access, Actor, Right, StateService
from stackyard.state.runs import hold_run
from stackyard.state.store_move import (
    MovedStore,
    StoreInUseError,
    StoreTakenError,
    abort_move,
    move_store,
)

ME = Actor(principal="tests")
NEW = "postgresql://me@db/new"


class KilledError(Exception):
    """The process was killed."""


class Mortal(MemoryObjects):
    """A store whose client dies before the nth change, counted over all that share the budget."""

    def __init__(self, budget: list[int]) -> None:
        super().__init__()
        self._budget = budget

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        self._spend()
        return super().put(key, data, expect=expect, before=before)

    def delete(self, key: str) -> None:
        self._spend()
        super().delete(key)

    def _spend(self) -> None:
        if self._budget[0] == 0:
            raise KilledError
        self._budget[0] -= 1


def fill(objects: MemoryObjects) -> None:
    """Put states, and other things of a site, into a store."""
    states = StateService(objects)
    for name, serial in (("env/a/lab", 1), ("env/a/lab", 2), ("env/b/lab", 1)):
        states.contents.write(name, state_body(serial), ME)
    for key in ("journal/env!a!lab/t1", "plans/env!a!lab/p1", "inventory/env!a!lab", "ssh/known_hosts"):
        objects.put(key, key.encode(), expect=ABSENT)
    change_identity(objects, lambda now: dataclasses.replace(now, keys=("k1",)))


def contents(objects: MemoryObjects) -> dict[str, bytes]:
    """Return what belongs to the site."""
    listed: tuple[ListedObject, ...] = objects.list("")
    found: dict[str, Stored | None] = {one.key: objects.get(one.key) for one in listed}
    return {
        key: stored.data
        for key, stored in found.items()
        if stored is not None and not key.startswith(("system/", "runs/"))
    }


def move(origin: MemoryObjects, destination: MemoryObjects, wait_s: float = 0.0) -> MovedStore:
    return move_store(origin, destination, NEW, actor=ME, note=lambda _: None, wait_s=wait_s)


def are_open(*stores: MemoryObjects) -> list[bool]:
    found = [read_identity(one) for one in stores]
    return [one is None or not (one.moved_to or one.moving_to) for one in found]


def test_everything_is_in_the_new_store_and_the_old_one_names_it() -> None:
    origin, destination = MemoryObjects(), MemoryObjects()
    fill(origin)
    moved = move(origin, destination)
    assert (moved.states, moved.objects) == (2, len(contents(destination)))
    states = StateService(destination)
    assert [one.serial for one in states.versions.newest_first("env/a/lab")] == [2, 1]
    assert states.head("env/a/lab").freeze is None
    assert states.audit.verify("env/a/lab").is_whole
    new = read_identity(destination)
    assert new is not None
    assert new.keys == ("k1",)
    old = read_identity(origin)
    assert old is not None
    with pytest.raises(StoreMovedError, match="was moved to postgresql://me@db/new"):
        old.require_here()
    with pytest.raises(StoreMovedError):
        abort_move(origin, ME)


def test_a_move_that_is_killed_at_any_change_is_completed_by_the_next_and_never_opens_both() -> None:
    budget = [10_000]
    origin, destination = Mortal(budget), Mortal(budget)
    fill(origin)
    move(origin, destination)
    changes = 10_000 - budget[0]
    killed = 0
    for point in range(changes):
        budget[0] = 10_000
        origin, destination = Mortal(budget), Mortal(budget)
        fill(origin)
        wanted = contents(origin)
        budget[0] = point
        try:
            move(origin, destination)
        except KilledError:
            budget[0] = 10_000
            is_origin, is_destination = are_open(origin, destination)
            assert not (is_origin and is_destination and contents(destination)), point
            move(origin, destination)
            killed += 1
        assert are_open(origin, destination) == [False, True], point
        found = contents(destination)
        assert found.keys() == wanted.keys(), point
        states = StateService(destination)
        assert [one.serial for one in states.versions.newest_first("env/a/lab")] == [2, 1]
        assert states.head("env/a/lab").freeze is None, point
    assert killed > 15


def test_a_move_that_is_given_up_leaves_the_old_store_in_use_and_may_begin_again() -> None:
    budget = [10_000]
    origin, destination = Mortal(budget), MemoryObjects()
    fill(origin)
    states = StateService(origin)
    states.locks.lock("env/a/lab", lock_body(), ME)
    with pytest.raises(StoreInUseError, match="the lock of env/a/lab"):
        move(origin, destination)
    assert are_open(origin) == [False]
    assert abort_move(origin, ME) == 2
    assert are_open(origin, destination) == [True, False]
    states.locks.break_lock("env/a/lab", None, ME, reason="test")
    origin.delete("plans/env!a!lab/p1")
    move(origin, destination)
    assert "plans/env!a!lab/p1" not in contents(destination)


def test_a_store_that_holds_something_else_is_refused() -> None:
    origin, taken, half = MemoryObjects(), MemoryObjects(), MemoryObjects()
    fill(origin)
    fill(taken)
    with pytest.raises(StoreTakenError):
        move(origin, taken)
    other = MemoryObjects()
    fill(other)
    StateService(other).locks.lock("env/a/lab", lock_body(), ME)
    with pytest.raises(StoreInUseError):
        move(other, half)
    before = contents(half)
    with pytest.raises(StoreTakenError, match="Another store"):
        move(origin, half)
    assert contents(half) == before


def test_a_freeze_of_the_user_is_moved_as_it_is() -> None:
    origin, destination = MemoryObjects(), MemoryObjects()
    fill(origin)
    StateService(origin).locks.freeze("env/b/lab", ME, reason="holiday")
    move(origin, destination)
    freeze = StateService(destination).head("env/b/lab").freeze
    assert freeze is not None
    assert freeze.reason == "holiday"


async def test_a_run_at_work_is_waited_for() -> None:
    origin, destination = MemoryObjects(), MemoryObjects()
    fill(origin)
    async with hold_run(origin, "0123456789ab", owner="me@here"):
        with pytest.raises(StoreInUseError, match="run 0123456789ab"):
            move(origin, destination)
    move(origin, destination)


def test_a_move_back_to_where_it_came_from_is_refused() -> None:
    old, new = MemoryObjects(), MemoryObjects()
    fill(old)
    lock = lock_body("held")
    StateService(old).locks.lock("env/a/lab", lock, ME)
    with pytest.raises(StoreInUseError):
        move_store(old, new, NEW, actor=ME, note=lambda _: None, wait_s=0.0)
    before = {one.key for one in old.list("")}
    with pytest.raises(StoreTakenError):
        move_store(new, old, "s3://bucket/old", actor=ME, note=lambda _: None, wait_s=0.0)
    assert {one.key for one in old.list("")} == before


def test_a_move_that_was_given_up_while_it_worked_does_not_end() -> None:
    old, new = MemoryObjects(), MemoryObjects()
    fill(old)

    def note(text: str) -> None:
        if "no run in progress" in text:
            abort_move(old, ME)

    with pytest.raises(StoreInUseError, match="cancelled"):
        move_store(old, new, NEW, actor=ME, note=note, wait_s=0.0)
    identity = read_identity(old)
    assert identity is not None
    identity.require_here()
    there = read_identity(new)
    assert there is not None
    with pytest.raises(StoreMovedError):
        there.require_here()


def test_what_changes_between_the_two_copies_arrives() -> None:
    old, new = MemoryObjects(), MemoryObjects()
    fill(old)

    def note(text: str) -> None:
        if "while runs continue" in text:
            states = StateService(old)
            states.contents.write("env/a/lab", state_body(3), ME)
            old.put("journal/env!a!lab/t2", b"late", expect=ABSENT)
            old.delete("journal/env!a!lab/t1")

    move_store(old, new, NEW, actor=ME, note=note, wait_s=0.0)
    content = StateService(new).contents.read("env/a/lab")
    assert content is not None
    assert content.version.serial == 3
    assert [one.key for one in new.list("journal/")] == ["journal/env!a!lab/t2"]


def test_a_move_from_a_service_that_would_leave_its_principals_behind_is_refused() -> None:
    origin, destination = MemoryObjects(), MemoryObjects()
    fill(origin)
    with object_service(origin) as service:
        access = [Access(rights=(Right.STORE,))]
        client = service.open(service.service.principals.add("machine", access, ME)[1])
        with pytest.raises(StoreDeniedError, match="machine lacks the right admin on all states"):
            move_store(client, destination, NEW, actor=ME, note=lambda _: None, wait_s=0.0)
        assert destination.list("") == ()
        move_store(service.open(), destination, NEW, actor=ME, note=lambda _: None, wait_s=0.0)
    moved, kept = destination.get("system/principals"), origin.get("system/principals")
    assert moved is not None
    assert kept is not None
    assert moved.data == kept.data
