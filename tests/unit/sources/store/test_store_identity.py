"""Whose store it is: an id of its own, the ids of keys, and where everything went."""

from __future__ import annotations

import dataclasses
import threading

import pytest

from stackyard.clients.objects import ANYTHING, ConflictError, Expect, MemoryObjects, StoreDamagedError, Tag
from stackyard.sources.store.identity import (
    IDENTITY,
    StoreIdentity,
    StoreMovedError,
    change_identity,
    read_identity,
)


def test_a_store_that_no_site_has_used_has_no_identity() -> None:
    assert read_identity(MemoryObjects()) is None


def test_the_id_is_made_once_and_stays_through_every_change() -> None:
    objects = MemoryObjects()
    first = change_identity(objects, lambda now: dataclasses.replace(now, keys=("a",)), now=5.0)
    second = change_identity(objects, lambda now: dataclasses.replace(now, keys=("b", *now.keys)))
    assert first.id
    assert (second.id, second.created_at, second.keys) == (first.id, 5.0, ("b", "a"))
    assert read_identity(objects) == second


def test_nothing_is_written_where_nothing_changes() -> None:
    objects = MemoryObjects()
    change_identity(objects, lambda now: dataclasses.replace(now, keys=("a",)))
    before = objects.get(IDENTITY)
    change_identity(objects, lambda now: now)
    assert objects.get(IDENTITY) == before


def test_of_many_who_add_a_key_at_once_none_is_lost() -> None:
    objects = MemoryObjects()
    change_identity(objects, lambda now: now)

    def add(name: str) -> None:
        done = False
        while not done:
            try:
                change_identity(objects, lambda now: dataclasses.replace(now, keys=(*now.keys, name)))
                done = True
            except ConflictError:
                pass

    threads = [threading.Thread(target=add, args=(f"k{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read_identity(objects)
    assert found is not None
    assert set(found.keys) == {f"k{number}" for number in range(8)}


class Contended(MemoryObjects):
    """A store in which someone else is always faster."""

    def put(self, key: str, data: bytes, *, expect: Expect, before: object = None) -> Tag:
        del data, expect, before
        raise ConflictError(key)


def test_who_is_always_too_late_says_so() -> None:
    with pytest.raises(ConflictError):
        change_identity(Contended(), lambda now: now)


@pytest.mark.parametrize(
    "identity", [StoreIdentity(moved_to="s3://bucket/new"), StoreIdentity(moving_to="s3://bucket/new")]
)
def test_a_store_that_went_elsewhere_is_refused_by_the_name_of_the_other(identity: StoreIdentity) -> None:
    with pytest.raises(StoreMovedError, match="s3://bucket/new"):
        identity.require_here()
    StoreIdentity().require_here()


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"format": 1, "keys": 5}', b'{"format": 2}'])
def test_a_damaged_identity_and_one_of_a_newer_version_are_refused(data: bytes) -> None:
    objects = MemoryObjects()
    objects.put(IDENTITY, data, expect=ANYTHING)
    with pytest.raises(StoreDamagedError):
        read_identity(objects)


def test_fields_of_a_later_version_of_the_same_format_are_ignored() -> None:
    objects = MemoryObjects()
    objects.put(IDENTITY, b'{"format": 1, "id": "x", "keys": ["a"], "later": 1}', expect=ANYTHING)
    found = read_identity(objects)
    assert found is not None
    assert (found.id, found.keys) == ("x", ("a",))
