"""Snapshots of a VM: `/nodes/{node}/qemu/{vmid}/snapshot`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu.memory import allocate_state, check_can_save
from pvelab.api.nodes.qemu.pending import cloudinit_volumes, disk_volumes
from pvelab.api.nodes.qemu.power import set_running, start_guest, stop_guest
from pvelab.server.routing import route
from pvelab.world.guests import snapshots

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task

__all__ = [
    "FAMILY",
    "create_snapshot",
    "delete_snapshot",
    "index_snapshot",
    "list_vm_snapshots",
    "read_snapshot",
    "roll_back_vm",
    "update_snapshot",
]

_MASKED = "**********"

FAMILY = snapshots.SnapshotRules(kind="qemu", volumes=disk_volumes, stop=stop_guest)


@route("GET /nodes/{node}/qemu/{vmid}/snapshot")
def list_vm_snapshots(call: Call) -> Any:
    """List the snapshots of a VM and, last, its present state."""
    return snapshots.list_snapshots(call.world.guests.require("qemu", call.node, call.vmid))


@route("POST /nodes/{node}/qemu/{vmid}/snapshot")
def create_snapshot(call: Call) -> Any:
    """Make a snapshot in a task, with the memory of a running VM if that is wanted."""
    world, params = call.world, call.params
    with_memory = bool(params.get("vmstate"))
    snapshots.check_name(params["snapname"])
    guest = world.guests.require("qemu", call.node, call.vmid)
    if with_memory:
        check_can_save(guest["config"])
    wanted = _snapshot(call)

    async def work(task: Task) -> None:
        async def save(guest: Document, name: str) -> Mapping[str, Any]:
            if guest["status"] != "running":
                return {}
            state = await allocate_state(world, task, guest, name)
            storage = str(state["vmstate"]).partition(":")[0]
            task.log(f"saving VM state and RAM using storage '{storage}'")
            return state

        await snapshots.take(
            world,
            task,
            wanted,
            description=params.get("description"),
            save_state=save if with_memory else None,
        )

    return call.start_task("qmsnapshot", call.vmid, work)


@route("GET /nodes/{node}/qemu/{vmid}/snapshot/{snapname}")
def index_snapshot(_call: Call) -> Any:
    """List what there is of a snapshot."""
    return [{"cmd": "rollback"}, {"cmd": "config"}]


@route("GET /nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config")
def read_snapshot(call: Call) -> Any:
    """Answer the configuration of a VM at a snapshot."""
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    config = snapshots.flat_config(snapshots.require(guest, call.params["snapname"]))
    return {**config, "cipassword": _MASKED} if "cipassword" in config else config


@route("PUT /nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config")
async def update_snapshot(call: Call) -> Any:
    """Change the description of a snapshot."""
    if "description" in call.params:
        async with call.guest_lock("qemu", call.vmid):
            with call.transaction():
                snapshots.describe(call.world, _snapshot(call), call.params["description"])


@route("POST /nodes/{node}/qemu/{vmid}/snapshot/{snapname}/rollback")
def roll_back_vm(call: Call) -> Any:
    """Make a VM what it was at a snapshot, in a task; with its memory it runs on from there."""
    world, node, vmid = call.world, call.node, call.vmid
    start = bool(call.params.get("start"))
    if start:
        call.check(f"/vms/{vmid}", "VM.PowerMgmt")
    wanted = _snapshot(call)

    async def work(task: Task) -> None:
        before = cloudinit_volumes(world, world.guests.require("qemu", node, vmid)["config"])
        found = await snapshots.roll_back(world, task, wanted)
        with task.step():
            for volid in before - cloudinit_volumes(world, found["config"]):
                task.log(f"found unused cloudinit disk '{volid}', removing it")
                world.volumes.free(volid, node)
        if found.get("vmstate"):
            with task.step():
                set_running(world, vmid, pid=1000 + task.upid.pid, booted=True)
        elif start:
            await start_guest(world, task, vmid, node)

    return call.start_task("qmrollback", vmid, work)


@route("DELETE /nodes/{node}/qemu/{vmid}/snapshot/{snapname}")
def delete_snapshot(call: Call) -> Any:
    """Remove a snapshot in a task."""
    world, wanted, force = call.world, _snapshot(call), bool(call.params.get("force"))

    async def work(task: Task) -> None:
        await snapshots.delete(world, task, wanted, force=force)

    return call.start_task("qmdelsnapshot", call.vmid, work)


def _snapshot(call: Call) -> snapshots.Snapshot:
    return snapshots.Snapshot(family=FAMILY, node=call.node, vmid=call.vmid, name=call.params["snapname"])
