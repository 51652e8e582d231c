"""Doing something to many guests of the cluster at once: `/cluster/bulk-action/guest`.

Each guest gets the call that it would get alone, in the name of who asked for all, so that locks, HA and
permissions count as they do there.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from stackyard.lab.call import Call
from stackyard.lab.ha.config import is_managed, sid_of
from stackyard.lab.problems import PveError, not_permitted
from stackyard.lab.resources.lxc import migrate as lxc_migrate
from stackyard.lab.resources.lxc import power as lxc_power
from stackyard.lab.resources.qemu import migrate as qemu_migrate
from stackyard.lab.resources.qemu import power as qemu_power
from stackyard.lab.resources.qemu import runstate
from stackyard.lab.routing import Route, route

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stackyard.lab.store import Document
    from stackyard.lab.tasks import Task
    from stackyard.lab.world import World

__all__ = ["bulk_migrate", "bulk_shutdown", "bulk_start", "bulk_suspend", "list_actions", "list_guests"]

_LAST = 2**31
_NAMES = {"qemu": "VM", "lxc": "CT"}
_SHUTDOWN_TIMEOUT_S = 180

# The call that a guest gets: what answers it and its parameters; None if there is nothing to do.
Order = tuple[Route, dict[str, Any]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bulk:
    """One thing done to many guests.

    Attributes:
        call: Who asked for it, and how.
        task: The task that it is the work of.
        order: Says what is done to a guest, and logs it.
        doing: What stands before the name of a guest that it failed for: `Starting`.
        failure: What stands before the numbers of all that it failed for.
        most: How many are worked on at once.
    """

    call: Call
    task: Task
    order: Callable[[Document], Order]
    doing: str
    failure: str
    most: int

    async def run(self, groups: Iterable[list[int]]) -> None:
        """Do it, one group after the other.

        Raises:
            PveError: It failed for some.
        """
        failed: list[int] = []
        for group in groups:
            slots = asyncio.Semaphore(self.most)
            results = await asyncio.gather(*(self._one(vmid, slots) for vmid in group))
            failed += [vmid for vmid, done in zip(group, results, strict=True) if not done]
        if failed:
            raise PveError(f"{self.failure} {', '.join(str(vmid) for vmid in failed)}")

    async def _one(self, vmid: int, slots: asyncio.Semaphore) -> bool:
        world = self.call.world
        async with slots:
            guest = world.guests.get(vmid)
            order = None if guest is None else self.order(guest)
            if guest is None or order is None:
                return True
            try:
                world.cluster.require_node(str(guest["node"]))
                with self.task.step():
                    upid = self._begin(guest, order)
            except PveError as err:
                self.task.warn(err.text)
                return False
            await world.tasks.wait(upid)
            status = str((world.tasks.get(upid) or {}).get("status", "unexpected status"))
            if status == "OK" or status.startswith("WARNINGS"):
                return True
            self.task.warn(f"{self.doing} {_title(guest)} failed: {status}")
            return False

    def _begin(self, guest: Document, order: tuple[Route, dict[str, Any]]) -> str:
        bound, parameters = order
        named = {"node": guest["node"], "vmid": guest["vmid"], **parameters}
        alone = Call(world=self.call.world, authid=self.call.authid, params=named)
        return str(bound.handler(alone))


@route("GET /cluster/bulk-action")
def list_actions(_call: Call) -> Any:
    """List what many things can be done to."""
    return [{"name": "guest"}]


@route("GET /cluster/bulk-action/guest")
def list_guests(_call: Call) -> Any:
    """List what can be done to many guests."""
    return [{"name": name} for name in ("start", "shutdown", "migrate", "suspend")]


@route("POST /cluster/bulk-action/guest/start")
def bulk_start(call: Call) -> Any:
    """Start many guests, those with an order first; a paused VM goes on."""
    wanted = _wanted(call, "VM.PowerMgmt")

    async def work(task: Task) -> None:
        def order(guest: Document) -> Order:
            if guest["status"] == "running":
                if qemu_power.is_paused(guest):
                    task.log(f"Starting {_title(guest)}")
                    return runstate.resume_vm, {}
                task.warn(f"Skipping {_title(guest)}, already running.")
                return None
            task.log(f"Starting {_title(guest)}")
            return (qemu_power.start_vm if guest["type"] == "qemu" else lxc_power.start), {}

        _announce(task, wanted, "Starting")
        bulk = _bulk(call, task, order, ("Starting", "Some guests failed to start:"))
        await bulk.run(_in_order(call.world, wanted))

    return call.start_task("bulk-start", "", work)


@route("POST /cluster/bulk-action/guest/shutdown")
def bulk_shutdown(call: Call) -> Any:
    """Shut many guests down, in the reverse of their order."""
    wanted, params = _wanted(call, "VM.PowerMgmt"), call.params

    async def work(task: Task) -> None:
        def order(guest: Document) -> Order:
            if guest["status"] != "running":
                task.warn(f"Skipping {_title(guest)}, not running.")
                return None
            if qemu_power.is_paused(guest) and not params.get("force-stop"):
                task.warn(f"Skipping {_title(guest)}, resume paused VM before shutdown.")
                return None
            down = re.search(r"(?:^|,)down=(\d+)", str(guest["config"].get("startup", "")))
            timeout_s = int(down[1]) if down else int(params.get("timeout", _SHUTDOWN_TIMEOUT_S))
            task.log(f"Shutting down {_title(guest)} (Timeout = {timeout_s} seconds)")
            shutdown = qemu_power.shutdown_vm if guest["type"] == "qemu" else lxc_power.shutdown
            return shutdown, {"forceStop": params.get("force-stop", 1), "timeout": timeout_s}

        _announce(task, wanted, "Shutting down")
        bulk = _bulk(call, task, order, ("Stopping", "Some guests failed to shutdown"))
        await bulk.run(reversed(_in_order(call.world, wanted)))

    return call.start_task("bulk-shutdown", "", work)


@route("POST /cluster/bulk-action/guest/suspend")
def bulk_suspend(call: Call) -> Any:
    """Pause many VMs, or write their memory to disk."""
    wanted, params = _wanted(call, "VM.PowerMgmt"), call.params
    if params.get("to-disk"):
        _wanted(call, "VM.Config.Disk")
        if params.get("statestorage"):
            call.check(f"/storage/{params['statestorage']}", "Datastore.AllocateSpace")

    async def work(task: Task) -> None:
        def order(guest: Document) -> Order:
            if guest["type"] != "qemu":
                task.warn(f"skipping {guest['vmid']}, only VMs can be suspended")
                return None
            if guest["status"] != "running":
                task.warn(f"Skipping VM {guest['vmid']}, not running.")
                return None
            task.log(f"Suspending VM {guest['vmid']}")
            given = {"todisk": params.get("to-disk", 0)}
            if params.get("to-disk") and "statestorage" in params:
                given["statestorage"] = params["statestorage"]
            return runstate.suspend_vm, given

        _announce(task, wanted, "Suspending")
        bulk = _bulk(call, task, order, ("Stopping", "Some guests failed to suspend"))
        await bulk.run(reversed(_in_order(call.world, wanted)))

    return call.start_task("bulk-suspend", "", work)


@route("POST /cluster/bulk-action/guest/migrate")
def bulk_migrate(call: Call) -> Any:
    """Take many guests to one node."""
    wanted, params, target = _wanted(call, "VM.Migrate"), call.params, str(call.params["target"])

    async def work(task: Task) -> None:
        def order(guest: Document) -> Order:
            if guest["node"] == target:
                task.warn(f"{_title(guest)} already on {target}, skipping.")
                return None
            task.log(f"Migrating {_title(guest)}")
            given: dict[str, Any] = {"target": target}
            if guest["type"] == "lxc":
                given |= {"restart": params["online"]} if "online" in params else {}
                return lxc_migrate.migrate, given
            given |= {key: params[key] for key in ("online", "with-local-disks") if key in params}
            return qemu_migrate.migrate_vm, given

        _announce(task, wanted, "Migrating", f" to {target}")
        guests = [guest for guest in call.world.guests.all().values() if _is_meant(guest, wanted)]
        bulk = _bulk(call, task, order, ("Migrating", "Some guests failed to migrate"), most=1)
        await bulk.run([sorted(int(guest["vmid"]) for guest in guests)])

    return call.start_task("bulk-migrate", "", work)


def _bulk(
    call: Call, task: Task, order: Callable[[Document], Order], words: tuple[str, str], *, most: int = 4
) -> _Bulk:
    options = call.store.get("cluster", "options") or {}
    chosen = call.params.get("max-workers") or call.params.get("maxworkers") or options.get("max_workers")
    return _Bulk(
        call=call, task=task, order=order, doing=words[0], failure=words[1], most=int(chosen or most)
    )


def _wanted(call: Call, privilege: str) -> list[int]:
    """Return the guests that are named, if the caller may do it to them (or to all, where none is)."""
    listed = [int(vmid) for vmid in call.params.get("vms", ())]
    for vmid in listed:
        call.check(f"/vms/{vmid}", privilege)
    if not listed and not call.may("/", privilege):
        raise not_permitted(f"/, {privilege}")
    return listed


def _announce(task: Task, wanted: list[int], doing: str, rest: str = "") -> None:
    if wanted:
        task.log(f"{doing} guests{rest}: {', '.join(str(vmid) for vmid in wanted)}")
    else:
        task.log(f"{doing} all guests{rest}")


def _in_order(world: World, wanted: list[int]) -> list[list[int]]:
    """Return the guests in groups of the same order; those of HA and templates only where they are named."""
    chosen = [
        (_rank(guest), int(guest["vmid"]))
        for guest in world.guests.all().values()
        if _is_meant(guest, wanted)
        and not guest["config"].get("template")
        and (wanted or not is_managed(world.store, sid_of(str(guest["type"]), guest["vmid"])))
    ]
    return [[vmid for _, vmid in group] for _, group in groupby(sorted(chosen), key=lambda pair: pair[0])]


def _is_meant(guest: Document, wanted: list[int]) -> bool:
    return not wanted or guest["vmid"] in wanted


def _rank(guest: Document) -> int:
    found = re.search(r"(?:order=|^)(\d+)", str(guest["config"].get("startup", "")))
    return int(found[1]) if found else _LAST


def _title(guest: Document) -> str:
    return f"{_NAMES[str(guest['type'])]} {guest['vmid']}"
