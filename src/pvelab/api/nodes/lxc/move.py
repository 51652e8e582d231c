"""Moving a volume of a container to another storage or container: `.../lxc/{vmid}/move_volume`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.disks import VolumeMaker, free_volume
from pvelab.api.nodes.lxc.mountpoints import MountPoint, MountType
from pvelab.api.nodes.lxc.pending import Changes
from pvelab.api.nodes.lxc.snapshots import FAMILY
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError, bad_parameters
from pvelab.server.routing import route
from pvelab.world.guests import snapshots
from pvelab.world.rollback import undo_on_failure
from pvelab.world.storage import images
from pvelab.world.storage.volume_features import has_feature
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["move_volume"]

_BOTH = "either set 'storage' or 'target-vmid', but not both"
_NEITHER = "both 'storage' and 'target-vmid' missing, either needs to be set"


@route("POST /nodes/{node}/lxc/{vmid}/move_volume")
async def move_volume(call: Call) -> Any:
    """Copy a volume to another storage, or give it to another container, in a task."""
    storage, target = call.params.get("storage"), call.params.get("target-vmid")
    if storage and target:
        raise PveError(_BOTH.replace("'", ""))
    if target is not None:
        return _to_container(call, int(target))
    if storage is not None:
        return await _to_storage(call, str(storage))
    raise bad_parameters({"target-vmid": _NEITHER, "storage": _NEITHER})


async def _to_storage(call: Call, storage: str) -> str:
    world, node, vmid, key = call.world, call.node, call.vmid, str(call.params["volume"])
    remove = bool(call.params.get("delete"))
    call.check(f"/storage/{storage}", "Datastore.AllocateSpace")
    async with call.guest_lock("lxc", vmid):
        with call.transaction():
            guest = world.guests.require("lxc", node, vmid)
            point = _check_movable(world, guest, key, remove=remove)
            world.guests.check_digest(guest, call.params.get("digest"))
            world.guests.update(guest, config={**guest["config"], "lock": "disk"})

    async def work(task: Task) -> None:
        try:
            maker = VolumeMaker(world=world, worker=task, node=node, vmid=vmid)
            await _copy(world, task, maker, (key, storage, point), remove=remove)
        finally:
            with task.step():
                _unlock(world, vmid)

    return call.start_task("move_volume", vmid, work)


def _check_movable(world: World, guest: Document, key: str, *, remove: bool) -> MountPoint:
    world.guests.check_unlocked(guest)
    if guest["status"] == "running":
        raise PveError("cannot move volumes of a running container")
    if key.startswith("unused"):
        text = f"cannot move volume '{key}', only configured volumes can be moved to another storage"
        raise PveError(text)
    point = mountpoints.parse_mount_point(world.facts, key, str(guest["config"].get(key, "")))
    if remove and snapshots.is_in_use(world, FAMILY, guest, str(point["volume"])):
        raise PveError("you can't move a volume with snapshots and delete the source")
    return point


async def _copy(
    world: World, task: Task, maker: VolumeMaker, what: tuple[str, str, MountPoint], *, remove: bool
) -> None:
    key, storage, point = what
    old = str(point["volume"])
    kind = mountpoints.mount_type(old)
    if kind is not MountType.VOLUME:
        raise PveError(f"cannot copy volumes of type {kind}")
    size = int(world.volumes.require(old, maker.node)["size"])
    with undo_on_failure(maker.undo):
        new = await maker.allocate(storage, size)
        await task.spend(Work.MOVE)
        with task.step():
            guest = world.guests.require("lxc", maker.node, maker.vmid)
            config = dict(guest["config"])
            if config.get("template"):
                new = images.make_base(world, new, maker.node)
            moved = {**point, "volume": new, "size": size}
            config[key] = mountpoints.print_mount_point(world.facts, key, moved)
            if not remove:
                mountpoints.add_unused(config, old)
            world.guests.update(guest, config=config)
    if remove:
        with task.step():
            _remove_source(world, task, maker, old)


def _remove_source(world: World, task: Task, maker: VolumeMaker, old: str) -> None:
    """Free the volume that was copied; one that cannot be freed stays as unused."""
    try:
        free_volume(world, maker.vmid, old, maker.node, task)
    except PveError as err:
        task.warn(err.text)
        guest = world.guests.require("lxc", maker.node, maker.vmid)
        config = dict(guest["config"])
        mountpoints.add_unused(config, old)
        world.guests.update(guest, config=config)


def _unlock(world: World, vmid: int) -> None:
    guest = world.guests.get(vmid)
    if guest is not None and guest["config"].get("lock") == "disk":
        config = {key: value for key, value in guest["config"].items() if key != "lock"}
        world.guests.update(guest, config=config)


def _to_container(call: Call, target: int) -> str:
    world, vmid, key = call.world, call.vmid, str(call.params["volume"])
    target_key = str(call.params.get("target-volume", key))
    if not call.is_root:
        call.check(f"/vms/{target}", "VM.Config.Disk")
    point = _check_reassign(call, target, target_key)
    storage, _ = parse_volume_id(str(point["volume"]))
    call.check(f"/storage/{storage}", "Datastore.AllocateSpace")

    async def work(task: Task) -> None:
        async with contextlib.AsyncExitStack() as locks:
            for one in sorted({vmid, target}):
                await locks.enter_async_context(world.locks.guest("lxc", one))
            point = _check_reassign(call, target, target_key)
            await task.spend(Work.CONFIG)
            with task.step():
                task.log(f"moving volume '{key}' from container '{vmid}' to '{target}'")
                _reassign(call, task, (target, target_key), point)
                task.log(f"target container '{target}' updated with '{target_key}'")

    return call.start_task("move_volume", f"{vmid}-{key}>{target}-{target_key}", work)


def _check_reassign(call: Call, target: int, target_key: str) -> MountPoint:
    world, vmid, key = call.world, call.vmid, str(call.params["volume"])
    _check_keys(key, target_key)
    source, other = world.guests.get(vmid), world.guests.get(target)
    for number, guest in ((vmid, source), (target, other)):
        if guest is None or guest["type"] != "lxc":
            raise PveError(f"could not find CT {number}")
    if source is None or other is None:
        raise PveError(f"could not find CT {target}")
    if source["node"] != other["node"]:
        text = f"Both containers need to be on the same node ({source['node']} != {other['node']})"
        raise PveError(text)
    for guest, name in ((source, "digest"), (other, "target-digest")):
        world.guests.check_unlocked(guest)
        try:
            world.guests.check_digest(guest, call.params.get(name))
        except PveError as err:
            raise PveError(f"Container {guest['vmid']}: {err.text}") from err
    if source["config"].get("template") or other["config"].get("template"):
        raise PveError("Can't move volumes from or to template CT")
    if key not in source["config"]:
        raise PveError(f"volume '{key}' for container '{vmid}' does not exist")
    if target_key in other["config"]:
        raise PveError(f"Target volume key '{target_key}' is already in use for container '{target}'")
    return _check_volume(world, source, key)


def _check_keys(key: str, target_key: str) -> None:
    if "rootfs" in (key, target_key):
        raise PveError("Cannot move to/from 'rootfs'")
    if key.startswith("unused") and not target_key.startswith("unused"):
        raise PveError("Moving an unused volume to a used one is not possible")


def _check_volume(world: World, source: Document, key: str) -> MountPoint:
    point = mountpoints.parse_mount_point(world.facts, key, str(source["config"][key]))
    volid = str(point["volume"])
    if mountpoints.mount_type(volid) is not MountType.VOLUME:
        raise PveError("Cannot move a bindmount or device mount to another container")
    if snapshots.is_in_use(world, FAMILY, source, volid):
        raise PveError("Cannot move volume used by a snapshot to another container")
    if not has_feature(world, "rename", world.volumes.require(volid, str(source["node"]))):
        raise PveError("Storage does not support moving of this disk to another container")
    if source["status"] == "running" and not key.startswith("unused"):
        text = "Cannot move in-use volume while the source CT is running - detach or shutdown first"
        raise PveError(text)
    return point


def _reassign(call: Call, task: Task, to: tuple[int, str], point: MountPoint) -> None:
    world, node, key = call.world, call.node, str(call.params["volume"])
    target, target_key = to
    point["volume"] = images.reassign(world, str(point["volume"]), node, target)
    source = world.guests.require("lxc", node, call.vmid)
    config = {name: value for name, value in source["config"].items() if name != key}
    task.log(f"removing volume '{key}' from container '{call.vmid}' config")
    world.guests.update(source, config=config)
    other = world.guests.require("lxc", node, target)
    printed = mountpoints.print_mount_point(world.facts, target_key, point)
    if target_key.startswith("unused"):
        world.guests.update(other, config={**other["config"], target_key: str(point["volume"])})
        return
    changes = Changes(world, other, task)
    changes.set({target_key: printed})
    changes.apply({target_key})
