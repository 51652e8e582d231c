"""Cloning a container: `POST /nodes/{node}/lxc/{vmid}/clone`."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.disks import VolumeMaker
from pvelab.api.nodes.lxc.mountpoints import MountPoint, MountType
from pvelab.api.nodes.lxc.networks import complete_network, is_network
from pvelab.api.nodes.lxc.options import check_bridge
from pvelab.api.nodes.lxc.settings import format_description
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.rollback import undo_on_failure
from pvelab.world.storage import images
from pvelab.world.storage.volume_features import has_feature
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["clone_container"]

_FORMATS = frozenset(("raw", "subvol"))
_NOT_CLONED = frozenset(("lock", "parent", "template", "snaptime", "snapstate"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What is to be cloned, and to where."""

    node: str
    vmid: int
    newid: int
    full: bool
    running: bool
    snapshot: str | None
    storage: str | None
    target: str | None
    pool: str | None
    points: Mapping[str, MountPoint]


@route("POST /nodes/{node}/lxc/{vmid}/clone")
async def clone_container(call: Call) -> Any:
    """Lock the source and reserve the number at once, copy in a task."""
    world, params, vmid, newid = call.world, call.params, call.vmid, int(call.params["newid"])
    if "pool" in params:
        world.pools.require(params["pool"])
    target = _target(call)
    world.cluster.require_quorum()
    async with call.guest_lock("lxc", vmid):
        with call.transaction():
            source = world.guests.require("lxc", call.node, vmid)
            world.guests.check_unlocked(source)
            taken = world.guests.get(newid)
            if taken is not None:
                kind = "VM" if taken["type"] == "qemu" else "CT"
                raise PveError(f"{kind} {newid} already exists on node '{taken['node']}'")
            plan = _plan_clone(call, source, target)
            config = _new_config(call, _source_config(source, plan.snapshot))
            world.guests.update(source, config={**source["config"], "lock": "disk"})
            world.guests.create("lxc", call.node, newid, {**config, "lock": "create"})
            _copy_documents(world, vmid, newid)

    async def work(task: Task) -> None:
        await _clone(world, task, plan)

    return call.start_task("vzclone", vmid, work)


def _target(call: Call) -> str | None:
    """Return the other node that the clone is to be on, None for this one."""
    world, storage = call.world, call.params.get("storage")
    target: str | None = call.params.get("target")
    if target in (call.node, "localhost"):
        target = None
    if target is not None:
        world.cluster.require_member(target)
    if storage is not None:
        config = world.storages.require(storage, call.node)
        if target is not None:
            world.storages.require(storage, target)
            if not world.storages.is_shared(config):
                raise PveError(f"can't clone to non-shared storage '{storage}'")
    return target


def _source_config(source: Document, snapshot: str | None) -> Mapping[str, Any]:
    if snapshot is None:
        found: Mapping[str, Any] = source["config"]
        return found
    if snapshot not in source["snapshots"]:
        raise PveError(f"snapshot '{snapshot}' does not exist")
    kept: Mapping[str, Any] = source["snapshots"][snapshot]["config"]
    return kept


def _plan_clone(call: Call, source: Document, target: str | None) -> _Plan:
    world, params = call.world, call.params
    full = bool(params.get("full", not source["config"].get("template")))
    snapshot, storage = params.get("snapname"), params.get("storage")
    if storage is not None and not full:
        raise PveError("parameter 'storage' not allowed for linked clones")
    config = _source_config(source, snapshot)
    plan = _Plan(
        node=call.node,
        vmid=call.vmid,
        newid=int(params["newid"]),
        full=full,
        running=source["status"] == "running",
        snapshot=snapshot,
        storage=storage,
        target=target,
        pool=params.get("pool"),
        points=dict(mountpoints.each_volume(world.facts, config)),
    )
    shared = [_check_volume(call, plan, key, point) for key, point in plan.points.items()]
    if target is not None and not all(shared):
        raise PveError(f"can't clone CT to node '{target}' (CT uses local storage)")
    return plan


