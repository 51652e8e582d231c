"""Letting a lab that starts have guests of all kinds: nested nodes, real VMs, and what they reach here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from pvelab.machines.machine import Kind
from pvelab.nested.files import StorageFolders
from pvelab.nested.maker import NestedBoots, NestedMaker
from pvelab.nested.node import inner_options, prepare

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from aiohttp import web

    from pvelab.nested.uplink import Uplink
    from pvelab.runtime.start import Options, Running
    from pvelab.server.http import Api
    from pvelab.world.world import World

__all__ = ["Answer", "make_answer", "open_nest"]

NESTED = "nested"
QEMU = "qemu"

Answer = Callable[["web.BaseRequest"], "Coroutine[Any, Any, web.StreamResponse]"]
Start = Callable[["Options", "Uplink"], AbstractAsyncContextManager["Running"]]


def open_nest(world: World, options: Options, start: Start) -> NestedBoots:
    """Prepare the inside of a lab's guests; return who boots those that no one has to look at first.

    Args:
        world: The lab.
        options: How it runs.
        start: Starts a lab inside a guest.
    """

    def inside(uplink: Uplink, folder: Path) -> AbstractAsyncContextManager[Running]:
        return start(inner_options(options, uplink, folder), uplink)

    def place(name: str) -> Path | None:
        return None if options.data is None else options.data / name

    prepare(world)
    world.nest.exposed = frozenset(options.expose)
    if options.guests is Kind.QEMU:
        from pvelab.machines.qemu.maker import QemuMaker  # lazy: few labs have guests that really boot

        is_open = options.allow_downloads
        world.machines.add(lambda maker: QemuMaker(world, place(QEMU), containers=maker, is_open=is_open))
    world.machines.add(lambda maker: NestedMaker(maker, world, place(NESTED), inside))
    return NestedBoots(world)


def make_answer(world: World, api: Api) -> Answer:
    """Return what answers requests; a nested node first takes in files that its programs made."""
    if world.uplink is None:
        return api.handle
    folders = StorageFolders(world)
    world.nest.take_in = folders.take_in

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await folders.take_in()
        return await api.handle(request)

    return answer
