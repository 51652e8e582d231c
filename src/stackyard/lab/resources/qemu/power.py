"""Starting and stopping VMs: `/nodes/{node}/qemu/{vmid}/status/{start,stop,shutdown}`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.latency import Work
from stackyard.lab.problems import PveError, bad_parameter
from stackyard.lab.resources.qemu.pending import Changes
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from stackyard.lab.call import Call
    from stackyard.lab.tasks import Task
    from stackyard.lab.world import World

__all__ = ["shutdown_vm", "start_guest", "start_vm", "stop_guest", "stop_vm"]

_ROOT_ONLY = (
    *("stateuri", "skiplock", "migratedfrom", "migration_type", "migration_network", "targetstorage"),
    *("force-cpu", "with-conntrack-state", "nets-host-mtu", "keepActive"),
)
_SHUTDOWN_TIMEOUT_S = 60


@route("POST /nodes/{node}/qemu/{vmid}/status/start")
def start_vm(call: Call) -> Any:
    """Start a VM in a task."""
    _check_root_only(call)
    call.world.cluster.require_quorum()
    world, vmid, node = call.world, call.vmid, call.node
    skiplock = bool(call.params.get("skiplock"))

    async def work(task: Task) -> None:
        await start_guest(world, task, vmid, node, skiplock=skiplock)

    return call.start_task("qmstart", vmid, work)


@route("POST /nodes/{node}/qemu/{vmid}/status/stop")
def stop_vm(call: Call) -> Any:
    """Stop a VM in a task."""
    _check_root_only(call)
    world, vmid, node = call.world, call.vmid, call.node
    skiplock = bool(call.params.get("skiplock"))

    async def work(task: Task) -> None:
        async with world.locks.guest("qemu", vmid):
            guest = world.guests.require("qemu", node, vmid)
            if guest["status"] == "running":
                if not skiplock:
                    world.guests.check_unlocked(guest)
                await task.spend(Work.STOP)
                with task.step():
                    stop_guest(world, vmid)

    return call.start_task("qmstop", vmid, work)


@route("POST /nodes/{node}/qemu/{vmid}/status/shutdown")
def shutdown_vm(call: Call) -> Any:
    """Ask the guest to shut down, in a task that gives up or stops it after the timeout."""
    _check_root_only(call)
    world, vmid, node, params = call.world, call.vmid, call.node, call.params
    timeout_s = params.get("timeout", _SHUTDOWN_TIMEOUT_S)
    skiplock, force = bool(params.get("skiplock")), bool(params.get("forceStop"))

    async def work(task: Task) -> None:
        async with world.locks.guest("qemu", vmid):
            guest = world.guests.require("qemu", node, vmid)
            if guest["status"] != "running":
                return
            if not skiplock:
                world.guests.check_unlocked(guest)
            if world.latency.seconds(Work.SHUTDOWN) > timeout_s:
                await task.sleep(timeout_s)
                if not force:
                    raise PveError("VM quit/powerdown failed - got timeout")
                task.log("VM quit/powerdown failed - terminating now with SIGTERM")
            else:
                await task.spend(Work.SHUTDOWN)
            with task.step():
                stop_guest(world, vmid)

    return call.start_task("qmshutdown", vmid, work)


async def start_guest(world: World, task: Task, vmid: int, node: str, *, skiplock: bool = False) -> None:
    """Start a VM as part of a task.

    Raises:
        PveError: It is a template, locked, running already, or not there.
    """
    async with world.locks.guest("qemu", vmid):
        guest = world.guests.require("qemu", node, vmid)
        if guest["config"].get("template"):
            raise PveError("you can't start a vm if it's a template")
        if not skiplock:
            world.guests.check_unlocked(guest)
        if guest["status"] == "running":
            raise PveError(f"VM {vmid} already running")
        await task.spend(Work.START)
        with task.step():
            applied = Changes(world, guest).apply(at_start=True)
            started = world.clock.now()
            run = {"pid": 1000 + task.upid.pid, "qmpstatus": "running"}
            world.guests.update(applied, status="running", started=started, run=run)


def stop_guest(world: World, vmid: int) -> None:
    """Make a VM stopped, in the running transaction; what was pending takes effect."""
    guest = world.guests.get(vmid)
    if guest is not None:
        stopped = world.guests.update(guest, status="stopped", started=None, run={})
        Changes(world, stopped).apply()


def _check_root_only(call: Call) -> None:
    for name in _ROOT_ONLY:
        if call.params.get(name) and not call.is_root:
            raise bad_parameter(name, "Only root may use this option.")