def _check_volume(call: Call, plan: _Plan, key: str, point: MountPoint) -> bool:
    """Refuse a volume that cannot be cloned; return whether the new one is on a shared storage."""
    world, volid = call.world, str(point["volume"])
    kind = mountpoints.mount_type(volid)
    if kind is not MountType.VOLUME:
        raise PveError(f"unable to clone mountpoint '{key}' (type {kind})")
    storage = plan.storage or parse_volume_id(volid)[0]
    call.check(f"/storage/{storage}", "Datastore.AllocateSpace")
    if plan.full:
        if plan.running and plan.snapshot is None:
            raise PveError("Full clone of a running container is only possible from a snapshot")
    else:
        volume = world.volumes.find(volid, plan.node)
        of_snapshot = plan.snapshot is not None
        if volume is None or not has_feature(world, "clone", volume, snapshot=of_snapshot, formats=_FORMATS):
            raise PveError(f"Linked clone feature for '{volid}' is not available")
    return world.storages.is_shared(world.storages.config(storage))


def _new_config(call: Call, source: Mapping[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for key, value in source.items():
        if key in _NOT_CLONED or key.startswith("unused") or mountpoints.is_mount_point(key):
            continue
        config[key] = value
        if is_network(key):
            config[key] = complete_network(call.world, str(value), new_address=True)
            check_bridge(call, config[key])
    if call.params.get("hostname"):
        config["hostname"] = call.params["hostname"]
    if call.params.get("description"):
        config["description"] = format_description(call.params["description"])
    return config


def _copy_documents(world: World, vmid: int, newid: int) -> None:
    """Copy the firewall, and who can log in: that is on the disk."""
    pairs = (("firewall", f"guest/{vmid}", f"guest/{newid}"), ("guest_secrets", str(vmid), str(newid)))
    for collection, old, new in pairs:
        found = world.store.get(collection, old)
        if found is not None:
            world.store.put(collection, new, copy.deepcopy(dict(found)))


async def _clone(world: World, task: Task, plan: _Plan) -> None:
    task.log(f"creating a clone of container {plan.vmid} with ID {plan.newid}")
    maker = VolumeMaker(world=world, worker=task, node=plan.node, vmid=plan.newid)

    def remove() -> None:
        maker.undo()
        with task.step():
            _unlock_source(world, plan)
            world.guests.remove(plan.newid)
            world.store.delete("firewall", f"guest/{plan.newid}")
            world.store.delete("guest_secrets", str(plan.newid))

    with undo_on_failure(remove, failing="clone failed: "):
        if (world.guests.require("lxc", plan.node, plan.vmid)["status"] == "running") != plan.running:
            raise PveError("unexpected state change")
        points = {key: await _clone_volume(world, task, plan, maker, key) for key in plan.points}
        await world.machines.copy(plan.vmid, plan.newid, plan.snapshot)
        with task.step():
            _finish(world, plan, points)


async def _clone_volume(world: World, task: Task, plan: _Plan, maker: VolumeMaker, key: str) -> str:
    point = dict(plan.points[key])
    volid = str(point["volume"])
    source_storage, _ = parse_volume_id(volid)
    if plan.full:
        task.log(f"create full clone of mountpoint {key} ({volid})")
        size = int(world.volumes.require(volid, plan.node)["size"])
        if plan.snapshot is not None:
            size = images.snapshots_of(world, volid, plan.node).get(plan.snapshot, size)
        point |= {"volume": await maker.allocate(plan.storage or source_storage, size), "size": size}
        await task.spend(Work.CLONE)
    else:
        task.log(f"create linked clone of mount point {key} ({volid})")
        shared = world.storages.is_shared(world.storages.config(source_storage))
        async with world.locks.storage(source_storage, None if shared else plan.node):
            await task.spend(Work.ALLOCATE)
            with task.step():
                point["volume"] = images.clone_volume(
                    world, volid, plan.node, plan.newid, content="rootdir", snapshot=plan.snapshot
                )
                maker.made.append(str(point["volume"]))
    return mountpoints.print_mount_point(world.facts, key, point)


def _finish(world: World, plan: _Plan, points: Mapping[str, str]) -> None:
    clone = world.guests.get(plan.newid)
    if clone is None or clone["config"].get("lock") != "create":
        raise PveError("Lost 'create' config lock, aborting.")
    config = {key: value for key, value in clone["config"].items() if key != "lock"}
    world.guests.update(clone, config={**config, **points}, node=plan.target or plan.node)
    _unlock_source(world, plan)
    if plan.pool is not None:
        world.pools.add_guest(plan.pool, plan.newid)


def _unlock_source(world: World, plan: _Plan) -> None:
    source = world.guests.get(plan.vmid)
    if source is not None and source["config"].get("lock") == "disk":
        config = {key: value for key, value in source["config"].items() if key != "lock"}
        world.guests.update(source, config=config)
