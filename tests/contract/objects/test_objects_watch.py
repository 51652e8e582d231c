"""Waiting for a change of an object, in every kind of store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from tests.support.state_stores import Store, store

from stackyard.base.backoff import Backoff
from stackyard.clients.objects import ABSENT, ANYTHING, Objects, Watch, watch
from stackyard.clients.objects.watch import PollingWatch

__all__ = ["store"]

PATIENCE_S = 100.0
# The others report changes. For these each look is a possible change.
POLLED = ("s3",)

CHANGES: dict[str, Callable[[Objects], object]] = {
    "create": lambda objects: objects.put("a/new", b"1", expect=ABSENT),
    "replace": lambda objects: objects.put("a/x", b"2", expect=ANYTHING),
    "delete": lambda objects: objects.delete("a/x"),
    "before": lambda objects: objects.put("b/x", b"1", expect=ABSENT, before={"a/body": b"1"}),
}


def settle(watching: Watch, kind: str) -> None:
    """Have a polled watch wait for longer than a test takes, as after a while without changes."""
    if kind in POLLED:
        for _ in range(3):
            assert watching.wait(PATIENCE_S)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_before_the_wait_or_during_it_ends_it(store: Store, change: str) -> None:
    one, two = store.open(), store.open()
    one.put("a/x", b"1", expect=ABSENT)
    with watch(two, "a/") as watching:
        settle(watching, store.kind)
        CHANGES[change](one)
        assert watching.wait(PATIENCE_S)


def test_a_waiting_thread_is_woken(store: Store) -> None:
    one, two = store.open(), store.open()
    waiting = threading.Event()

    def write() -> None:
        waiting.wait(PATIENCE_S)
        one.put("a/x", b"1", expect=ABSENT)

    writer = threading.Thread(target=write)
    writer.start()
    with watch(two, "a/") as watching:
        settle(watching, store.kind)
        began = time.monotonic()
        waiting.set()
        while two.get("a/x") is None:
            assert watching.wait(PATIENCE_S)
    assert time.monotonic() - began < PATIENCE_S / 2
    writer.join()


def test_nothing_below_the_prefix_means_no_change(store: Store) -> None:
    one, two = store.open(), store.open()
    one.put("a/x", b"1", expect=ABSENT)
    with watch(two, "a/") as watching:
        one.put("b/x", b"1", expect=ABSENT)
        one.put("ab", b"1", expect=ABSENT)
        began = time.monotonic()
        if watching.wait(0.02):
            assert store.kind in POLLED
        else:
            assert time.monotonic() - began >= 0.02


def test_each_change_is_reported_once(store: Store) -> None:
    if store.kind in POLLED:
        pytest.skip(f"{store.kind} is polled")
    objects = store.open()
    with watch(objects, "") as one, watch(objects, "a/") as two:
        objects.put("a/x", b"1", expect=ABSENT)
        for watching in (one, two):
            assert watching.wait(PATIENCE_S)
            assert not watching.wait(0.01)


def test_many_changes_never_keep_a_watch_from_ending(store: Store) -> None:
    one, two = store.open(), store.open()
    with watch(two, "a/") as watching:
        for number in range(20):
            one.put(f"a/{number}", b"1", expect=ABSENT)
        seen = 0
        while len(two.list("a/")) > seen:
            seen = len(two.list("a/"))
            assert watching.wait(PATIENCE_S)
    assert seen == 20


def test_polls_become_rarer_up_to_a_limit_and_a_short_wait_does_not_use_one_up() -> None:
    watching = PollingWatch(Backoff(first_s=0.02, longest_s=0.08))
    began = time.monotonic()
    assert not watching.wait(0.001)
    waits = []
    for _ in range(4):
        assert watching.wait(PATIENCE_S)
        waits.append(time.monotonic() - began)
    # 0.02 + 0.04 + 0.08 + 0.08
    assert waits[-1] >= 0.22
