"""Other machines at addresses that a cluster wants: each has a certificate of its own and refuses callers."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import orjson

from pvelab.faults.talos import list_taken_addresses
from pvelab.server.problems import defect
from stackyard.base import serving
from stackyard.base.serving import respond

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["run_strangers"]

_FAULTS = "faults"
_REFUSAL = orjson.dumps(
    {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }
)


@contextlib.asynccontextmanager
async def run_strangers(world: World) -> AsyncIterator[None]:
    """Answer at the addresses that faults name, for the length of the block."""
    changed = asyncio.Event()

    def notice(_key: str, old: Document | None, new: Document | None) -> None:
        if "address-taken" in [document["kind"] for document in (old, new) if document is not None]:
            world.store.after_commit(changed.set)

    if list_taken_addresses(world.store):
        changed.set()
    world.store.watch(_FAULTS, notice)
    task = asyncio.create_task(_follow(world, changed))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _follow(world: World, changed: asyncio.Event) -> None:
    running: dict[tuple[str, int], contextlib.AsyncExitStack] = {}
    try:
        while True:
            await changed.wait()
            changed.clear()
            wanted = list_taken_addresses(world.store)
            for place in set(running) - wanted:
                await running.pop(place).aclose()
            for place in wanted - set(running):
                running[place] = await _answer_at(*place)
    finally:
        for stack in running.values():
            await stack.aclose()


async def _answer_at(host: str, port: int) -> contextlib.AsyncExitStack:
    stack = contextlib.AsyncExitStack()
    tls = serving.Tls(serving.make_certificate([host]))
    try:
        await stack.enter_async_context(serving.serve(_refuse, bind=host, port=port, tls=tls))
    except serving.ListenError as err:
        # A cluster has the address already: then nobody else can take it.
        defect(f"another machine at {host}:{port}", err)
    return stack


async def _refuse(_request: web.BaseRequest) -> web.Response:
    return respond(401, _REFUSAL)
