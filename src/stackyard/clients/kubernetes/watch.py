"""Watching objects: every change is seen, however often the connection breaks."""

from __future__ import annotations

import asyncio
import contextlib
import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.backoff import Backoff
from stackyard.clients.kubernetes.failures import (
    KubernetesRefusedError,
    KubernetesUnreachableError,
    Request,
    WatchExpiredError,
    make_refused_error,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from stackyard.clients.kubernetes.transport import Patience, Transport

__all__ = ["WatchChange", "WatchEvent", "Watched", "watch_objects"]

# The server ends a watch after this time, and one that says nothing for longer is broken.
_WATCH_S = 240
_SILENCE_S = 300.0
# After a break: an API server tells no one when it is back.
_AGAIN = Backoff(first_s=0.1, longest_s=3.0)


class WatchChange(enum.StrEnum):
    """What happened to an object."""

    PRESENT = "PRESENT"
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    LISTED = "LISTED"


_CHANGES = frozenset(("ADDED", "MODIFIED", "DELETED"))


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """A change of an object.

    Attributes:
        change: What happened. `PRESENT` is an object that is there when the watch begins or begins again, and
            `LISTED` comes once after the last of them, with an empty object.
        object: The object after the change; before its deletion, if that is what happened.
    """

    change: WatchChange
    object: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Which objects are watched.

    Attributes:
        path: The path of the collection.
        query: The parameters that select some of it.
        read_all: Returns all of them, and the version from which to watch.
    """

    path: str
    query: Mapping[str, str]
    read_all: Callable[[], Awaitable[tuple[list[dict[str, Any]], str]]]


async def watch_objects(
    transport: Transport, watched: Watched, patience: Patience
) -> AsyncGenerator[WatchEvent, None]:
    """Yield the objects and then their changes; see `KubernetesClient.watch`."""
    state = _State()
    while True:
        items, state.version = await watched.read_all()
        for event in state.compare(items):
            yield event
        yield WatchEvent(change=WatchChange.LISTED, object={})
        with contextlib.suppress(WatchExpiredError):
            async with contextlib.aclosing(_follow(transport, watched, state, patience)) as events:
                async for event in events:
                    yield event


class _State:
    """What was last seen: the version of the collection, and its objects."""

    def __init__(self) -> None:
        self.version = ""
        self._known: dict[tuple[str, str], Mapping[str, Any]] = {}

    def compare(self, items: list[dict[str, Any]]) -> list[WatchEvent]:
        """Return what differs from what was last seen, for a new list of all objects."""
        now = {_key(item): item for item in items}
        gone = [item for key, item in self._known.items() if key not in now]
        self._known = dict(now)
        return [WatchEvent(change=WatchChange.DELETED, object=item) for item in gone] + [
            WatchEvent(change=WatchChange.PRESENT, object=item) for item in items
        ]

    def note(self, event: WatchEvent) -> None:
        """Remember a change."""
        key = _key(event.object)
        if event.change is WatchChange.DELETED:
            self._known.pop(key, None)
        else:
            self._known[key] = event.object


async def _follow(
    transport: Transport, watched: Watched, state: _State, patience: Patience
) -> AsyncGenerator[WatchEvent, None]:
    """Yield changes, over as many connections as it takes, until the server lacks some of them."""
    loop = asyncio.get_running_loop()
    pauses, away_since = iter(_AGAIN), None
    while True:
        try:
            async with contextlib.aclosing(_read_stream(transport, watched, state)) as events:
                async for event in events:
                    pauses, away_since = iter(_AGAIN), None
                    if event is not None:
                        yield event
        except (KubernetesUnreachableError, KubernetesRefusedError) as err:
            if isinstance(err, KubernetesRefusedError) and err.status.code not in (429, 500, 502, 503, 504):
                raise
            away_since = loop.time() if away_since is None else away_since
            if loop.time() - away_since > patience.away_s:
                raise
            await asyncio.sleep(next(pauses))


async def _read_stream(
    transport: Transport, watched: Watched, state: _State
) -> AsyncGenerator[WatchEvent | None, None]:
    """Yield the changes of one connection; nothing for a bookmark, which only moves the version."""
    request = Request("GET", watched.path)
    query = {
        **watched.query,
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": state.version,
        "timeoutSeconds": str(_WATCH_S),
    }
    async with contextlib.aclosing(transport.stream(request, query, silence_s=_SILENCE_S)) as lines:
        async for line in lines:
            obj = line.get("object")
            if not isinstance(obj, dict):
                continue
            kind = str(line.get("type"))
            if kind == "ERROR":
                raise make_refused_error(request, transport.read_failure(obj))
            state.version = str(obj.get("metadata", {}).get("resourceVersion") or state.version)
            if kind not in _CHANGES:
                yield None
                continue
            event = WatchEvent(change=WatchChange(kind), object=obj)
            state.note(event)
            yield event


def _key(obj: Mapping[str, Any]) -> tuple[str, str]:
    metadata = obj.get("metadata", {})
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))
