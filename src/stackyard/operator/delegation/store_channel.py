"""The store of the outer run, for the run on an inner host: every request goes through their one channel.

The inner host gets no credential and no address. What it may reach is a part of the store of its own, and
only while the outer run listens. A request whose answer does not come has failed, as with any store: the
object is what it was or what was to be written.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.clients.objects import (
    ABSENT,
    ANYTHING,
    ConflictError,
    Expect,
    ListedObject,
    Stored,
    StoreError,
    Tag,
    check_key,
)
from stackyard.clients.objects.scoped import ScopedObjects
from stackyard.operator.delegation.protocol import BrokenRecordsError, line_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from stackyard.clients.objects import Objects

__all__ = ["ADDRESS", "ChannelObjects", "OfferedStore", "StoreAnswers"]

# What an inner run calls the store of the outer one.
ADDRESS = "outer://run"
_EXPECTED = {"absent": ABSENT, "anything": ANYTHING}
# How long an answer may take; the outer side waits for its own store, which may be busy.
_ANSWER_S = 120.0
_LARGEST_BYTES = 16 * 2**20
_MOST_LISTED = 1000
_AT_ONCE = 8
# Each part of an inner run waits for its answer; more than this means that something else asks.
_MOST_OPEN = 256


class ChannelObjects:
    """The inner side: a store whose requests are answered by the outer run.

    Args:
        send: Sends a request; may be called from any thread.
    """

    def __init__(self, send: Callable[[Mapping[str, Any]], None]) -> None:
        self._send = send
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _Pending] = {}
        self._lock = threading.Lock()
        self._is_gone = False

    def get(self, key: str) -> Stored | None:
        """Return an object, or None."""
        said = self._ask({"op": "get", "key": check_key(key)})
        if said.get("data") is None:
            return None
        return Stored(data=base64.b64decode(said["data"]), tag=Tag(str(said["tag"])))

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        """Write those that come before it, then the object."""
        words = {ABSENT: "absent", ANYTHING: "anything"}
        request = {
            "op": "put",
            "key": check_key(key),
            "data": _encode(data),
            "expect": words.get(expect) if not isinstance(expect, str) else None,
            "tag": expect if isinstance(expect, str) else None,
            "before": {check_key(other): _encode(body) for other, body in (before or {}).items()},
        }
        return Tag(str(self._ask(request)["tag"]))

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._ask({"op": "delete", "key": check_key(key)})

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[ListedObject, ...]:
        """Return the objects that begin with a prefix."""
        said = self._ask({"op": "list", "prefix": prefix, "after": after, "limit": limit})
        return tuple(
            ListedObject(key=str(key), size=int(size), modified_at=float(at))
            for key, size, at in said["objects"]
        )

    def close(self) -> None:
        """Leave it open: the channel ends with the run."""

    def answer(self, document: Mapping[str, Any]) -> None:
        """Take an answer of the outer side."""
        with self._lock:
            pending = self._waiting.pop(int(document["id"]), None)
        if pending is not None:
            pending.give(document)

    def end(self) -> None:
        """Take note that no answer will come any more."""
        with self._lock:
            self._is_gone = True
            left = list(self._waiting.values())
            self._waiting.clear()
        for pending in left:
            pending.give({})

    def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        pending, number = _Pending(), next(self._numbers)
        with self._lock:
            if self._is_gone:
                raise StoreError("The outer run is gone, and its store with it.")
            self._waiting[number] = pending
        self._send({"id": number, **request})
        said = pending.wait(_ANSWER_S)
        if said is None or not said:
            raise StoreError("The outer run did not answer for its store.")
        if (error := said.get("error")) is not None:
            if error.get("code") == ConflictError.code:
                raise ConflictError(str(request.get("key", "")))
            raise StoreError(f"The store of the outer run: {error.get('detail', 'it failed.')}")
        found: Mapping[str, Any] = said.get("ok") or {}
        return found


class _Pending:
    """An answer that is waited for."""

    def __init__(self) -> None:
        self._came = threading.Event()
        self._answer: Mapping[str, Any] | None = None

    def give(self, answer: Mapping[str, Any]) -> None:
        self._answer = answer
        self._came.set()

    def wait(self, timeout_s: float) -> Mapping[str, Any] | None:
        return self._answer if self._came.wait(timeout_s) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedStore:
    """What an outer run offers to the run on an inner host.

    Attributes:
        objects: The store.
        scope: What the names of everything that the inner host may reach begin with.
        site_key: The key with which the inner run seals; it comes from the site's key and from the scope, so
            that nothing else can be opened with it.
    """

    objects: Objects = field(repr=False)
    scope: str
    site_key: str = field(repr=False)

    def forget(self) -> None:
        """Remove everything that runs on a host left that is no more.

        Raises:
            StoreError: The store cannot be used.
        """
        while listed := self.objects.list(self.scope):
            for one in listed:
                self.objects.delete(one.key)


class StoreAnswers:
    """The outer side: answers the requests of one inner run.

    Args:
        offered: What it may reach.
        write: Writes a line to the inner side.
    """

    def __init__(self, offered: OfferedStore, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._objects = ScopedObjects(offered.objects, offered.scope)
        self._write = write
        # Of its own: an inner host that asks much must not hold up the outer run.
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="inner store")
        self._working: set[asyncio.Task[None]] = set()

    def take(self, request: Mapping[str, Any]) -> None:
        """Answer a request, beside others.

        Raises:
            BrokenRecordsError: More requests are open than an inner run has reason to have.
        """
        if len(self._working) >= _MOST_OPEN:
            raise BrokenRecordsError(f"More than {_MOST_OPEN} requests for the store are open at once.")
        task = asyncio.create_task(self._answer(request))
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def close(self) -> None:
        """Let go of requests that are being answered."""
        for task in self._working:
            task.cancel()
        if self._working:
            await asyncio.wait(self._working)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _answer(self, request: Mapping[str, Any]) -> None:
        number = request.get("id")
        loop = asyncio.get_running_loop()
        try:
            said: dict[str, Any] = {"ok": await loop.run_in_executor(self._threads, self._do, request)}
        except StackyardError as err:
            # Only the kind of error is sent: a guest must not learn the address of the store.
            detail = err.summary if isinstance(err, StoreError) else err.detail
            said = {"error": {"code": err.code, "detail": detail}}
        except (KeyError, TypeError, ValueError, AttributeError):
            said = {"error": {"code": "E-DELEGATION-BROKEN", "detail": "The request makes no sense."}}
        # Whoever listens notices that the channel broke.
        with contextlib.suppress(StackyardError):
            await self._write(line_of({"store": {"id": number, **said}}))

    def _do(self, request: Mapping[str, Any]) -> dict[str, Any]:
        objects, op = self._objects, request["op"]
        if op == "list":
            limit = max(1, min(int(request["limit"]), _MOST_LISTED))
            listed = objects.list(str(request["prefix"]), after=str(request["after"]), limit=limit)
            return {"objects": [(one.key, one.size, one.modified_at) for one in listed]}
        key = str(request["key"])
        if op == "get":
            stored = objects.get(key)
            return {} if stored is None else {"data": _encode(stored.data), "tag": stored.tag}
        if op == "delete":
            objects.delete(key)
            return {}
        if op == "put":
            before = {str(other): _decode(body) for other, body in request["before"].items()}
            expect: Expect = _EXPECTED[request["expect"]] if request["expect"] else Tag(str(request["tag"]))
            return {"tag": objects.put(key, _decode(request["data"]), expect=expect, before=before)}
        raise ValueError(op)


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode(text: object) -> bytes:
    data = base64.b64decode(str(text), validate=True)
    if len(data) > _LARGEST_BYTES:
        raise ValueError("too large")
    return data
