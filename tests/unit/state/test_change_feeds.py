"""Clients that wait for changes of a store: few threads, no change missed, nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

import pytest

from stackyard.clients.objects import ANYTHING, MemoryObjects, StoreError, Watch
from stackyard.state.http.change_feeds import ChangeFeeds

PATIENCE_S = 60.0


def put(objects: MemoryObjects, key: str) -> None:
    objects.put(key, b"", expect=ANYTHING)


def count_threads(prefix: str) -> int:
    """Return how many threads watch a prefix; a thread takes a second to notice that it has to end."""
    return sum(thread.name == f"watch {prefix}" for thread in threading.enumerate())


async def test_a_change_between_two_requests_is_reported_to_everyone() -> None:
    objects = MemoryObjects()
    feeds = ChangeFeeds(objects)
    begun = [await feeds.wait("shared/", "", 0.0) for _ in range(3)]
    assert [report.has_changed for report in begun] == [False] * 3
    put(objects, "shared/x")
    for report in begun:
        found = await feeds.wait("shared/", report.cursor, PATIENCE_S)
        assert found.has_changed
        assert not (await feeds.wait("shared/", found.cursor, 0.01)).has_changed
    assert count_threads("shared/") == 1
    feeds.close()


async def test_a_cursor_of_another_service_counts_as_a_change() -> None:
    objects = MemoryObjects()
    one, two = ChangeFeeds(objects), ChangeFeeds(objects)
    cursor = (await one.wait("a/", "", 0.0)).cursor
    found = await two.wait("a/", cursor, PATIENCE_S)
    assert found.has_changed
    assert found.cursor != cursor
    for strange in (".", "x.y", "0", "ä" * 50):
        assert (await two.wait("a/", strange, PATIENCE_S)).has_changed
    one.close()
    two.close()


async def test_a_prefix_that_no_one_asks_for_is_no_longer_watched() -> None:
    feeds = ChangeFeeds(MemoryObjects(), kept_s=0.1)
    cursor = (await feeds.wait("gone/", "", 0.0)).cursor
    while feeds.watched:
        await asyncio.sleep(0.02)
    # It may have missed something since.
    assert (await feeds.wait("gone/", cursor, PATIENCE_S)).has_changed
    feeds.close()
    while count_threads("gone/"):
        await asyncio.sleep(0.02)


async def test_a_client_that_finds_no_room_is_told_to_poll() -> None:
    feeds = ChangeFeeds(MemoryObjects(), most=1)
    assert (await feeds.wait("a/", "", 0.0)).cursor
    assert not (await feeds.wait("b/", "", 0.0)).cursor
    found = await feeds.wait("b/", "cursor.1", PATIENCE_S)
    assert (found.has_changed, found.cursor) == (True, "")
    feeds.close()


class BrokenObjects(MemoryObjects):
    """A store whose watch breaks when a test says so."""

    is_broken = False

    @contextlib.contextmanager
    def watch(self, prefix: str) -> Iterator[Watch]:  # type: ignore[override]
        if self.is_broken:
            raise StoreError("away")
        with super().watch(prefix) as inner:
            yield _BreakingWatch(self, inner)


class _BreakingWatch:
    def __init__(self, objects: BrokenObjects, inner: Watch) -> None:
        self._objects = objects
        self._inner = inner

    def wait(self, timeout_s: float) -> bool:
        if self._objects.is_broken:
            raise StoreError("away")
        return self._inner.wait(min(timeout_s, 0.02))


async def test_a_store_that_was_away_counts_as_changed() -> None:
    objects = BrokenObjects()
    feeds = ChangeFeeds(objects)
    cursor = (await feeds.wait("a/", "", 0.0)).cursor
    objects.is_broken = True
    assert (await feeds.wait("a/", cursor, PATIENCE_S)).has_changed
    with pytest.raises(StoreError):
        await feeds.wait("b/", "", 0.0)
    assert feeds.watched == 1
    objects.is_broken = False
    cursor = (await feeds.wait("b/", "", 0.0)).cursor
    put(objects, "b/x")
    assert (await feeds.wait("b/", cursor, PATIENCE_S)).has_changed
    feeds.close()


@pytest.mark.parametrize("steps", range(6))
async def test_a_client_that_is_cancelled_together_with_a_change_stops(steps: int) -> None:
    objects = MemoryObjects()
    feeds = ChangeFeeds(objects)
    cursor = (await feeds.wait("a", "", 0.0)).cursor

    async def follow() -> None:
        seen = cursor
        while seen:
            seen = (await feeds.wait("a", seen, 30.0)).cursor

    following = asyncio.create_task(follow())
    await asyncio.sleep(0.05)
    feeds._feeds["a"]._note_change()
    for _ in range(steps):
        await asyncio.sleep(0)
    following.cancel()
    done, _ = await asyncio.wait({following}, timeout=5)
    feeds.close()
    assert done, "the cancellation was lost"
    following.cancel()
