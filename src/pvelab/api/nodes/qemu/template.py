"""Making a VM a template: `POST /nodes/{node}/qemu/{vmid}/template`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives
from pvelab.api.nodes.qemu.pending import disk_volumes
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.storage import images
from pvelab.world.storage.volume_features import has_feature, is_base

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["base_disks", "make_template"]


@route("POST /nodes/{node}/qemu/{vmid}/template")
def make_template(call: Call) -> Any:
    """Make a stopped VM (or one more disk of a template) a template, in a task."""
    world, node, vmid, disk = call.world, call.node, call.vmid, call.params.get("disk")
    _check(world, node, vmid, disk)

    async def work(task: Task) -> None:
        async with world.locks.guest("qemu", vmid):
            _check(world, node, vmid, disk)
            await task.spend(Work.TEMPLATE)
            with task.step():
                guest = world.guests.require("qemu", node, vmid)
                config = base_disks(world, node, {**guest["config"], "template": 1}, disk)
                world.guests.update(guest, config=config)

    return call.start_task("qmtemplate", vmid, work)


def base_disks(world: World, node: str, config: Mapping[str, Any], disk: str | None = None) -> dict[str, Any]:
    """Return a configuration whose disks (or one of them) are bases, made so in the running transaction."""
    changed = dict(config)
    for key, volid in disk_volumes(world, config).items():
        if (disk and key != disk) or ":" not in volid or is_base(volid):
            continue
        if has_feature(world, "template", world.volumes.require(volid, node)):
            drive = drives.parse_drive(world.facts, key, str(config[key]))
            drive["file"] = images.make_base(world, volid, node)
            changed[key] = drives.print_drive(world.facts, key, drive)
    return changed


def _check(world: World, node: str, vmid: int, disk: str | None) -> Document:
    guest = world.guests.require("qemu", node, vmid)
    world.guests.check_unlocked(guest)
    if guest["snapshots"]:
        raise PveError("unable to create template, because VM contains snapshots")
    if guest["config"].get("template") and not disk:
        raise PveError("you can't convert a template to a template")
    if guest["status"] == "running":
        raise PveError("you can't convert a VM to template if VM is running")
    return guest
