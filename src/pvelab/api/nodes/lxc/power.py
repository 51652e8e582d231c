"""Starting and stopping containers: `/nodes/{node}/lxc/{vmid}/status/...`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.disks import VolumeMaker
from pvelab.api.nodes.lxc.mountpoints import MountType
from pvelab.api.nodes.lxc.pending import Changes
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.bridges import exists
from pvelab.world.ha.requests import ask_to_start, ask_to_stop, is_managed_by_ha
from pvelab.world.storage.volume_names import parse_name
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = [
    "reboot",
    "resume",
    "shut_container_down",
    "shutdown",
    "start",
    "start_container",
    "stop",
    "stop_container",
    "suspend",
]

_SHUTDOWN_TIMEOUT_S = 60
_CHECKPOINT = "command 'lxc-checkpoint -n {vmid} -r --foreground -D /var/lib/vz/dump' failed: exit code 1"


@route("POST /nodes/{node}/lxc/{vmid}/status/start")
def start(call: Call) -> Any:
    """Start a container in a task."""
    skiplock = _skiplock(call)
    world, vmid, node = call.world, call.vmid, call.node
    if world.guests.require("lxc", node, vmid)["status"] == "running":
        raise PveError(f"CT {vmid} already running")
    world.cluster.require_quorum()
    if is_managed_by_ha(call, "lxc"):
        return ask_to_start(call, "lxc")

    async def work(task: Task) -> None:
        await start_container(world, task, vmid, node, skiplock=skiplock)

    return call.start_task("vzstart", vmid, work)


@route("POST /nodes/{node}/lxc/{vmid}/status/stop")
def stop(call: Call) -> Any:
    """Stop a container at once, in a task; with `overrule-shutdown` a shutdown in progress is broken off."""
    skiplock = _skiplock(call)
    world, vmid, node = call.world, call.vmid, call.node
    _require_running(call)
    overrule = bool(call.params.get("overrule-shutdown"))
    if is_managed_by_ha(call, "lxc"):
        if overrule:
            raise bad_parameter("overrule-shutdown", "Not applicable for HA resources.")
        return ask_to_stop(call, "lxc", 0)

    async def work(task: Task) -> None:
        if overrule:
            _stop_shutdowns(world, task, vmid, node)
        async with world.locks.guest("lxc", vmid):
            guest = world.guests.require("lxc", node, vmid)
            if not skiplock:
                world.guests.check_unlocked(guest, but="mounted")
            await task.spend(Work.STOP)
            with task.step():
                stop_container(world, vmid)

    return call.start_task("vzstop", vmid, work)


@route("POST /nodes/{node}/lxc/{vmid}/status/shutdown")
def shutdown(call: Call) -> Any:
    """Ask the container to shut down, in a task that gives up or stops it after the timeout."""
    world, vmid, node, params = call.world, call.vmid, call.node, call.params
    _require_running(call)
    timeout_s = params.get("timeout", _SHUTDOWN_TIMEOUT_S)
    force = bool(params.get("forceStop"))
    if is_managed_by_ha(call, "lxc"):
        return ask_to_stop(call, "lxc", timeout_s)

    async def work(task: Task) -> None:
        await shut_container_down(
            world, task, world.guests.require("lxc", node, vmid), timeout_s, force=force
        )

    return call.start_task("vzshutdown", vmid, work)


@route("POST /nodes/{node}/lxc/{vmid}/status/reboot")
def reboot(call: Call) -> Any:
    """Shut a container down and start it again, in a task; what is pending takes effect."""
    world, vmid, node = call.world, call.vmid, call.node
    if world.guests.require("lxc", node, vmid)["status"] != "running":
        raise PveError(f"VM {vmid} not running")
    timeout_s = call.params.get("timeout", _SHUTDOWN_TIMEOUT_S)

    async def work(task: Task) -> None:
        async with world.locks.guest("lxc", vmid):
            if world.guests.require("lxc", node, vmid)["status"] != "running":
                return
            await _shut_down(world, task, timeout_s, force=True)
            with task.step():
                stop_container(world, vmid)
            await _start(world, task, world.guests.require("lxc", node, vmid))

    return call.start_task("vzreboot", vmid, work)


@route("POST /nodes/{node}/lxc/{vmid}/status/suspend")
def suspend(call: Call) -> Any:
    """Write a running container to disk, in a task; it is stopped then."""
    world, vmid, node = call.world, call.vmid, call.node
    _require_running(call)

    async def work(task: Task) -> None:
        async with world.locks.guest("lxc", vmid):
            guest = world.guests.require("lxc", node, vmid)
            world.guests.check_unlocked(guest)
            await task.spend(Work.SUSPEND)
            with task.step():
                world.guests.update(guest, status="stopped", started=None, run={"checkpoint": 1})

    return call.start_task("vzsuspend", vmid, work)


@route("POST /nodes/{node}/lxc/{vmid}/status/resume")
def resume(call: Call) -> Any:
    """Bring back a suspended container, in a task."""
    world, vmid, node = call.world, call.vmid, call.node
    if world.guests.require("lxc", node, vmid)["status"] == "running":
        raise PveError(f"CT {vmid} already running")

    async def work(task: Task) -> None:
        guest = world.guests.require("lxc", node, vmid)
        if not guest["run"].get("checkpoint"):
            raise PveError(_CHECKPOINT.format(vmid=vmid))
        await task.spend(Work.RESUME)
        with task.step():
            _mark_running(world, guest, task)

    return call.start_task("vzresume", vmid, work)


async def start_container(world: World, task: Task, vmid: int, node: str, *, skiplock: bool = False) -> None:
    """Start a container as part of a task.

    Raises:
        PveError: It is a template, locked, running already, not there, or lacks a volume or a bridge.
    """
    async with world.locks.guest("lxc", vmid):
        guest = world.guests.require("lxc", node, vmid)
        if guest["config"].get("template"):
            raise PveError("you can't start a CT if it's a template")
        if not skiplock:
            world.guests.check_unlocked(guest, but="mounted")
        if guest["status"] == "running":
            raise PveError(f"CT {vmid} already running")
        if guest["config"].get("unprivileged"):
            _refuse_quotas(world, guest)
        await _start(world, task, guest)


async def shut_container_down(
    world: World, task: Task, guest: Document, timeout_s: float, *, force: bool = False
) -> None:
    """Shut a container down as part of a task.

    Raises:
        PveError: It is locked, or took longer than the timeout and may not be forced.
    """
    vmid = int(guest["vmid"])
    async with world.locks.guest("lxc", vmid):
        world.guests.check_unlocked(world.guests.require("lxc", str(guest["node"]), vmid))
        await _shut_down(world, task, timeout_s, force=force)
        with task.step():
            stop_container(world, vmid)


def stop_container(world: World, vmid: int) -> None:
    """Make a container stopped, in the running transaction; what is pending waits for the next start."""
    guest = world.guests.get(vmid)
    if guest is not None:
        world.guests.update(guest, status="stopped", started=None, run={})


async def _start(world: World, task: Task, guest: Document) -> None:
    node, vmid = str(guest["node"]), int(guest["vmid"])
    maker = VolumeMaker(world=world, worker=task, node=node, vmid=vmid)
    made = await maker.create(Changes(world, guest, task).list_mounts())
    try:
        with task.step():
            changes = Changes(world, guest, task)
            changes.pending.update(made)
            guest = changes.apply()
    except PveError:
        maker.undo()
        raise
    _require_volumes(world, guest)
    _require_bridges(world, task, guest)
    await task.spend(Work.START)
    with task.step():
        _mark_running(world, world.guests.require("lxc", node, vmid), task)


def _mark_running(world: World, guest: Document, task: Task) -> None:
    run = {"pid": 1000 + task.upid.pid}
    world.guests.update(guest, status="running", started=world.clock.now(), run=run)


async def _shut_down(world: World, task: Task, timeout_s: float, *, force: bool) -> None:
    if world.latency.seconds(Work.SHUTDOWN) <= timeout_s:
        await task.spend(Work.SHUTDOWN)
        return
    await task.sleep(timeout_s)
    if not force:
        raise PveError("container did not stop")


def _require_volumes(world: World, guest: Document) -> None:
    node = str(guest["node"])
    for _, point in mountpoints.each_volume(world.facts, guest["config"]):
        volume = str(point["volume"])
        if mountpoints.mount_type(volume) is not MountType.VOLUME:
            continue
        storage, name = parse_volume_id(volume)
        parse_name(world.storages.require(storage, node), name)
        if world.volumes.find(volume, node) is None:
            raise PveError(f"volume '{volume}' does not exist")


def _require_bridges(world: World, task: Task, guest: Document) -> None:
    vmid = guest["vmid"]
    for key, value in sorted(guest["config"].items()):
        bridge = re.search(r"(?:^|,)bridge=([^,]+)", str(value)) if re.fullmatch(r"net\d+", key) else None
        if bridge is not None and not exists(world.store, str(guest["node"]), bridge[1]):
            # The script that plugs the interface in fails, and with it the program that starts the container.
            task.log(f"bridge '{bridge[1]}' does not exist")
            task.log("run_buffer: 571 Script exited with status 2")
            task.log("lxc_create_network_priv: 3466 No such device - Failed to create network device")
            task.log("lxc_spawn: 1852 Failed to create the network")
            task.log(f'__lxc_start: 2119 Failed to spawn container "{vmid}"')
            raise PveError(f"startup for container '{vmid}' failed")


def _refuse_quotas(world: World, guest: Document) -> None:
    if any(point.get("quota") for _, point in mountpoints.each_volume(world.facts, guest["config"])):
        raise PveError("Quotas are not supported by unprivileged containers.")


def _stop_shutdowns(world: World, task: Task, vmid: int, node: str) -> None:
    stopped = [
        str(other["upid"])
        for other in world.tasks.newest_first()
        if (other["type"], other["id"], other["node"]) == ("vzshutdown", str(vmid), node)
        and world.tasks.is_running(str(other["upid"]))
    ]
    for upid in stopped:
        world.tasks.stop(upid)
    if stopped:
        task.log(f"overruled vzshutdown tasks: {', '.join(stopped)}")


def _require_running(call: Call) -> None:
    if call.world.guests.require("lxc", call.node, call.vmid)["status"] != "running":
        raise PveError(f"CT {call.vmid} not running")


def _skiplock(call: Call) -> bool:
    if call.params.get("skiplock") and not call.is_root:
        raise bad_parameter("skiplock", "Only root may use this option.")
    return bool(call.params.get("skiplock"))
