"""Moving a disk to another storage or another VM: `POST /nodes/{node}/qemu/{vmid}/move_disk`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives
from pvelab.api.nodes.qemu.copies import Copy, copy_drive
from pvelab.api.nodes.qemu.pending import Changes
from pvelab.api.nodes.qemu.snapshot import FAMILY
from pvelab.api.nodes.qemu.template import base_disks
from pvelab.faults.latency import Work
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter, bad_parameters
from pvelab.server.routing import route
from pvelab.world.guests import snapshots
from pvelab.world.guests.guests import MODIFIED
from pvelab.world.rollback import undo_on_failure
from pvelab.world.storage import images
from pvelab.world.storage.volume_features import has_feature, owner_of
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.api.nodes.qemu.drives import Drive
    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["move_disk"]


@route("POST /nodes/{node}/qemu/{vmid}/move_disk")
def move_disk(call: Call) -> Any:
    """Move a disk in a task, to `storage` or to the VM `target-vmid`."""
    params = call.params
    if "target-vmid" in params and "storage" in params:
        text = "either set 'storage' or 'target-vmid', but not both"
        raise bad_parameters({"target-vmid": text, "storage": text})
    if "target-vmid" in params:
        return _start_reassign(call)
    if "storage" in params:
        return _start_move(call)
    text = "both 'storage' and 'target-vmid' missing, either needs to be set"
    raise bad_parameters({"target-vmid": text, "storage": text})


def _start_move(call: Call) -> str:
    world, vmid = call.world, call.vmid
    call.check(f"/storage/{call.params['storage']}", "Datastore.AllocateSpace")
    _check_move(call)

    async def work(task: Task) -> None:
        async with world.locks.guest("qemu", vmid):
            guest, drive = _check_move(call)
            await _move(call, task, guest, drive)

    return call.start_task("qmmove", vmid, work)


def _check_move(call: Call) -> tuple[Document, Drive]:
    world, params = call.world, call.params
    guest = world.guests.require("qemu", call.node, call.vmid)
    world.guests.check_unlocked(guest)
    world.guests.check_digest(guest, params.get("digest"))
    disk, storage = params["disk"], params["storage"]
    if disk not in guest["config"]:
        raise PveError(f"disk '{disk}' does not exist")
    drive = drives.parse_drive(world.facts, disk, str(guest["config"][disk]))
    if drives.is_cdrom(drive) and not drives.is_cloudinit(drive):
        raise PveError("you can't move a cdrom")
    volid = str(drive["file"])
    format_now = str(world.volumes.require(volid, call.node).get("format", "raw"))
    if parse_volume_id(volid)[0] == storage and params.get("format", format_now) == format_now:
        raise PveError("you can't move to the same storage with same format")
    config = world.storages.require(storage, call.node)
    if "images" not in world.storages.content_types(config):
        raise bad_parameter("storage", f"storage '{storage}' does not support vm images")
    if params.get("delete") and snapshots.is_in_use(world, FAMILY, guest, volid):
        raise PveError("you can't move a disk with snapshots and delete the source")
    return guest, drive


async def _move(call: Call, task: Task, guest: Document, drive: Drive) -> None:
    world, node, params = call.world, call.node, call.params
    disk, old = params["disk"], str(drive["file"])
    task.log(
        f"copying volume '{old}' from current storage '{parse_volume_id(old)[0]}' to target"
        f" storage '{params['storage']}'"
    )
    if snapshots.is_in_use(world, FAMILY, guest, old):
        task.log("moving disk with snapshots, snapshots will not be moved!")
    if guest["status"] == "running" and disk == "tpmstate0":
        raise PveError("storage migration failed: cannot move TPM state while VM is running")
    made: list[str] = []
    copy = Copy(
        key=disk,
        drive=drive,
        node=node,
        vmid=call.vmid,
        storage=params["storage"],
        format=params.get("format"),
    )

    def give_back() -> None:
        with task.step():
            for volid in made:
                world.volumes.free(volid, node)

    with undo_on_failure(give_back, failing="storage migration failed: "):
        new = await copy_drive(world, task, copy, made)
        await task.spend(Work.MOVE)
        with task.step():
            _exchange(call, task, new, old)


def _exchange(call: Call, task: Task, new: Drive, old: str) -> None:
    world, node, disk = call.world, call.node, call.params["disk"]
    guest = world.guests.require("qemu", node, call.vmid)
    config = {**guest["config"], disk: _format_drive(world, disk, new)}
    if config.get("template"):
        config = base_disks(world, node, config, disk)
    if call.params.get("delete"):
        task.log(f"removing source volume '{old}' after successful copy")
        if world.volumes.clones_of(old, node):
            task.log(f"base volume '{parse_volume_id(old)[1]}' is still in use by linked clones")
        else:
            world.volumes.free(old, node)
    elif drives.is_cloudinit(new):
        task.log(f"found unused cloudinit disk '{old}', removing it")
        world.volumes.free(old, node)
    elif owner_of(old) == call.vmid:
        key = next(f"unused{n}" for n in range(256) if f"unused{n}" not in config)
        task.log(f"adding source volume '{old}' as '{key}' to config")
        config[key] = old
    world.guests.update(guest, config=config)


def _format_drive(world: World, disk: str, drive: Mapping[str, Any]) -> str:
    if disk.startswith("unused"):
        return str(drive["file"])
    return drives.print_drive(world.facts, disk, drive)


def _start_reassign(call: Call) -> str:
    world, vmid, target = call.world, call.vmid, int(call.params["target-vmid"])
    disk, target_disk = call.params["disk"], call.params.get("target-disk", call.params["disk"])
    call.check(f"/vms/{target}", "VM.Config.Disk")
    if target == vmid:
        raise bad_parameter("target-vmid", "must be different than source VMID to reassign disk")
    _, _, drive = _check_reassign(call, target, target_disk)
    call.check(f"/storage/{parse_volume_id(str(drive['file']))[0]}", "Datastore.AllocateSpace")

    async def work(task: Task) -> None:
        async with world.locks.guest("qemu", vmid), world.locks.guest("qemu", target):
            _check_reassign(call, target, target_disk)
            task.log(f"reassign disk '{disk}' from VM '{vmid}' as '{target_disk}' to VM '{target}'")
            await task.spend(Work.MOVE)
            with task.step():
                _reassign(call, task, target, target_disk)

    return call.start_task("qmmove", f"{vmid}-{disk}>{target}-{target_disk}", work)


def _check_reassign(call: Call, target: int, target_disk: str) -> tuple[Document, Document, Drive]:
    world, disk = call.world, call.params["disk"]
    there = world.guests.get(target)
    if there is None:
        raise PveError(f"could not find target VM {target}")
    if there["node"] != call.node:
        raise PveError(f"Both VMs need to be on the same node ({call.node} != {there['node']})")
    here = world.guests.require("qemu", call.node, call.vmid)
    there = world.guests.require("qemu", call.node, target)
    for guest in (here, there):
        world.guests.check_unlocked(guest)
    if here["config"].get("template") or there["config"].get("template"):
        raise PveError("Can't move disks from or to template VMs")
    world.guests.check_digest(here, call.params.get("digest"), f"VM {call.vmid}: {MODIFIED}")
    world.guests.check_digest(there, call.params.get("target-digest"), f"VM {target}: {MODIFIED}")
    if disk not in here["config"]:
        raise PveError(f"Disk '{disk}' for VM '{call.vmid}' does not exist")
    if target_disk in there["config"]:
        raise PveError(f"Target disk key '{target_disk}' is already in use for VM '{target}'")
    drive = drives.parse_drive(world.facts, disk, str(here["config"][disk]))
    _check_movable(call, here, drive)
    return here, there, drive


def _check_movable(call: Call, here: Document, drive: Drive) -> None:
    world, disk, volid = call.world, call.params["disk"], str(drive["file"])
    if drives.is_cdrom(drive) and not drives.is_cloudinit(drive):
        raise PveError("CD drive contents can't be moved to another VM")
    if volid.startswith("/"):
        raise PveError(f"Volume '{volid}' not managed by PVE")
    if snapshots.is_in_use(world, FAMILY, here, volid):
        raise PveError("Can't move disk used by a snapshot to another VM")
    if not has_feature(world, "rename", world.volumes.require(volid, call.node)):
        raise PveError("Storage does not support moving of this disk to another VM")
    if here["status"] == "running" and not re.fullmatch(r"unused\d+", disk):
        raise PveError("Cannot move disk to another VM while the source VM is running - detach first")


def _reassign(call: Call, task: Task, target: int, target_disk: str) -> None:
    world, node, disk = call.world, call.node, call.params["disk"]
    here = world.guests.require("qemu", node, call.vmid)
    drive = drives.parse_drive(world.facts, disk, str(here["config"][disk]))
    drive["file"] = images.reassign(world, str(drive["file"]), node, target)
    config = {key: value for key, value in here["config"].items() if key != disk}
    order = split_list(str(config.get("boot", "")).removeprefix("order="))
    if disk in order:
        task.log(f"removing disk '{disk}' from boot order config")
        order.remove(disk)
        config["boot"] = drives.boot_order(order)
    task.log(f"removing disk '{disk}' from VM '{call.vmid}' config")
    world.guests.update(here, config=config)
    there = world.guests.require("qemu", node, target)
    if target_disk.startswith("unused"):
        world.guests.update(there, config={**there["config"], target_disk: drive["file"]})
        return
    if disk.startswith("unused"):
        drive["size"] = int(world.volumes.require(str(drive["file"]), node)["size"])
    changes = Changes(world, there)
    changes.set({target_disk: drives.print_drive(world.facts, target_disk, drive)})
    changes.apply()
