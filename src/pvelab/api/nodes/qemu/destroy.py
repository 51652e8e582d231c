"""Removing a VM, and making its disks larger: `DELETE /nodes/{node}/qemu/{vmid}`, `PUT .../resize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives
from pvelab.faults.latency import Work
from pvelab.server.params.formats import parse_size
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.cluster.jobs import check_not_replicated, forget_guest
from pvelab.world.guests.guests import MISMATCH
from pvelab.world.ha.config import forget_resource, is_configured
from pvelab.world.storage.volume_features import owner_of
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["destroy_vm", "resize_vm"]


@route("DELETE /nodes/{node}/qemu/{vmid}")
def destroy_vm(call: Call) -> Any:
    """Remove a stopped VM and its disks in a task."""
    world, node, vmid, params = call.world, call.node, call.vmid, call.params
    skiplock = bool(params.get("skiplock"))
    if skiplock and not call.is_root:
        raise bad_parameter("skiplock", "Only root may use this option.")
    purge = bool(params.get("purge"))
    _check_removable(world, node, vmid, purge=purge)

    async def work(task: Task) -> None:
        async with world.locks.guest("qemu", vmid):
            guest = _check_removable(world, node, vmid, purge=purge)
            if not skiplock:
                world.guests.check_unlocked(guest, but="suspended")
            _check_bases(world, guest)
            await task.spend(Work.DELETE)
            with task.step():
                _free_disks(world, guest, unreferenced=bool(params.get("destroy-unreferenced-disks")))
                if purge:
                    task.log(f"purging VM {vmid} from related configurations..")
                    forget_guest(world.store, vmid)
                    if is_configured(world.store, f"vm:{vmid}"):
                        forget_resource(world.store, f"vm:{vmid}", purge=True)
                        task.log(f"NOTE: removed VM {vmid} from HA resource configuration.")
                remove_traces(world, vmid)
                world.guests.remove(vmid)

    return call.start_task("qmdestroy", vmid, work)


@route("PUT /nodes/{node}/qemu/{vmid}/resize")
def resize_vm(call: Call) -> Any:
    """Make a disk larger, in a task."""
    world, node, vmid, params = call.world, call.node, call.vmid, call.params
    skiplock = bool(params.get("skiplock"))
    if skiplock and not call.is_root:
        raise bad_parameter("skiplock", "Only root may use this option.")

    async def work(task: Task) -> None:
        async with world.locks.guest("qemu", vmid):
            guest = world.guests.require("qemu", node, vmid)
            world.guests.check_digest(guest, params.get("digest"), MISMATCH)
            if not skiplock:
                world.guests.check_unlocked(guest)
            drive = _resizable(world, guest, params["disk"])
            storage, _ = parse_volume_id(str(drive["file"]))
            call.check(f"/storage/{storage}", "Datastore.AllocateSpace")
            size = _parse_new_size(
                int(world.volumes.require(str(drive["file"]), node)["size"]), params["size"]
            )
            await task.spend(Work.RESIZE)
            with task.step():
                world.volumes.resize(str(drive["file"]), node, size)
                printed = drives.print_drive(world.facts, params["disk"], {**drive, "size": size})
                world.guests.update(guest, config={**guest["config"], params["disk"]: printed})

    return call.start_task("resize", vmid, work)


def remove_traces(world: World, vmid: int) -> None:
    """Remove what else the cluster knows of a guest: its pool, its entries in ACLs."""
    world.pools.remove_guest(vmid)
    world.store.delete("acl", f"/vms/{vmid}")
    world.store.delete("firewall", f"guest/{vmid}")


def _check_removable(world: World, node: str, vmid: int, *, purge: bool) -> Document:
    guest = world.guests.require("qemu", node, vmid)
    if guest["config"].get("protection"):
        raise PveError(f"can't remove VM {vmid} - protection mode enabled")
    if not purge and is_configured(world.store, f"vm:{vmid}"):
        raise PveError(f"unable to remove VM {vmid} - used in HA resources and purge parameter not set.")
    if not purge:
        check_not_replicated(world.store, vmid)
    if guest["status"] == "running":
        raise PveError(f"VM {vmid} is running - destroy failed")
    return guest


def _check_bases(world: World, guest: Document) -> None:
    """Refuse to remove a template that linked clones depend on; LVM-thin lets its bases go all the same."""
    node = str(guest["node"])
    for volid in _own_volumes(world, guest) if guest["config"].get("template") else ():
        config = world.storages.config(parse_volume_id(volid)[0])
        if config["type"] != "lvmthin" and world.volumes.clones_of(volid, node):
            raise PveError(f"base volume '{volid}' is still in use by linked cloned")


def _own_volumes(world: World, guest: Document) -> list[str]:
    found = []
    referenced = [*guest["config"].items(), *guest["pending"].items()]
    referenced += [("vmstate", snapshot.get("vmstate", "")) for snapshot in guest["snapshots"].values()]
    for key, value in referenced:
        volid = str(value).partition(",")[0]
        is_volume = drives.is_drive(key) or key.startswith("unused") or key == "vmstate"
        if is_volume and ":" in volid and not volid.startswith("/") and owner_of(volid) == guest["vmid"]:
            found.append(volid)
    return found


def _free_disks(world: World, guest: Document, *, unreferenced: bool) -> None:
    vmid, node = int(guest["vmid"]), str(guest["node"])
    for volid in _own_volumes(world, guest):
        world.volumes.free(volid, node)
    if unreferenced:
        for volume in world.volumes.of_guest(vmid, node):
            world.volumes.free(str(volume["volid"]), node)


def _resizable(world: World, guest: Document, disk: str) -> drives.Drive:
    text = guest["config"].get(disk)
    if text is None:
        raise PveError(f"disk '{disk}' does not exist")
    drive = drives.parse_drive(world.facts, disk, str(text))
    if drives.is_cdrom(drive):
        raise PveError("you can't resize a cdrom")
    return drive


def _parse_new_size(present: int, text: str) -> int:
    size = parse_size(text.removeprefix("+")) or 0
    if text.startswith("+"):
        size += present
    if size < present:
        raise PveError("shrinking disks is not supported")
    return size
