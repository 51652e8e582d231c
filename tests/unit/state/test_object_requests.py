"""Requests for objects that no client of ours would send."""

from __future__ import annotations

import asyncio
import contextlib
import json
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.state_client import Client, served

from stackyard.base.errors import UsageError
from stackyard.clients.objects import ABSENT, KeyFormError, ListedObject, MemoryObjects, Tag
from stackyard.clients.objects.http import HttpAddress
from stackyard.clients.objects.wire import (
    PACKED,
    ChangeReport,
    ListPage,
    WireError,
    format_tag,
    pack_objects,
    parse_tag,
    unpack_objects,
)
from stackyard.state import StateService

KEYS = st.text(string.ascii_letters + string.digits + "._@:+=,~!-", min_size=3, max_size=20)


@given(
    data=st.binary(max_size=50),
    before=st.dictionaries(KEYS.filter(lambda key: key.strip(".")), st.binary(max_size=50), max_size=4),
)
def test_packed_objects_are_unpacked_as_they_were(data: bytes, before: dict[str, bytes]) -> None:
    packed = pack_objects(data, before)
    assert unpack_objects(packed) == (data, before)
    for wrong in (packed[:-1], packed + b"x", packed[1:], b""):
        with pytest.raises((WireError, KeyFormError)):
            unpack_objects(wrong)


@given(
    index=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["before", "size", "x"]), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    rest=st.binary(max_size=40),
)
def test_a_body_with_any_index_is_taken_or_refused(index: Any, rest: bytes) -> None:
    text = json.dumps(index).encode()
    try:
        data, before = unpack_objects(len(text).to_bytes(4, "big") + text + rest)
    except (WireError, KeyFormError):
        return
    assert len(data) + sum(map(len, before.values())) == len(rest)


@given(st.binary(max_size=100))
def test_any_bytes_are_taken_or_refused(body: bytes) -> None:
    for read in (unpack_objects, ListPage.from_json, ChangeReport.from_json):
        with pytest.raises((WireError, KeyFormError)):
            read(body)


@given(st.text(min_size=1, max_size=60))
def test_a_tag_travels_as_it_is(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    header = format_tag(Tag(text))
    assert header.isascii()
    if len(header) <= 300:
        assert parse_tag(header) == text


@given(st.text(max_size=40))
def test_any_text_is_a_tag_or_refused(text: str) -> None:
    with contextlib.suppress(WireError):
        parse_tag(text)


@given(st.lists(st.tuples(KEYS, st.integers(0, 2**40), st.floats(0, 1e10)), max_size=3), KEYS)
def test_a_list_travels_as_it_is(rows: list[tuple[str, int, float]], after: str) -> None:
    objects = tuple(ListedObject(key=key, size=size, modified_at=at) for key, size, at in rows)
    page = ListPage(objects, after)
    assert ListPage.from_json(page.to_json()) == page


@given(st.text("htps:/@?#[]%.&=0123456789abclo-fingerprintca \x00ä", max_size=40))
def test_any_address_is_taken_or_refused(text: str) -> None:
    for address in (text, f"https://{text}", f"http://localhost{text}"):
        try:
            found = HttpAddress.parse(address)
        except UsageError:
            continue
        assert found.host
        assert "@" not in found.label


REFUSED = {400, 405, 411, 412, 413}


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "x", {}, 200),
        ("GET", "y", {}, 404),
        ("GET", "%78", {}, 200),
        ("GET", "x?prefix=", {}, 400),
        ("GET", "x/", {}, 400),
        ("GET", "../x", {}, 400),
        ("GET", "a%2f..%2fb", {}, 400),
        ("GET", "%00", {}, 400),
        ("GET", "%ff", {}, 400),
        ("GET", "x" * 801, {}, 400),
        ("HEAD", "x", {}, 405),
        ("POST", "x", {}, 405),
        ("PATCH", "x", {}, 405),
        ("LOCK", "x", {}, 405),
        ("PUT", "", {}, 405),
        ("DELETE", "", {}, 405),
        ("PUT", "y", {"If-None-Match": "*"}, 200),
        ("PUT", "x", {"If-None-Match": "*"}, 412),
        ("PUT", "x", {"If-None-Match": '"1"'}, 400),
        ("PUT", "x", {"If-Match": "*"}, 400),
        ("PUT", "x", {"If-Match": ""}, 400),
        ("PUT", "x", {"If-Match": '"1", "2"'}, 400),
        ("PUT", "x", {"If-Match": '"1"', "If-None-Match": "*"}, 400),
        ("PUT", "x", {"If-Match": '"stale"'}, 412),
        ("PUT", "x", {"X-Write-Id": "short"}, 400),
        ("PUT", "x", {"X-Write-Id": "a" * 20}, 200),
        ("PUT", "x", {"Content-Type": PACKED}, 400),
        ("PUT", "x", {"Content-Encoding": "gzip"}, 400),
        ("GET", "?prefix=x", {}, 200),
        ("GET", "", {}, 200),
        ("GET", "?limit=0", {}, 200),
        ("GET", "?limit=-1", {}, 400),
        ("GET", "?limit=1e9", {}, 400),
        ("GET", "?limit=" + "9" * 100, {}, 400),
        ("GET", "?limit=nan", {}, 400),
        ("GET", "?limit=%D9%A3", {}, 400),
        ("GET", "?limit=1&limit=2", {}, 400),
        ("GET", "?other=1", {}, 400),
        ("GET", "?watch=a/&prefix=x", {}, 400),
        ("GET", "?watch=a/&wait=inf", {}, 400),
        ("GET", "?watch=a/&wait=0&cursor=unknown", {}, 200),
        ("GET", "?prefix=%00%ff&after=%00", {}, 200),
    ],
)
async def test_a_request_is_answered_as_the_protocol_says(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    objects = MemoryObjects()
    objects.put("x", b"1", expect=ABSENT)
    async with served(StateService(objects)) as client:
        reply = await client.request(
            method, f"/objects/v1/{path}", b"2" if method == "PUT" else None, headers
        )
    assert reply.status == status, reply.body
    assert reply.headers["X-Stackyard-Objects"] == "1"


@settings(max_examples=30, deadline=None)
@given(
    requests=st.lists(
        st.tuples(
            st.sampled_from(["GET", "PUT", "DELETE", "POST"]),
            st.text("abx/%?&=.!,0123456789_~-+@:", max_size=20),
            st.dictionaries(
                st.sampled_from(["If-Match", "If-None-Match", "X-Write-Id", "Content-Type"]),
                st.sampled_from(["*", '"1"', PACKED, "a" * 32, "", "%", '"%22"']),
                max_size=3,
            ),
            st.binary(max_size=40),
        ),
        min_size=1,
        max_size=10,
    )
)
def test_no_request_breaks_the_service(requests: list[tuple[str, str, dict[str, str], bytes]]) -> None:
    async def send_all() -> None:
        async with served(StateService(MemoryObjects())) as client:
            for method, path, headers, body in requests:
                status = await _send(client, method, path, headers, body)
                assert status in {200, 404, *REFUSED}, (method, path, headers, body)

    asyncio.run(send_all())


async def _send(client: Client, method: str, path: str, headers: dict[str, str], body: bytes) -> int:
    sent = body if method in ("PUT", "POST") else None
    reply = await client.request(method, f"/objects/v1/{path}", sent, headers)
    assert b"Traceback" not in reply.body
    return reply.status
