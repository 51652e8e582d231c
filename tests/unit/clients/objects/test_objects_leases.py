"""Leases: one owner at a time, proven dead only by silence that we have seen ourselves."""

from __future__ import annotations

import pytest

from stackyard.clients.objects import (
    ANYTHING,
    LeaseLostError,
    LeaseWatch,
    MemoryObjects,
    StoreDamagedError,
    acquire,
    read_lease,
)

KEY = "runs/one"


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_lease_that_is_held_is_given_to_nobody_else() -> None:
    objects, watch = MemoryObjects(), LeaseWatch(Clock())
    mine = acquire(objects, KEY, owner="me", promise_s=10, facts={"pid": "7"})
    assert mine is not None
    assert acquire(objects, KEY, owner="them", promise_s=10) is None
    assert acquire(objects, KEY, owner="them", promise_s=10, watch=watch) is None
    info = read_lease(objects, KEY)
    assert info is not None
    assert (info.owner, info.epoch, info.facts["pid"], info.is_released) == ("me", 1, "7", False)


def test_a_lease_given_back_is_free_with_a_higher_epoch() -> None:
    objects = MemoryObjects()
    mine = acquire(objects, KEY, owner="me", promise_s=10)
    assert mine is not None
    mine.release()
    theirs = acquire(objects, KEY, owner="them", promise_s=10)
    assert theirs is not None
    assert theirs.epoch == 2
    mine.release()
    with pytest.raises(LeaseLostError):
        mine.beat()
    theirs.beat()


def test_silence_proves_death_only_after_we_have_watched_it_for_as_long_as_was_promised() -> None:
    objects, clock = MemoryObjects(), Clock()
    watch = LeaseWatch(clock)
    mine = acquire(objects, KEY, owner="me", promise_s=10)
    assert mine is not None
    # However long it was silent before we looked, the first look proves nothing.
    clock.now += 1000
    assert acquire(objects, KEY, owner="them", promise_s=10, watch=watch) is None
    clock.now += 9
    assert acquire(objects, KEY, owner="them", promise_s=10, watch=watch) is None
    mine.beat()
    clock.now += 5
    assert acquire(objects, KEY, owner="them", promise_s=10, watch=watch) is None
    clock.now += 10
    theirs = acquire(objects, KEY, owner="them", promise_s=10, watch=watch)
    assert theirs is not None
    assert theirs.epoch == 2
    with pytest.raises(LeaseLostError):
        mine.beat()


def test_of_two_who_take_a_dead_lease_one_gets_it() -> None:
    objects, clock = MemoryObjects(), Clock()
    acquire(objects, KEY, owner="dead", promise_s=1)
    watches = [LeaseWatch(clock), LeaseWatch(clock)]
    for watch in watches:
        assert acquire(objects, KEY, owner="x", promise_s=1, watch=watch) is None
    clock.now += 2
    taken = [acquire(objects, KEY, owner=str(n), promise_s=1, watch=watch) for n, watch in enumerate(watches)]
    assert [lease is not None for lease in taken] == [True, False]


def test_an_object_that_is_no_lease_is_said_to_be_damaged() -> None:
    objects = MemoryObjects()
    assert read_lease(objects, KEY) is None
    objects.put(KEY, b"{}", expect=ANYTHING)
    with pytest.raises(StoreDamagedError):
        read_lease(objects, KEY)
