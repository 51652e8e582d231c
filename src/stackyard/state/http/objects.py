"""The objects of the store themselves, for other machines that run stackyard.

The form of requests and answers is in `stackyard.clients.objects.wire`, the rights are in
`stackyard.state.store_rights`.
"""

from __future__ import annotations

import contextlib
import functools
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import serving
from stackyard.clients.objects import ABSENT, ANYTHING, RepeatableObjects, check_key, check_write_id
from stackyard.clients.objects.wire import (
    PACKED,
    ROOT,
    WRITE_ID,
    ListPage,
    WireError,
    format_tag,
    parse_tag,
    unpack_objects,
)
from stackyard.state import store_rights
from stackyard.state.http.answers import RightMissingError
from stackyard.state.http.bodies import read_body
from stackyard.state.http.run_owners import RunOwners

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from aiohttp import web

    from stackyard.clients.objects import Expect, ListedObject, Objects, Tag
    from stackyard.state.http.change_feeds import ChangeFeeds
    from stackyard.state.principals import Principal

    Call = Callable[[Callable[[], Any]], Awaitable[Any]]

__all__ = ["ObjectRequests"]

_BINARY = "application/octet-stream"
_METHODS = ("GET", "PUT", "DELETE")
_PAGE = 1000
# How many pages of a store one request goes through for a principal that may see few of them.
_PAGES = 10
_LARGE_BYTES = 1024 * 1024
_LISTED = frozenset({"prefix", "after", "limit"})
_WATCHED = frozenset({"watch", "cursor", "wait"})


@dataclass(frozen=True, slots=True)
class _Write:
    """An object to write, and those that come before it."""

    key: str
    data: bytes
    expect: Expect
    before: Mapping[str, bytes]
    id: str


