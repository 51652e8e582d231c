"""Starting and stopping VMs: `/nodes/{node}/qemu/{vmid}/status/{start,stop,shutdown}`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu.disks import CLOUDINIT_SIZE
from pvelab.api.nodes.qemu.pending import Changes, cloudinit_volumes, effective
from pvelab.api.nodes.qemu.start_checks import check_start
from pvelab.faults.latency import Work
from pvelab.machines.qemu.power import power_on, shut_down_real
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.ha.requests import ask_to_start, ask_to_stop, is_managed_by_ha
from pvelab.world.storage.allocation import allocate
from pvelab.world.storage.volume_features import owner_of
from pvelab.world.storage.volumes import NewVolume, parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = [
    "RUNNING_MACHINE",
    "is_paused",
    "shut_down",
    "shutdown_vm",
    "start_guest",
    "start_vm",
    "stop_guest",
    "stop_vm",
]

RUNNING_MACHINE = "pc-i440fx-10.1+pve0"

_ROOT_ONLY = (
    *("stateuri", "skiplock", "migratedfrom", "migration_type", "migration_network", "targetstorage"),
    *("force-cpu", "with-conntrack-state", "nets-host-mtu", "keepActive"),
)
_SHUTDOWN_TIMEOUT_S = 60
_DOWN = re.compile(r"(?:^|,)down=(\d+)")


@route("POST /nodes/{node}/qemu/{vmid}/status/start")
def start_vm(call: Call) -> Any:
    """Start a VM in a task."""
    check_root_only(call)
    if call.params.get("targetstorage") and not call.params.get("migratedfrom"):
        raise bad_parameter("targetstorage", "targetstorage can only by used with migratedfrom.")
    call.world.cluster.require_quorum()
    if is_managed_by_ha(call, "qemu") and not call.params.get("stateuri"):
        return ask_to_start(call, "qemu")
    world, vmid, node = call.world, call.vmid, call.node
    skiplock = bool(call.params.get("skiplock"))

    async def work(task: Task) -> None:
        await start_guest(world, task, vmid, node, skiplock=skiplock)

    return call.start_task("qmstart", vmid, work)


@route("POST /nodes/{node}/qemu/{vmid}/status/stop")
def stop_vm(call: Call) -> Any:
    """Stop a VM in a task."""
    check_root_only(call)
    world, vmid, node = call.world, call.vmid, call.node
    skiplock, overrule = bool(call.params.get("skiplock")), bool(call.params.get("overrule-shutdown"))
    if is_managed_by_ha(call, "qemu") and "migratedfrom" not in call.params:
        if overrule:
            raise bad_parameter("overrule-shutdown", "Not applicable for HA resources.")
        return ask_to_stop(call, "qemu", 0)

    async def work(task: Task) -> None:
        if overrule:
            await _overrule_shutdowns(world, task, vmid)
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
    check_root_only(call)
    world, vmid, node, params = call.world, call.vmid, call.node, call.params
    force = bool(params.get("forceStop"))
    guest = world.guests.require("qemu", node, vmid)
    if is_paused(guest) and not force:
        raise PveError("VM is paused - cannot shutdown")
    if is_managed_by_ha(call, "qemu"):
        return ask_to_stop(call, "qemu", params.get("timeout", _SHUTDOWN_TIMEOUT_S))

    async def work(task: Task) -> None:
        async with world.locks.guest("qemu", vmid):
            guest = world.guests.require("qemu", node, vmid)
            if guest["status"] != "running":
                return
            if not params.get("skiplock"):
                world.guests.check_unlocked(guest)
            if is_paused(guest):
                task.log("VM is paused - stop instead of shutdown")
                await task.spend(Work.STOP)
                with task.step():
                    stop_guest(world, vmid)
            else:
                await shut_down(world, task, guest, timeout_s=params.get("timeout"), force=force)

    return call.start_task("qmshutdown", vmid, work)


async def shut_down(
    world: World, task: Task, guest: Document, *, timeout_s: int | None = None, force: bool = False
) -> None:
    """Shut a running VM down as part of a task that holds its file.

    Raises:
        PveError: The guest took longer than the timeout and may not be forced.
    """
    if timeout_s is None:
        down = _DOWN.search(str(guest["config"].get("startup", "")))
        timeout_s = int(down[1]) if down else _SHUTDOWN_TIMEOUT_S
    is_down = await shut_down_real(world, guest, timeout_s)
    if is_down is False or (is_down is None and world.latency.seconds(Work.SHUTDOWN) > timeout_s):
        if is_down is None:
            await task.sleep(timeout_s)
        if not force:
            raise PveError("VM quit/powerdown failed - got timeout")
        task.log("VM still running - terminating now with SIGTERM")
    elif is_down is None:
        await task.spend(Work.SHUTDOWN)
    with task.step():
        stop_guest(world, int(guest["vmid"]))


async def start_guest(world: World, task: Task, vmid: int, node: str, *, skiplock: bool = False) -> None:
    """Start a VM as part of a task; one that was suspended to disk resumes.

    Raises:
        PveError: It is a template, locked, running already, not there, or lacks what it needs to run.
    """
    async with world.locks.guest("qemu", vmid):
        guest = world.guests.require("qemu", node, vmid)
        config = guest["config"]
        if config.get("template"):
            raise PveError("you can't start a vm if it's a template")
        if not skiplock and config.get("lock") != "suspended":
            world.guests.check_unlocked(guest)
        if guest["status"] == "running":
            raise PveError(f"VM {vmid} already running")
        resumes = config.get("lock") == "suspended" or "vmstate" in config
        devices = check_start(world, task, guest)
        if resumes:
            task.log("Resuming suspended VM")
        await _make_cloudinit(world, task, guest)
        await task.spend(Work.RESUME if resumes else Work.START)
        with task.step():
            if resumes:
                task.log("Resumed VM, removing state")
                resume_state(world, vmid)
            else:
                Changes(world, guest).apply(at_start=True)
            set_running(world, vmid, pid=1000 + task.upid.pid, booted=resumes, pci=devices)
        await _switch_on(world, task, vmid)


async def _switch_on(world: World, task: Task, vmid: int) -> None:
    """Start QEMU for a real guest; one that does not start is stopped again."""
    try:
        await power_on(world, vmid)
    except PveError:
        with task.step():
            stop_guest(world, vmid)
        raise


def set_running(world: World, vmid: int, *, pid: int, booted: bool = False, pci: Sequence[str] = ()) -> None:
    """Make a VM run, in the running transaction; one whose memory was kept has booted long ago."""
    guest = world.guests.get(vmid)
    if guest is not None:
        run: dict[str, Any] = {"pid": pid, "qmpstatus": "running"}
        if booted:
            run["booting_since"] = 0
        if pci:
            run["pci"] = list(pci)
        world.guests.update(guest, status="running", started=world.clock.now(), run=run)


def resume_state(world: World, vmid: int) -> None:
    """Free the memory of a VM that was suspended to disk, in the running transaction."""
    guest = world.guests.get(vmid)
    if guest is not None:
        config = dict(guest["config"])
        state = config.pop("vmstate", None)
        for key in ("lock", "runningmachine", "runningcpu"):
            config.pop(key, None)
        if state:
            world.volumes.free(str(state), str(guest["node"]))
        world.guests.update(guest, config=config)


def stop_guest(world: World, vmid: int) -> None:
    """Make a VM stopped, in the running transaction; what was pending takes effect."""
    guest = world.guests.get(vmid)
    if guest is not None and guest["status"] != "stopped":
        stopped = world.guests.update(guest, status="stopped", started=None, run={})
        # Without quorum its file cannot be written; a VM stops all the same.
        if world.cluster.is_quorate:
            Changes(world, stopped).apply()


def is_paused(guest: Document) -> bool:
    """Return whether a VM runs with its CPUs stopped."""
    return bool(guest["status"] == "running" and guest["run"].get("qmpstatus") == "paused")


def check_root_only(call: Call) -> None:
    """Refuse options that Proxmox keeps for its own commands.

    Raises:
        PveError: Such an option is given by someone else than root.
    """
    for name in _ROOT_ONLY:
        if call.params.get(name) and not call.is_root:
            raise bad_parameter(name, "Only root may use this option.")


async def _make_cloudinit(world: World, task: Task, guest: Document) -> None:
    """Allocate a cloud-init drive that is not there, as after going back to a snapshot that had one."""
    node, vmid = str(guest["node"]), int(guest["vmid"])
    for volid in cloudinit_volumes(world, effective(guest)):
        if world.volumes.find(volid, node) is None and owner_of(volid) == vmid:
            storage, name = parse_volume_id(volid)
            plain = name.rpartition("/")[2]
            chosen = plain.partition(".")[2] or None
            new = NewVolume(
                storage=storage, node=node, vmid=vmid, size=CLOUDINIT_SIZE, format=chosen, name=plain
            )
            await allocate(world, task, new)


async def _overrule_shutdowns(world: World, task: Task, vmid: int) -> None:
    found = [
        str(other["upid"])
        for other in world.tasks.newest_first()
        if other["type"] == "qmshutdown" and other["id"] == str(vmid) and not other.get("status")
    ]
    for upid in found:
        world.tasks.stop(upid)
        await world.tasks.wait(upid)
    if found:
        task.log(f"overruled qmshutdown tasks: {', '.join(found)}")
