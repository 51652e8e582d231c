"""Starting and stopping all guests of a node: `/nodes/{node}/startall` and `/nodes/{node}/stopall`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc.power import start_container, stop_container
from pvelab.api.nodes.qemu.power import start_guest, stop_guest
from pvelab.faults.latency import Work
from pvelab.server.params.texts import split_list
from pvelab.server.problems import not_permitted
from pvelab.server.routing import route
from pvelab.world.ha.config import is_managed, sid_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task, WorkFunction
    from pvelab.world.world import World

__all__ = ["start_all", "start_guests", "stop_all", "stop_guests"]

# Guests without an order of their own start after all others.
_LAST = 2**63


@route("POST /nodes/{node}/startall")
def start_all(call: Call) -> Any:
    """Start the guests that start with the node, or those of a list, in their order."""
    world, node, wanted = call.world, call.node, _read_vmids(call)
    force = bool(call.params.get("force"))

    async def work(task: Task) -> None:
        await start_guests(world, task, node, wanted=wanted, force=force)

    return call.start_task("startall", "", work)


@route("POST /nodes/{node}/stopall")
def stop_all(call: Call) -> Any:
    """Shut the guests down, or those of a list, in the reverse of their order."""
    world, node, wanted = call.world, call.node, _read_vmids(call)

    async def work(task: Task) -> None:
        await stop_guests(world, task, node, wanted=wanted)

    return call.start_task("stopall", "", work)


async def start_guests(
    world: World, task: Task, node: str, *, wanted: Collection[int] = (), force: bool = False
) -> None:
    """Start guests of a node, each in a task of its own; one that fails does not keep the next from it."""
    for guest in sorted(_select_guests(world, node, wanted), key=_order):
        if guest["status"] == "running" or not (force or guest["config"].get("onboot")):
            continue
        world.cluster.require_quorum()
        name, vmid = _name(guest), int(guest["vmid"])
        task.log(f"Starting {name} {vmid}")
        kind = "qmstart" if guest["type"] == "qemu" else "vzstart"
        status = await _run(world, task, kind, vmid, _make_start_work(world, node, guest))
        if status != "OK" and not status.startswith("WARNINGS"):
            task.log(f"Starting {name} {vmid} failed: {status}")


async def stop_guests(
    world: World, task: Task, node: str, *, wanted: Collection[int] = (), managed: bool = False
) -> None:
    """Shut guests of a node down, each in a task of its own; those that HA manages only if asked to."""
    for guest in sorted(_select_guests(world, node, wanted, managed=managed), key=_order, reverse=True):
        if guest["status"] != "running":
            continue
        vmid = int(guest["vmid"])
        task.log(f"Stopping {_name(guest)} {vmid} (timeout = 180 seconds)")
        kind = "qmshutdown" if guest["type"] == "qemu" else "vzshutdown"
        await _run(world, task, kind, vmid, _make_stop_work(world, guest))


def _read_vmids(call: Call) -> list[int]:
    """Return the listed guests, if the caller may switch them on and off."""
    listed = [int(vmid) for vmid in split_list(call.params.get("vms", ""))]
    if not call.may("/", "VM.PowerMgmt"):
        if not listed:
            raise not_permitted("/, VM.PowerMgmt")
        for vmid in listed:
            call.check(f"/vms/{vmid}", "VM.PowerMgmt")
    return listed


def _select_guests(
    world: World, node: str, wanted: Collection[int], *, managed: bool = False
) -> list[Document]:
    return [
        guest
        for guest in world.guests.on_node(node)
        if (managed or _is_chosen(world, guest, wanted)) and not guest["config"].get("template")
    ]


def _is_chosen(world: World, guest: Document, wanted: Collection[int]) -> bool:
    """Return whether a guest is meant: those that HA manages only where they are named."""
    if wanted:
        return guest["vmid"] in wanted
    return not is_managed(world.store, sid_of(str(guest["type"]), guest["vmid"]))


def _order(guest: Document) -> tuple[int, int]:
    found = re.search(r"(?:order=|^)(\d+)", str(guest["config"].get("startup", "")))
    return (int(found[1]) if found else _LAST, int(guest["vmid"]))


def _name(guest: Document) -> str:
    return "VM" if guest["type"] == "qemu" else "CT"


def _make_start_work(world: World, node: str, guest: Document) -> WorkFunction:
    start = start_guest if guest["type"] == "qemu" else start_container

    async def work(task: Task) -> None:
        await start(world, task, int(guest["vmid"]), node)

    return work


def _make_stop_work(world: World, guest: Document) -> WorkFunction:
    stop = stop_guest if guest["type"] == "qemu" else stop_container
    vmid = int(guest["vmid"])

    async def work(task: Task) -> None:
        async with world.locks.guest(str(guest["type"]), vmid):
            await task.spend(Work.SHUTDOWN)
            with task.step():
                stop(world, vmid)

    return work


async def _run(world: World, task: Task, kind: str, vmid: int, work: WorkFunction) -> str:
    """Run a task to its end and return how it ended."""
    with task.step():
        upid = task.start(kind, vmid, work)
    await world.tasks.wait(upid)
    return str((world.tasks.get(upid) or {}).get("status", "unexpected status"))