class ObjectRequests:
    """Answers requests for objects.

    Args:
        objects: The store.
        feeds: Reports changes of the store.
        call: Does what blocks in a thread.
        max_body_bytes: The largest body that is taken.
        large: Limits how many large bodies are worked on at once.
    """

    def __init__(
        self,
        objects: Objects,
        feeds: ChangeFeeds,
        call: Call,
        *,
        max_body_bytes: int,
        large: asyncio.Semaphore,
    ) -> None:
        self._objects = objects
        self._call = call
        self._max_body_bytes = max_body_bytes
        self._large = large
        self._feeds = feeds
        self._owners = RunOwners(objects)

    async def answer(self, request: web.BaseRequest, raw: str, principal: Principal) -> web.Response:
        """Answer one request.

        Args:
            request: The request.
            raw: Its path and query as they were sent.
            principal: Who asks.

        Raises:
            RightMissingError: The principal may not.
            ConflictError: The object is not what the writer expected.
            WireError: The request is not understood.
            KeyFormError: The key is none.
            BodyTooLargeError: It sends too much.
            StoreError: The store cannot be used.
        """
        path, _, query = raw.partition("?")
        key = urllib.parse.unquote(path.removeprefix(ROOT), errors="replace")
        if request.method not in _METHODS or (not key and request.method != "GET"):
            return serving.respond(405, headers={"Allow": ", ".join(_METHODS)})
        if not key:
            return await self._answer_query(_read_query(query), principal)
        if query:
            raise WireError("A request for one object has no query.")
        check_key(key)
        if request.method == "GET":
            _require_read(principal, key)
            return await self._get(key)
        _require_write(principal, key)
        if request.method == "PUT":
            return await self._put(request, key, principal)
        await self._call(functools.partial(self._delete, key, principal))
        return serving.respond(200)

    async def _get(self, key: str) -> web.Response:
        found = await self._call(functools.partial(self._objects.get, key))
        if found is None:
            return serving.respond(404)
        headers = {"ETag": format_tag(found.tag)}
        return serving.respond(200, found.data, content_type=_BINARY, headers=headers)

    async def _put(self, request: web.BaseRequest, key: str, principal: Principal) -> web.Response:
        expect, write_id = _read_condition(request.headers), request.headers.get(WRITE_ID, "")
        if write_id:
            check_write_id(write_id)
        length = request.content_length
        async with self._large if length is None or length > _LARGE_BYTES else contextlib.nullcontext():
            sent = await read_body(request, self._max_body_bytes)
            if sent.encoding not in ("", "identity"):
                raise WireError("The body of an object is not compressed on its way.")
            data, before = sent.data, dict[str, bytes]()
            if request.headers.get("Content-Type", "") == PACKED:
                data, before = unpack_objects(sent.data)
            for other in before:
                _require_write(principal, other)
            write = _Write(key, data, expect, before, write_id)
            tag = await self._call(functools.partial(self._write, write, principal))
        return serving.respond(200, headers={"ETag": format_tag(tag)})

    def _write(self, write: _Write, principal: Principal) -> Tag:
        self._owners.check_put(principal, write.key, write.expect)
        for other in write.before:
            self._owners.check_put(principal, other, ANYTHING)
        tag = self._store(write)
        self._owners.note_put(principal, write.key, write.expect)
        return tag

    def _store(self, write: _Write) -> Tag:
        key, data, expect, before = write.key, write.data, write.expect, write.before
        if write.id and isinstance(self._objects, RepeatableObjects):
            return self._objects.put_once(key, data, expect=expect, write_id=write.id, before=before)
        return self._objects.put(key, data, expect=expect, before=before)

    def _delete(self, key: str, principal: Principal) -> None:
        if self._owners.check_delete(principal, key):
            self._objects.delete(key)
            self._owners.note_delete(key)

    async def _answer_query(self, asked: Mapping[str, str], principal: Principal) -> web.Response:
        if "watch" in asked:
            return await self._watch(asked, principal)
        if not asked.keys() <= _LISTED:
            raise WireError(f"A list is asked for with {', '.join(sorted(_LISTED))}.")
        if not store_rights.has_any(principal):
            raise RightMissingError(f"{principal.name} lacks the right store.")
        prefix, after, limit = asked.get("prefix", ""), asked.get("after", ""), asked.get("limit", "1000")
        most = int(_read_number("limit", limit))
        page = await self._call(functools.partial(self._list, principal, prefix, after, most))
        return serving.respond(200, page.to_json())

    def _list(self, principal: Principal, prefix: str, after: str, limit: int) -> ListPage:
        """Return what a principal may see of a list, and where it continues if that is not all."""
        found: list[ListedObject] = []
        is_filtered = not store_rights.is_admin(principal)
        for _ in range(_PAGES):
            asked = min(limit - len(found), _PAGE)
            page = self._objects.list(prefix, after=after, limit=asked) if asked > 0 else ()
            if not page:
                return ListPage(tuple(found))
            after = page[-1].key
            found += [one for one in page if not is_filtered or store_rights.may_read(principal, one.key)]
            if len(found) >= limit or len(page) < asked:
                return ListPage(tuple(found))
        return ListPage(tuple(found), after)

    async def _watch(self, asked: Mapping[str, str], principal: Principal) -> web.Response:
        if not asked.keys() <= _WATCHED:
            raise WireError(f"A change is waited for with {', '.join(sorted(_WATCHED))}.")
        prefix = asked["watch"]
        if not store_rights.may_watch(principal, prefix):
            raise RightMissingError(f"{principal.name} lacks the right store on what begins with {prefix!r}.")
        wait_s = _read_number("wait", asked.get("wait", "0"))
        report = await self._feeds.wait(prefix, asked.get("cursor", ""), wait_s)
        return serving.respond(200, report.to_json())


def _require_read(principal: Principal, key: str) -> None:
    if not store_rights.may_read(principal, key):
        raise _refusal(principal, key, store_rights.describe_need(key))


def _require_write(principal: Principal, key: str) -> None:
    if not store_rights.may_write(principal, key):
        raise _refusal(principal, key, store_rights.describe_need(key, is_write=True))


def _refusal(principal: Principal, key: str, need: str) -> RightMissingError:
    return RightMissingError(f"{principal.name} lacks the right {need}, which {key} needs.")


def _read_condition(headers: Mapping[str, str]) -> Expect:
    none_match, match = headers.get("If-None-Match"), headers.get("If-Match")
    if none_match is None and match is None:
        return ANYTHING
    if none_match is None and match is not None:
        return parse_tag(match)
    if none_match is not None and none_match.strip() == "*" and match is None:
        return ABSENT
    raise WireError("The condition of a write is `If-None-Match: *`, or `If-Match` with one tag.")


def _read_query(query: str) -> dict[str, str]:
    pairs = urllib.parse.parse_qsl(query, keep_blank_values=True, errors="replace")
    found = dict(pairs)
    if len(found) != len(pairs):
        raise WireError("A part of the query is there twice.")
    return found


def _read_number(name: str, text: str) -> float:
    """Read a number from a query; it has few digits, and is not below zero."""
    whole, _, part = text.partition(".")
    if not whole.isascii() or not whole.isdigit() or len(text) > 12 or (part and not part.isdigit()):
        raise WireError(f"{name} is a number, not {text[:40]!r}.")
    return float(f"{whole}.{part or '0'}")
