"""Volume groups and thin pools of a node: `/nodes/{node}/disks/lvm` and `/nodes/{node}/disks/lvmthin`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.latency import Work
from stackyard.lab.physical import DiskPool, Physical
from stackyard.lab.problems import PveError
from stackyard.lab.resources.disks.adding import NewStorage, forget_storages
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from stackyard.lab.call import Call
    from stackyard.lab.store import Document
    from stackyard.lab.tasks import Task
    from stackyard.lab.world import World

__all__ = [
    "create_group",
    "create_thin_pool",
    "group_rows",
    "list_groups",
    "list_thin_pools",
    "remove_group",
    "remove_thin_pool",
]

_EXTENT = 4 * 2**20
# Of a whole disk the thin pool leaves one per cent for its metadata and as much for repairs.
_THIN_SHARE = 98
_METADATA_SHARE = 100


@route("GET /nodes/{node}/disks/lvm")
def list_groups(call: Call) -> Any:
    """List the volume groups with their disks, as a tree."""
    return {"leaf": 0, "children": group_rows(call.world, call.node)}


def group_rows(world: World, node: str) -> list[dict[str, Any]]:
    """Return the volume groups of a node, their disks as `children`."""
    physical, rows = Physical(world.store, node), []
    thin = {str(pool["vg"]): int(pool["size"]) for pool in physical.pools("lvmthin").values()}
    for name, group in sorted(physical.pools("lvm").items()):
        size = int(group["size"])
        free = max(0, size - thin.get(name, 0) - _used(world, node, name))
        disks = [
            {"name": device, "size": size // len(group["devices"]), "free": free, "leaf": 1}
            for device in group["devices"]
        ]
        count = int(group.get("lvcount", 0)) + (name in thin)
        rows.append(
            {"name": name, "size": size, "free": free, "lvcount": count, "leaf": 0, "children": disks}
        )
    return rows


def _used(world: World, node: str, group: str) -> int:
    return sum(
        world.storages.used(name, node)
        for name, config in world.storages.all().items()
        if config["type"] == "lvm" and config.get("vgname") == group and world.storages.is_on(config, node)
    )


@route("POST /nodes/{node}/disks/lvm")
def create_group(call: Call) -> Any:
    """Make a volume group of an unused disk, in a task."""
    return _create(call, thin=False)


@route("POST /nodes/{node}/disks/lvmthin")
def create_thin_pool(call: Call) -> Any:
    """Make a volume group with a thin pool of an unused disk, in a task."""
    return _create(call, thin=True)


def _create(call: Call, *, thin: bool) -> str:
    params, world, node, kind = call.params, call.world, call.node, "lvmthin" if thin else "lvm"
    name, device = str(params["name"]), str(params["device"])
    physical = Physical(call.store, node)
    size = int(physical.require_unused(device)["size"]) // _EXTENT * _EXTENT - _EXTENT
    whole = size * _THIN_SHARE // 100 // _EXTENT * _EXTENT if thin else size
    settings = {"type": kind, "vgname": name, "content": "rootdir,images"}
    settings |= {"thinpool": name} if thin else {}
    storage = NewStorage(name=name, node=node, size=whole, settings=settings)
    if params.get("add_storage"):
        storage.check(call)

    async def work(task: Task) -> None:
        await task.spend(Work.CREATE)
        with task.step():
            physical.require_unused(device)
            if name in physical.pools("lvm"):
                raise PveError(f"volume group with name '{name}' already exists on node '{node}'")
            task.log(f'  Physical volume "{device}" successfully created.')
            physical.add(DiskPool(kind="lvm", name=name, devices=(device,), size=size), used="LVM")
            task.log(f'  Volume group "{name}" successfully created')
            if thin:
                pool = DiskPool(kind="lvmthin", name=name, devices=(), size=whole, details={"vg": name})
                physical.add(pool, used="LVM")
                task.log(f'  Logical volume "{name}" created.')
            if params.get("add_storage"):
                storage.add(world, task)

    return call.start_task(f"{kind}create", name, work)


@route("DELETE /nodes/{node}/disks/lvm/{name}")
def remove_group(call: Call) -> Any:
    """Remove a volume group, in a task; its disks are wiped and its storage goes if the call says so."""
    params, world, node, name = call.params, call.world, call.node, str(call.params["name"])
    if params.get("cleanup-config"):
        call.check("/storage", "Datastore.Allocate")
    physical = Physical(call.store, node)

    async def work(task: Task) -> None:
        if name not in physical.pools("lvm"):
            raise PveError(f"no such volume group '{name}'")
        _refuse_system(physical, name)
        await task.spend(Work.DELETE)
        with task.step():
            physical.remove("lvmthin", name, free=False)
            physical.remove("lvm", name, free=bool(params.get("cleanup-disks")))
            if params.get("cleanup-config"):
                forget_storages(world, node, lambda config: _stands_on(config, "lvm", name))

    return call.start_task("lvmremove", name, work)


@route("DELETE /nodes/{node}/disks/lvmthin/{name}")
def remove_thin_pool(call: Call) -> Any:
    """Remove a thin pool, in a task; its group too, if its disks are to be wiped."""
    params, world, node = call.params, call.world, call.node
    name, group = str(params["name"]), str(params["volume-group"])
    if params.get("cleanup-config"):
        call.check("/storage", "Datastore.Allocate")
    physical = Physical(call.store, node)

    async def work(task: Task) -> None:
        found = physical.pools("lvmthin").get(name)
        if found is None or found["vg"] != group:
            raise PveError(f"no such thin pool {group}/{name}")
        _refuse_system(physical, group)
        await task.spend(Work.DELETE)
        with task.step():
            physical.remove("lvmthin", name, free=False)
            task.log(f'  Logical volume "{name}" successfully removed.')
            if params.get("cleanup-disks"):
                physical.remove("lvm", group, free=True)
                task.log(f'  Volume group "{group}" successfully removed')
            if params.get("cleanup-config"):
                forget_storages(world, node, lambda config: _stands_on(config, "lvmthin", group, name))

    return call.start_task("lvmthinremove", f"{group}-{name}", work)


def _refuse_system(physical: Physical, group: str) -> None:
    if "lvcount" in physical.pools("lvm").get(group, {}):
        text = f"Logical volume {group}/root contains a filesystem in use."
        raise PveError(f"command '/sbin/vgremove -y {group}' failed: exit code 5 ({text})")


def _stands_on(config: Document, kind: str, group: str, pool: str | None = None) -> bool:
    return bool(
        config["type"] == kind
        and config.get("vgname") == group
        and (pool is None or config.get("thinpool") == pool)
    )


@route("GET /nodes/{node}/disks/lvmthin")
def list_thin_pools(call: Call) -> Any:
    """List the thin pools."""
    rows = []
    for name, pool in sorted(Physical(call.store, call.node).pools("lvmthin").items()):
        used = sum(
            call.world.storages.used(storage, call.node)
            for storage, config in call.world.storages.all().items()
            if _stands_on(config, "lvmthin", str(pool["vg"]), name)
            and call.world.storages.is_on(config, call.node)
        )
        size = int(pool["size"])
        metadata = size // _METADATA_SHARE
        rows.append(
            {
                "lv": name,
                "vg": pool["vg"],
                "lv_size": size,
                "used": used,
                "metadata_size": metadata,
                "metadata_used": metadata * used // size if size else 0,
            }
        )
    return rows
