"""What every object store promises, whatever it keeps the objects in."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.state_stores import Store, store

from stackyard.clients.objects import (
    ABSENT,
    ANYTHING,
    ConflictError,
    Expect,
    KeyFormError,
    LeaseLostError,
    LeaseWatch,
    Objects,
    RepeatableObjects,
    Tag,
    acquire,
)
from stackyard.clients.objects.sealed import KeyRing, MasterKey, SealedObjects
from stackyard.operator.delegation.store_channel import ChannelObjects

__all__ = ["store"]

PATIENCE_S = 100.0


def repeatable(objects: Objects) -> Any:
    """Return a store that recognises a write which is sent again."""
    if isinstance(objects, ChannelObjects):
        pytest.skip("a request through the channel of an outer run is never sent again")
    assert isinstance(objects, RepeatableObjects)
    return objects


def at_once(actions: list[Callable[[], object]]) -> None:
    """Do everything at the same time, each in a thread of its own."""
    ready = threading.Barrier(len(actions))

    def act(action: Callable[[], object]) -> None:
        ready.wait(PATIENCE_S)
        action()

    threads = [threading.Thread(target=act, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)


def test_what_was_put_is_got_by_every_client_of_the_store(store: Store) -> None:
    one, two = store.open(), store.open()
    assert one.get("a/b") is None
    tag = one.put("a/b", b"\x00\xff", expect=ABSENT)
    found = two.get("a/b")
    assert found is not None
    assert (found.data, found.tag) == (b"\x00\xff", tag)


def test_an_object_may_be_empty_and_large(store: Store) -> None:
    objects = store.open()
    for data in (b"", b"\x00" * 1_000_000 + b"end"):
        objects.put("x", data, expect=ANYTHING)
        found = objects.get("x")
        assert found is not None
        assert found.data == data


def test_absent_is_refused_where_something_is(store: Store) -> None:
    one, two = store.open(), store.open()
    one.put("x", b"1", expect=ABSENT)
    with pytest.raises(ConflictError):
        two.put("x", b"2", expect=ABSENT)
    found = one.get("x")
    assert found is not None
    assert found.data == b"1"


def test_a_tag_is_good_for_one_replacement(store: Store) -> None:
    objects = store.open()
    first = objects.put("x", b"1", expect=ABSENT)
    second = objects.put("x", b"2", expect=first)
    assert second != first
    with pytest.raises(ConflictError):
        objects.put("x", b"3", expect=first)
    objects.put("x", b"4", expect=second)
    found = objects.get("x")
    assert found is not None
    assert found.data == b"4"


def test_a_tag_of_something_that_is_gone_is_refused(store: Store) -> None:
    objects = store.open()
    tag = objects.put("x", b"1", expect=ABSENT)
    objects.delete("x")
    with pytest.raises(ConflictError):
        objects.put("x", b"2", expect=tag)
    assert objects.get("x") is None
    with pytest.raises(ConflictError):
        objects.put("never", b"2", expect=tag)


def test_anything_replaces_anything(store: Store) -> None:
    objects = store.open()
    objects.put("x", b"1", expect=ANYTHING)
    objects.put("x", b"2", expect=ANYTHING)
    found = objects.get("x")
    assert found is not None
    assert found.data == b"2"


def test_what_comes_before_is_there_when_the_object_is(store: Store) -> None:
    objects = store.open()
    objects.put("head", b"h", expect=ABSENT, before={"body/1": b"one", "body/2": b"two"})
    assert [found and found.data for found in map(objects.get, ("body/1", "body/2", "head"))] == [
        b"one",
        b"two",
        b"h",
    ]


def test_a_refused_write_replaces_nothing(store: Store) -> None:
    objects = store.open()
    objects.put("head", b"h", expect=ABSENT)
    with pytest.raises(ConflictError):
        objects.put("head", b"other", expect=Tag("stale"), before={"left/over": b"x"})
    found = objects.get("head")
    assert found is not None
    assert found.data == b"h"


def number_of_a_write() -> str:
    return uuid.uuid4().hex


@pytest.mark.parametrize("expectation", ["absent", "tag", "anything"])
def test_a_write_that_is_sent_again_is_done_once(store: Store, expectation: str) -> None:
    objects, write_id = store.open(), number_of_a_write()
    objects = repeatable(objects)
    expect = expectation_of(objects, expectation)
    first = objects.put_once("x", b"1", expect=expect, write_id=write_id, before={"body": b"b"})
    # It may come to another process of the same store.
    other = store.open()
    other = repeatable(other)
    assert other.put_once("x", b"1", expect=expect, write_id=write_id, before={"body": b"b"}) == first
    found = objects.get("x")
    assert found is not None
    assert (found.data, found.tag) == (b"1", first)


def expectation_of(objects: Objects, name: str) -> Expect:
    """Return what a first write to `x` may expect; for a tag there is something to replace."""
    if name == "tag":
        return objects.put("x", b"0", expect=ABSENT)
    return ABSENT if name == "absent" else ANYTHING


def test_equal_content_of_another_writer_is_a_conflict(store: Store) -> None:
    objects = store.open()
    objects = repeatable(objects)
    tag = objects.put("count", b"4", expect=ABSENT)
    objects.put_once("count", b"5", expect=tag, write_id=number_of_a_write())
    with pytest.raises(ConflictError):
        objects.put_once("count", b"5", expect=tag, write_id=number_of_a_write())


def test_a_write_that_was_replaced_since_is_not_done_again(store: Store) -> None:
    objects, write_id = store.open(), number_of_a_write()
    objects = repeatable(objects)
    first = objects.put_once("x", b"1", expect=ABSENT, write_id=write_id)
    objects.put("x", b"2", expect=first)
    if store.kind == "s3":
        # The bucket has no other place for the id than the object.
        with pytest.raises(ConflictError):
            objects.put_once("x", b"1", expect=ABSENT, write_id=write_id)
    else:
        assert objects.put_once("x", b"1", expect=ABSENT, write_id=write_id) == first
        objects.delete("x")
        assert objects.put_once("x", b"1", expect=ABSENT, write_id=write_id) == first
        assert objects.get("x") is None
        objects.put("x", b"2", expect=ABSENT)
    found = objects.get("x")
    assert found is not None
    assert found.data == b"2"


@pytest.mark.parametrize("write_id", ["", "short", "x" * 65, "a b" * 8, "ä" * 20, "a" * 16 + "\n"])
def test_the_id_of_a_write_has_a_form(store: Store, write_id: str) -> None:
    objects = store.open()
    objects = repeatable(objects)
    with pytest.raises(KeyFormError):
        objects.put_once("x", b"", expect=ANYTHING, write_id=write_id)


def test_deleting_twice_is_deleting_once(store: Store) -> None:
    objects = store.open()
    objects.put("x", b"1", expect=ABSENT)
    objects.delete("x")
    objects.delete("x")
    assert objects.get("x") is None
    objects.put("x", b"2", expect=ABSENT)


def test_a_list_is_in_order_and_goes_on_where_it_stopped(store: Store) -> None:
    objects = store.open()
    keys = {"a/1", "a/10", "a/2", "a/2!3", "a!b", "ab", "b/1/x", "b/1!x"}
    for key in keys:
        objects.put(key, b"12345", expect=ABSENT)
    listed = objects.list("a/")
    assert [entry.key for entry in listed] == ["a/1", "a/10", "a/2", "a/2!3"]
    assert all(entry.size >= 5 and entry.modified_at > 1_000_000_000 for entry in listed)
    paged: list[str] = []
    while page := objects.list("", after=paged[-1] if paged else "", limit=3):
        assert len(page) <= 3
        paged += [entry.key for entry in page]
    assert (len(paged), set(paged)) == (len(keys), keys)
    assert objects.list("c") == ()


@pytest.mark.parametrize(
    "key",
    ["", "/", "a/", "/a", "a//b", "../a", "a/../b", "./a", "a b", "a\x00b", "ä", "x" * 801, "a%2fb", "a\\b"],
)
def test_a_key_that_some_store_would_misunderstand_is_refused_by_all(store: Store, key: str) -> None:
    objects = store.open()
    for action in (
        lambda: objects.get(key),
        lambda: objects.put(key, b"", expect=ANYTHING),
        lambda: objects.delete(key),
    ):
        with pytest.raises(KeyFormError):
            action()


def test_of_those_who_create_at_once_one_wins(store: Store) -> None:
    clients = [store.open() for _ in range(8)]
    won: list[int] = []

    def create(number: int) -> None:
        try:
            clients[number].put("x", str(number).encode(), expect=ABSENT)
        except ConflictError:
            return
        won.append(number)

    at_once([lambda number=number: create(number) for number in range(8)])  # type: ignore[misc]
    assert len(won) == 1
    found = clients[0].get("x")
    assert found is not None
    assert found.data == str(won[0]).encode()


def test_no_update_is_lost_among_those_who_write_at_once(store: Store) -> None:
    clients = [store.open() for _ in range(4)]
    each = 2 if store.kind == "s3" else 25
    clients[0].put("count", b"0", expect=ABSENT)

    def add(number: int) -> None:
        done = 0
        while done < each:
            found = clients[number].get("count")
            assert found is not None
            try:
                clients[number].put("count", str(int(found.data) + 1).encode(), expect=found.tag)
            except ConflictError:
                continue
            done += 1

    at_once([lambda number=number: add(number) for number in range(4)])  # type: ignore[misc]
    found = clients[0].get("count")
    assert found is not None
    assert int(found.data) == 4 * each


def test_a_lease_has_one_holder_and_a_silent_one_is_replaced(store: Store) -> None:
    one, two = store.open(), store.open()
    held = acquire(one, "lease", owner="one", promise_s=60.0)
    assert held is not None
    assert acquire(two, "lease", owner="two", promise_s=60.0) is None
    held.beat()
    now = 0.0
    watch = LeaseWatch(lambda: now)
    assert acquire(two, "lease", owner="two", promise_s=60.0, watch=watch) is None
    now = 61.0
    taken = acquire(two, "lease", owner="two", promise_s=60.0, watch=watch)
    assert taken is not None
    assert taken.epoch == held.epoch + 1
    with pytest.raises(LeaseLostError):
        held.beat()
    taken.release()
    assert acquire(one, "lease", owner="one", promise_s=60.0) is not None


def test_any_store_can_be_encrypted(store: Store) -> None:
    inner = store.open()
    sealed = SealedObjects(inner, KeyRing((MasterKey(b"s" * 32),)))
    tag = sealed.put("x", b"plain words", expect=ABSENT, before={"y": b"plain words"})
    with pytest.raises(ConflictError):
        sealed.put("x", b"other", expect=ABSENT)
    tag = sealed.put("x", b"more plain words", expect=tag)
    found, inside, other = sealed.get("x"), inner.get("x"), inner.get("y")
    assert found is not None
    assert (found.data, found.tag) == (b"more plain words", tag)
    assert inside is not None
    assert other is not None
    assert b"plain" not in inside.data + other.data
