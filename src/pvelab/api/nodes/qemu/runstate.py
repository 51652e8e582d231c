"""The rest of a VM's power: `/nodes/{node}/qemu/{vmid}/status/{reboot,reset,suspend,resume}`."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu.memory import allocate_state, check_can_save, state_storage
from pvelab.api.nodes.qemu.power import check_root_only, is_paused, shut_down, start_guest
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.ha.requests import is_managed_by_ha
from pvelab.world.rollback import undo_on_failure

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["reboot_vm", "reset_vm", "resume_vm", "suspend_vm"]


@route("POST /nodes/{node}/qemu/{vmid}/status/reboot")
def reboot_vm(call: Call) -> Any:
    """Shut a VM down in a task, and start it again in another one."""
    world, vmid, node = call.world, call.vmid, call.node
    timeout_s = call.params.get("timeout")
    guest = _require_running(call)
    if is_paused(guest):
        raise PveError("VM is paused - cannot shutdown")

    async def start(task: Task) -> None:
        await start_guest(world, task, vmid, node)

    async def work(task: Task) -> None:
        async with world.locks.guest("qemu", vmid):
            guest = world.guests.require("qemu", node, vmid)
            if guest["status"] != "running":
                return
            world.guests.check_unlocked(guest)
            await shut_down(world, task, guest, timeout_s=timeout_s)
            with task.step():
                # Proxmox starts it from outside when QEMU has ended, which is a task of its own.
                task.start("qmstart", vmid, start)

    return call.start_task("qmreboot", vmid, work)


@route("POST /nodes/{node}/qemu/{vmid}/status/reset")
def reset_vm(call: Call) -> Any:
    """Reset a running VM in a task: QEMU continues, the guest boots again."""
    check_root_only(call)
    world, vmid, node = call.world, call.vmid, call.node
    skiplock = bool(call.params.get("skiplock"))
    _require_running(call)

    async def work(task: Task) -> None:
        async with world.locks.guest("qemu", vmid):
            guest = world.guests.require("qemu", node, vmid)
            if not skiplock:
                world.guests.check_unlocked(guest)
            if guest["status"] != "running":
                raise PveError(f"VM {vmid} not running")
            with task.step():
                run = {**guest["run"], "booting_since": world.clock.now()}
                world.guests.update(guest, run=run)

    return call.start_task("qmreset", vmid, work)


@route("POST /nodes/{node}/qemu/{vmid}/status/suspend")
def suspend_vm(call: Call) -> Any:
    """Pause a running VM, or write its memory to disk and stop it."""
    check_root_only(call)
    world, vmid, node, params = call.world, call.vmid, call.node, call.params
    guest = _require_running(call)
    skiplock, to_disk = bool(params.get("skiplock")), bool(params.get("todisk"))
    storage = params.get("statestorage")
    if to_disk and is_managed_by_ha(call, "qemu"):
        raise PveError("Cannot suspend HA managed VM to disk")
    if to_disk:
        storage = _check_to_disk(call, guest, storage)

    async def pause(task: Task) -> None:
        async with world.locks.guest("qemu", vmid):
            guest = world.guests.require("qemu", node, vmid)
            if not skiplock and guest["config"].get("lock") != "backup":
                world.guests.check_unlocked(guest)
            if guest["status"] != "running":
                raise PveError(f"VM {vmid} not running")
            await task.spend(Work.SUSPEND)
            with task.step():
                world.guests.update(guest, run={**guest["run"], "qmpstatus": "paused"})

    async def hibernate(task: Task) -> None:
        await _hibernate(world, task, guest, str(storage), skiplock=skiplock)

    return call.start_task(*(("qmsuspend", vmid, hibernate) if to_disk else ("qmpause", vmid, pause)))


@route("POST /nodes/{node}/qemu/{vmid}/status/resume")
def resume_vm(call: Call) -> Any:
    """Let a paused VM continue, or start one that was suspended to disk."""
    check_root_only(call)
    world, vmid, node = call.world, call.vmid, call.node
    skiplock = bool(call.params.get("skiplock"))
    guest = world.guests.require("qemu", node, vmid)
    suspended = guest["config"].get("lock") == "suspended"
    if not suspended and guest["status"] != "running":
        raise PveError(f"VM {vmid} not running")

    async def work(task: Task) -> None:
        if suspended:
            await start_guest(world, task, vmid, node, skiplock=skiplock)
            return
        async with world.locks.guest("qemu", vmid):
            guest = world.guests.require("qemu", node, vmid)
            if guest["status"] != "running":
                raise PveError(f"VM {vmid} not running")
            if not is_paused(guest):
                return
            if not skiplock and guest["config"].get("lock") != "backup":
                world.guests.check_unlocked(guest)
            await task.spend(Work.RESUME)
            with task.step():
                world.guests.update(guest, run={**guest["run"], "qmpstatus": "running"})

    return call.start_task("qmresume", vmid, work)


def _require_running(call: Call) -> Document:
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    if guest["status"] != "running":
        raise PveError(f"VM {call.vmid} not running")
    return guest


def _check_to_disk(call: Call, guest: Document, storage: str | None) -> str:
    call.check(f"/vms/{call.vmid}", "VM.Config.Disk")
    if any(key.startswith("hostpci") for key in guest["config"]):
        raise PveError(
            "cannot suspend VM to disk due to passed-through PCI device(s), which lack the"
            " possibility to save/restore their internal state"
        )
    chosen = storage or state_storage(call.world, guest["config"])
    call.check(f"/storage/{chosen}", "Datastore.AllocateSpace")
    return chosen


async def _hibernate(world: World, task: Task, guest: Document, storage: str, *, skiplock: bool) -> None:
    vmid, node = int(guest["vmid"]), str(guest["node"])
    today = datetime.datetime.fromtimestamp(world.clock.now(), datetime.UTC).strftime("%Y-%m-%d")
    async with world.locks.guest("qemu", vmid):
        guest = world.guests.require("qemu", node, vmid)
        if guest["config"].get("lock") == "backup":
            raise PveError("cannot suspend to disk during backup")
        if not skiplock:
            world.guests.check_unlocked(guest)
        check_can_save(guest["config"])
        state = await allocate_state(world, task, guest, f"suspend-{today}", storage)
        with task.step():
            world.guests.update(guest, config={**guest["config"], **state, "lock": "suspending"})

    def forget_state() -> None:
        # As on Proxmox the lock stays, to show that something went wrong; the volume does not.
        with task.step():
            guest = world.guests.require("qemu", node, vmid)
            world.volumes.free(str(state["vmstate"]), node)
            left = {key: value for key, value in guest["config"].items() if key not in state}
            world.guests.update(guest, config=left)

    with undo_on_failure(forget_state):
        await task.spend(Work.SUSPEND)
    task.log("State saved, quitting")
    with task.step():
        guest = world.guests.require("qemu", node, vmid)
        config = {**guest["config"], "lock": "suspended"}
        world.guests.update(guest, config=config, status="stopped", started=None, run={})
