"""What is known of writing to a store: from the last write, or from one that is made to find out."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stackyard.clients.objects import Expect, MemoryObjects, StoreError, StoreFullError, Tag
from stackyard.state.http.health import StoreHealth


class Room(MemoryObjects):
    """A store that takes objects up to a size."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = 1 << 30
        self.tried: list[int] = []

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        self.tried.append(len(data))
        if len(data) > self.largest:
            raise StoreFullError("There is no room.")
        return super().put(key, data, expect=expect, before=before)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_store_that_is_asked_often_is_written_to_seldom() -> None:
    room, clock = Room(), Clock()
    health = StoreHealth(room, clock=clock)
    for _ in range(100):
        health.check()
        clock.now += 0.1
    assert len(room.tried) == 1
    clock.now += 21
    health.note_success()
    clock.now += 21
    health.check()
    assert len(room.tried) == 1
    clock.now += 30
    health.check()
    assert len(room.tried) == 2


def test_a_full_store_is_found_out_without_a_write_of_a_client_and_tried_again_soon() -> None:
    room, clock = Room(), Clock()
    health = StoreHealth(room, clock=clock)
    room.largest = 0
    for _ in range(10):
        with pytest.raises(StoreFullError):
            health.check()
        clock.now += 0.15
    assert len(room.tried) == 2
    room.largest = 1 << 20
    clock.now += 1
    health.check()


def test_room_for_something_small_is_not_room_for_what_could_not_be_written() -> None:
    room, clock = Room(), Clock()
    health = StoreHealth(room, clock=clock)
    health.check()
    room.largest = 50_000
    health.note_failure(StoreFullError("There is no room."), 100_000)
    # A lock that fits does not make it well.
    health.note_success()
    clock.now += 2
    with pytest.raises(StoreError):
        health.check()
    room.largest = 200_000
    clock.now += 2
    health.check()
    stored = room.get("system/health")
    assert stored is not None
    assert len(stored.data) == 4096
