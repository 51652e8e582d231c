"""Watches: one line for each change, bookmarks, and the end of changes that are no longer kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from pvelab.kubernetes import problems
from pvelab.kubernetes.selectors import read_selectors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pvelab.kubernetes.operations import Target
    from pvelab.kubernetes.store import Store, StoredChange

__all__ = ["stream_changes"]

_LONGEST_S = 1800.0


async def stream_changes(request: web.BaseRequest, store: Store, target: Target) -> web.StreamResponse:
    """Answer a watch until its time is over, its client is gone, or the server stops."""
    query = request.query
    names = f"metadata.name={target.name}" if target.name else query.get("fieldSelector", "")
    selects = read_selectors(query.get("labelSelector", ""), names)
    timeout_s = float(query.get("timeoutSeconds") or _LONGEST_S)
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    watch = _Watch(response, target, selects, sends_bookmarks=query.get("allowWatchBookmarks") == "true")
    asked = query.get("resourceVersion", "")
    version = int(asked) if asked.isdecimal() else 0
    try:
        if version == 0:
            version = await watch.send_all(store)
        await _follow(store, watch, version, timeout_s)
    except problems.KubeStatusError as problem:
        await watch.send("ERROR", problem.document())
    except ConnectionError:
        return response
    await response.write_eof()
    return response


async def _follow(store: Store, watch: _Watch, version: int, timeout_s: float) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout_s
    while not store.is_closed:
        for change in store.changes_since(version):
            version = change.version
            await watch.send_change(change)
        if not await store.wait(version, max(0.0, until - loop.time())):
            await watch.send_bookmark(version)
            return


class _Watch:
    """One watch: where its lines go, and which objects it is about."""

    def __init__(
        self,
        response: web.StreamResponse,
        target: Target,
        selects: Callable[[Mapping[str, Any]], bool],
        *,
        sends_bookmarks: bool,
    ) -> None:
        self._response = response
        self._target = target
        self._selects = selects
        self._sends_bookmarks = sends_bookmarks
        self._shown: set[tuple[str, str]] = set()

    async def send_all(self, store: Store) -> int:
        """Send the objects that are there; return the version that they are of."""
        kind = self._target.kind
        for key, record in store.list_records(kind.group, kind.plural, self._target.namespace):
            if self._selects(record.object):
                self._shown.add((key.namespace, key.name))
                await self.send("ADDED", record.document(kind.api_version))
        return store.version

    async def send_change(self, change: StoredChange) -> None:
        """Send a change of an object that the watch is about."""
        target, key = self._target, change.key
        if (key.group, key.plural) != (target.kind.group, target.kind.plural):
            return
        if target.namespace not in ("", key.namespace):
            return
        if self._selects(change.record.object):
            await self.send(change.change, change.record.document(target.kind.api_version))

    async def send_bookmark(self, version: int) -> None:
        """Send how far the watch has come."""
        if self._sends_bookmarks:
            kind = self._target.kind
            metadata = {"resourceVersion": str(version)}
            await self.send(
                "BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
            )

    async def send(self, change: str, obj: Mapping[str, Any]) -> None:
        """Send one line."""
        await self._response.write(orjson.dumps({"type": change, "object": obj}) + b"\n")
