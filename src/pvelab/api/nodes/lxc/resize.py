"""Making a volume of a container larger: `PUT /nodes/{node}/lxc/{vmid}/resize`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.options import check_container
from pvelab.faults.latency import Work
from pvelab.server.params.formats import parse_size
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.storage.volume_features import owner_of
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task

__all__ = ["resize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resize:
    """What is to be made larger, and how large."""

    guest: Document
    point: mountpoints.MountPoint
    size: int


@route("PUT /nodes/{node}/lxc/{vmid}/resize")
def resize(call: Call) -> Any:
    """Make the root or a mount point larger, in a task; what is wrong is said at once."""
    world, node, vmid, disk = call.world, call.node, call.vmid, str(call.params["disk"])
    _check(call)

    async def work(task: Task) -> None:
        async with world.locks.guest("lxc", vmid):
            plan = _check(call)
            await task.spend(Work.RESIZE)
            with task.step():
                volid = str(plan.point["volume"])
                world.volumes.resize(volid, node, plan.size)
                printed = mountpoints.print_mount_point(world.facts, disk, {**plan.point, "size": plan.size})
                world.guests.update(plan.guest, config={**plan.guest["config"], disk: printed})
                storage, _, name = volid.partition(":")
                config = world.storages.config(storage)
                if config["type"] in ("lvm", "lvmthin"):
                    task.log(f"  Logical volume {config.get('vgname', storage)}/{name} successfully resized.")
                task.log(f"The filesystem is now {plan.size // 4096} (4k) blocks long.")

    return call.start_task("resize", vmid, work)


def _check(call: Call) -> _Resize:
    world, vmid, disk, wanted = call.world, call.vmid, str(call.params["disk"]), str(call.params["size"])
    guest = world.guests.require("lxc", call.node, vmid)
    world.guests.check_unlocked(guest)
    if not call.is_root:
        check_container(call, "VM.Config.Options")
    world.guests.check_digest(guest, call.params.get("digest"))
    point = mountpoints.parse_mount_point(world.facts, disk, str(guest["config"].get(disk, "")))
    volid = str(point["volume"])
    storage, _ = parse_volume_id(volid)
    if owner_of(volid) != vmid:
        raise PveError(f"can't resize mount point owned by another container ({owner_of(volid)})")
    call.check(f"/storage/{storage}", "Datastore.AllocateSpace")
    present = int(world.volumes.require(volid, call.node)["size"])
    size = (parse_size(wanted.removeprefix("+")) or 0) + (present if wanted.startswith("+") else 0)
    if size < present:
        raise PveError("unable to shrink disk size")
    if size == present:
        raise PveError("disk is already at specified size")
    return _Resize(guest=guest, point=point, size=size)
