"""The store of the outer run, as an inner host reaches it: its own part, and nothing else."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.channel_store import SCOPE, open_channel_store

from stackyard.clients.objects import ABSENT, ANYTHING, ConflictError, MemoryObjects, StoreError, check_key
from stackyard.clients.objects.sealed import make_master_key
from stackyard.operator.delegation.offer import forget_inner, offer_store
from stackyard.operator.delegation.protocol import BrokenRecordsError
from stackyard.operator.delegation.store_channel import ChannelObjects, OfferedStore, StoreAnswers
from stackyard.sources.store import ChosenStore
from stackyard.sources.store.keys import site_keys
from stackyard.sources.store.pool import lend_store


def answer(objects: MemoryObjects, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the outer side answers to a request."""
    said: list[bytes] = []

    async def main() -> None:
        async def write(line: bytes) -> None:
            said.append(line)

        answers = StoreAnswers(OfferedStore(objects=objects, scope=SCOPE, site_key=""), write)
        answers.take(request)
        while not said:
            await asyncio.sleep(0)
        await answers.close()

    asyncio.run(main())
    found: dict[str, Any] = json.loads(said[0])["store"]
    return found


def test_everything_that_an_inner_run_stores_is_below_its_own_part() -> None:
    objects = MemoryObjects()
    objects.put("heads/env!prod!pve1", b"of the site", expect=ABSENT)
    inner = open_channel_store(objects)()
    inner.put("heads/env!prod!pve1", b"of the inner run", expect=ABSENT, before={"data/x": b"body"})
    assert [one.key for one in inner.list("")] == ["data/x", "heads/env!prod!pve1"]
    assert [one.key for one in objects.list("inner/")] == [f"{SCOPE}data/x", f"{SCOPE}heads/env!prod!pve1"]
    kept = objects.get("heads/env!prod!pve1")
    assert kept is not None
    assert kept.data == b"of the site"
    inner.close()


@pytest.mark.parametrize(
    "request_",
    [
        {"op": "get", "key": "../../../heads/env!prod!pve1"},
        {"op": "get", "key": "/heads/env!prod!pve1"},
        {"op": "get", "key": ""},
        {"op": "list", "prefix": "../", "after": "", "limit": 10},
        {"op": "list", "prefix": "", "after": "../../a", "limit": 10},
        {"op": "put", "key": "x", "data": "no base64!", "expect": "absent", "tag": None, "before": {}},
        {"op": "put", "key": "x", "data": "", "expect": "whatever", "tag": None, "before": {}},
        {"op": "put", "key": "x", "data": "", "expect": "absent", "tag": None, "before": {"../y": ""}},
        {"op": "format"},
        {},
    ],
)
def test_a_request_that_leads_out_or_makes_no_sense_is_refused(request_: dict[str, Any]) -> None:
    objects = MemoryObjects()
    objects.put("heads/env!prod!pve1", b"of the site", expect=ABSENT)
    assert "error" in answer(objects, {"id": 1, **request_})
    assert [one.key for one in objects.list("")] == ["heads/env!prod!pve1"]


@given(
    st.dictionaries(
        st.sampled_from(["id", "op", "key", "prefix", "after", "limit", "data", "expect", "tag", "before"]),
        st.one_of(
            st.none(),
            st.integers(),
            st.text(),
            st.sampled_from(["get", "put", "delete", "list"]),
            st.lists(st.text()),
        ),
    )
)
def test_no_request_ends_the_outer_run_or_touches_what_is_not_its_own(request_: dict[str, Any]) -> None:
    objects = MemoryObjects()
    objects.put("heads/env!prod!pve1", b"of the site", expect=ABSENT)
    assert {"ok", "error"} & answer(objects, request_).keys()
    assert [one.key for one in objects.list("") if not one.key.startswith(SCOPE)] == ["heads/env!prod!pve1"]


def test_a_failure_of_the_store_tells_an_inner_host_nothing_of_where_it_is() -> None:
    class Broken(MemoryObjects):
        def get(self, key: str) -> None:
            raise StoreError("postgresql://owner@db.internal cannot be reached.")

    said = answer(Broken(), {"id": 1, "op": "get", "key": "x"})
    assert "db.internal" not in json.dumps(said)


def test_a_run_whose_outer_side_is_gone_fails_at_once() -> None:
    inner = ChannelObjects(lambda request: None)
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            inner.get("x")
        except StoreError as err:
            failed.append(err)

    asking = threading.Thread(target=ask)
    asking.start()
    while not inner._waiting:
        pass
    inner.end()
    asking.join(10)
    assert not asking.is_alive()
    assert len(failed) == 1
    with pytest.raises(StoreError, match="gone"):
        inner.put("x", b"", expect=ANYTHING)


def test_a_conflict_is_a_conflict_on_both_sides() -> None:
    inner = open_channel_store(MemoryObjects())()
    inner.put("x", b"1", expect=ABSENT)
    with pytest.raises(ConflictError):
        inner.put("x", b"2", expect=ABSENT)
    inner.close()


def test_the_key_of_an_inner_host_is_its_own_and_the_same_on_every_machine(tmp_path: Path) -> None:
    store = ChosenStore(base=tmp_path / ".stackyard")

    def key_of(node: str) -> str:
        with offer_store(store, "m", "lab", node) as offered:
            return offered.site_key

    assert key_of("one") == key_of("one")
    assert key_of("one") != key_of("two")
    with offer_store(store, "m", "lab", "one") as offered:
        own = site_keys(store, offered.objects)
        assert own.text() not in offered.site_key
        offered.objects.put(f"{offered.scope}heads/x", b"", expect=ABSENT)
        offered.objects.put("inner/manifest!m!lab/two/heads/x", b"", expect=ABSENT)
    forget_inner(store, "m", "lab", ["one"])
    with offer_store(store, "m", "lab", "one") as offered:
        assert [one.key for one in offered.objects.list("inner/")] == ["inner/manifest!m!lab/two/heads/x"]


async def test_an_inner_host_that_asks_without_end_ends_its_own_run() -> None:
    async def never(_line: bytes) -> None:
        await asyncio.Event().wait()

    answers = StoreAnswers(OfferedStore(objects=MemoryObjects(), scope=SCOPE, site_key=""), never)
    for number in range(256):
        answers.take({"id": number, "op": "get", "key": "x"})
    with pytest.raises(BrokenRecordsError, match="at once"):
        answers.take({"id": 257, "op": "get", "key": "x"})
    await answers.close()


def test_keys_stay_within_limits_at_every_depth(tmp_path: Path) -> None:
    long, store = "n" * 63, ChosenStore(base=tmp_path / ".stackyard")
    with offer_store(store, long, long, long) as offered:
        scope = offered.scope
    key = make_master_key()
    with lend_store("outer://run", MemoryObjects(), key):
        inner = ChosenStore(base=tmp_path / "inner", address="outer://run", site_key=key)
        for _ in range(5):
            with offer_store(inner, long, long, long) as offered:
                scope += offered.scope
    check_key(f"{scope}data/manifest!{long}!{long}/bodies/{'a' * 64}-1")
