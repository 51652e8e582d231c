"""Proving that a store can be relied on finds each way in which one cannot."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import pytest
from tests.support.state_stores import Store, store

from stackyard.clients.objects import (
    ANYTHING,
    Expect,
    ListedObject,
    MemoryObjects,
    Stored,
    StoreReadOnlyError,
    StoreUnsafeError,
    Tag,
)
from stackyard.sources.store.check import check_store

__all__ = ["store"]


def test_every_kind_of_store_passes_and_nothing_is_left(store: Store) -> None:
    objects = store.open()
    found = check_store(objects)
    assert found.write_s > 0
    assert found.read_s > 0
    assert found.clock_ahead_s is not None
    assert abs(found.clock_ahead_s) < 30
    assert objects.list("system/checks/") == ()


class Careless(MemoryObjects):
    """Takes every write."""

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        del expect
        return super().put(key, data, expect=ANYTHING, before=before)


class Forgetful(MemoryObjects):
    """Returns what was there before."""

    def get(self, key: str) -> Stored | None:
        found = super().get(key)
        return None if found is None else dataclasses.replace(found, data=b"old")


class Blind(MemoryObjects):
    """Lists nothing."""

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[ListedObject, ...]:
        del prefix, after, limit
        return ()


class Hoarding(MemoryObjects):
    """Removes nothing."""

    def delete(self, key: str) -> None:
        del key


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Careless, "the creation of an object that exists"),
        (Forgetful, "did not return the new content"),
        (Blind, "did not contain the object"),
        (Hoarding, "can still be read"),
    ],
)
def test_a_store_that_does_not_keep_its_word_is_refused(
    make: Callable[[], MemoryObjects], words: str
) -> None:
    with pytest.raises(StoreUnsafeError, match=words):
        check_store(make())


class ReadOnly(MemoryObjects):
    """Takes no write."""

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        del key, data, expect, before
        raise StoreReadOnlyError("no")


def test_a_store_that_cannot_be_written_says_so() -> None:
    with pytest.raises(StoreReadOnlyError):
        check_store(ReadOnly())
