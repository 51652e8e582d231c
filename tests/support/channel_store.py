"""Both ends of the channel through which an inner run uses the store of the outer run, in one process."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from stackyard.clients.objects import Objects
from stackyard.operator.delegation.store_channel import ChannelObjects, OfferedStore, StoreAnswers

__all__ = ["SCOPE", "open_channel_store"]

SCOPE = "inner/manifest!m!lab/node/"


def open_channel_store(objects: Objects) -> Callable[[], ChannelObjects]:
    """Return what opens the inner end of a channel to a store; each has an outer end of its own."""

    return lambda: _Ends(objects)


class _Ends(ChannelObjects):
    """The inner end, with the outer one in a thread of its own."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(self._pass_on)
        self._objects = objects
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    def _pass_on(self, request: Mapping[str, Any]) -> None:
        self._loop.call_soon_threadsafe(self._answers.take, json.loads(json.dumps(request)))

    async def _serve(self) -> None:
        async def write(line: bytes) -> None:
            self.answer(json.loads(line)["store"])

        offered = OfferedStore(objects=self._objects, scope=SCOPE, site_key="")
        self._answers, self._loop = StoreAnswers(offered, write), asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._ready.set()
        await self._over.wait()
