"""Making a container a template: `POST /nodes/{node}/lxc/{vmid}/template`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.storage import images
from pvelab.world.storage.volume_features import has_feature

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["make_template"]


@route("POST /nodes/{node}/lxc/{vmid}/template")
def make_template(call: Call) -> Any:
    """Make a container a template in a task, which the answer does not name."""
    world, node, vmid = call.world, call.node, call.vmid
    _check(world.guests.require("lxc", node, vmid))

    async def work(task: Task) -> None:
        async with world.locks.guest("lxc", vmid):
            guest = world.guests.require("lxc", node, vmid)
            _check_volumes(world, guest)
            await task.spend(Work.TEMPLATE)
            with task.step():
                _convert(world, guest)

    call.start_task("vztemplate", vmid, work)
    return None


def _check(guest: Document) -> None:
    lock = guest["config"].get("lock")
    if lock:
        raise PveError(f"CT is locked ({lock})")
    if guest["snapshots"]:
        raise PveError("unable to create template, because CT contains snapshots")
    if guest["config"].get("template"):
        raise PveError("you can't convert a template to a template")
    if guest["status"] == "running":
        raise PveError("you can't convert a CT to template if the CT is running")


def _check_volumes(world: World, guest: Document) -> None:
    for _, point in mountpoints.each_volume(world.facts, guest["config"]):
        volid = str(point["volume"])
        volume = None if volid.startswith("/") else world.volumes.find(volid, str(guest["node"]))
        if volume is None or not has_feature(world, "template", volume):
            raise PveError(f"Template feature is not available for '{volid}'")


def _convert(world: World, guest: Document) -> None:
    config = dict(guest["config"])
    for key, point in mountpoints.each_volume(world.facts, guest["config"]):
        point["volume"] = images.make_base(world, str(point["volume"]), str(guest["node"]))
        config[key] = mountpoints.print_mount_point(world.facts, key, point)
    world.guests.update(guest, config={**config, "template": 1})
