"""ZFS pools of a node: `/nodes/{node}/disks/zfs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.disks.pools import NewStorage, forget_storages
from pvelab.faults.latency import Work
from pvelab.server.params import properties
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.storage.physical import DiskPool, NodeDisks, link_by_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["create_pool", "list_pools", "read_pool", "remove_pool"]

_AT_LEAST = {
    "single": 1,
    "mirror": 2,
    "raid10": 4,
    "raidz": 3,
    "raidz2": 4,
    "raidz3": 5,
    "draid": 3,
    "draid2": 4,
    "draid3": 5,
}
_PARITY = {"raidz": 1, "raidz2": 2, "raidz3": 3, "draid": 1, "draid2": 2, "draid3": 3}


@route("GET /nodes/{node}/disks/zfs")
def list_pools(call: Call) -> Any:
    """List the pools."""
    rows = []
    for name, pool in sorted(NodeDisks(call.store, call.node).pools("zfs").items()):
        used = _count_used_bytes(call.world, call.node, name)
        rows.append(
            {
                "name": name,
                "size": int(pool["size"]),
                "alloc": used,
                "free": max(0, int(pool["size"]) - used),
                "frag": 0,
                "dedup": 1.0,
                "health": "ONLINE",
            }
        )
    return rows


def _count_used_bytes(world: World, node: str, pool: str) -> int:
    storages = [
        name
        for name, config in world.storages.all().items()
        if config["type"] == "zfspool"
        and str(config.get("pool", "")).partition("/")[0] == pool
        and world.storages.is_on(config, node)
    ]
    return sum(world.storages.used(name, node) for name in storages)


@route("GET /nodes/{node}/disks/zfs/{name}")
def read_pool(call: Call) -> Any:
    """Answer a pool with its devices."""
    name = call.params["name"]
    physical = NodeDisks(call.store, call.node)
    pool = physical.pools("zfs").get(name)
    if pool is None:
        raise PveError(f"command '/sbin/zpool status -P {name}' failed: exit code 1")
    return {
        "name": name,
        "state": "ONLINE",
        "scan": "none requested",
        "errors": "No known data errors",
        "leaf": 0,
        "children": [_vdev(name, _groups(pool, physical))],
    }


def _vdev(name: str, children: list[dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "state": "ONLINE", "read": 0, "write": 0, "cksum": 0, "msg": ""}
    return row | ({"leaf": 0, "children": children} if children else {"leaf": 1})


def _groups(pool: Document, physical: NodeDisks) -> list[dict[str, Any]]:
    level, disks = str(pool["raidlevel"]), physical.disks()
    # ZFS makes a partition of its own on each disk, which Proxmox gives it by its name in by-id.
    leaves = [_vdev(f"{link_by_id(disks[str(device)])}-part1", []) for device in pool["devices"]]
    if level == "single":
        return leaves
    if level == "raid10":
        return [_vdev(f"mirror-{at // 2}", leaves[at : at + 2]) for at in range(0, len(leaves), 2)]
    word = {"raidz": "raidz1", "draid": "draid1"}.get(level, level)
    return [_vdev(f"{word}-0", leaves)]


@route("POST /nodes/{node}/disks/zfs")
def create_pool(call: Call) -> Any:
    """Make a pool of unused disks, in a task."""
    params, world, node = call.params, call.world, call.node
    name, level = str(params["name"]), str(params["raidlevel"])
    devices = tuple(split_list(str(params["devices"])))
    physical = NodeDisks(call.store, node)
    draid = _draid(call, level)
    sizes = [int(physical.require_unused(device)["size"]) for device in devices]
    size = _size(level, sizes)
    storage = NewStorage(
        name=name,
        node=node,
        size=size,
        settings={"type": "zfspool", "pool": name, "content": "rootdir,images", "mountpoint": f"/{name}"},
    )
    if params.get("add_storage"):
        storage.check(call)
    if name in physical.pools("zfs"):
        raise PveError(f"pool '{name}' already exists on node '{node}'")
    _check_count(level, len(devices), draid)

    async def work(task: Task) -> None:
        task.log(f"# /sbin/zpool create -o ashift={params.get('ashift', 12)} {name} {' '.join(devices)}")
        await task.spend(Work.CREATE)
        with task.step():
            for device in devices:
                physical.require_unused(device)
            details = {"raidlevel": level, "compression": params.get("compression", "on")}
            pool = DiskPool(kind="zfs", name=name, devices=devices, size=size, details=details)
            physical.add(pool, used="ZFS")
            task.log(f"# /sbin/zfs set compression={details['compression']} {name}")
            if params.get("add_storage"):
                storage.add(world, task)

    return call.start_task("zfscreate", name, work)


def _draid(call: Call, level: str) -> Mapping[str, Any]:
    if "draid-config" not in call.params:
        return {}
    if not level.startswith("draid"):
        raise PveError("draid-config set without using dRAID level")
    schema = call.world.facts.schema("POST /nodes/{node}/disks/zfs", "draid-config")["format"]
    return properties.parse(schema, str(call.params["draid-config"]))


def _check_count(level: str, count: int, draid: Mapping[str, Any]) -> None:
    if level == "raid10" and count % 2:
        raise PveError("raid10 needs an even number of disks")
    if level == "single" and count > 1:
        raise PveError("please give only one disk for single disk mode")
    if count < _AT_LEAST[level]:
        raise PveError(f"{level} needs at least {_AT_LEAST[level]} disks")
    if level.startswith("draid"):
        needed = _AT_LEAST[level] - 2 + int(draid.get("data", 0)) + int(draid.get("spares", 0))
        if count < needed:
            raise PveError(f"At least {needed} disks needed for current dRAID config")


def _size(level: str, sizes: list[int]) -> int:
    smallest, count = min(sizes, default=0), len(sizes)
    if level in ("single", "mirror"):
        return smallest
    if level == "raid10":
        return smallest * (count // 2)
    return smallest * max(1, count - _PARITY[level])


@route("DELETE /nodes/{node}/disks/zfs/{name}")
def remove_pool(call: Call) -> Any:
    """Destroy a pool, in a task; the disks are wiped and the storage goes if the call says so."""
    params, world, node, name = call.params, call.world, call.node, str(call.params["name"])
    if params.get("cleanup-config"):
        call.check("/storage", "Datastore.Allocate")
    physical = NodeDisks(call.store, node)

    async def work(task: Task) -> None:
        if name not in physical.pools("zfs"):
            tool = "list -vHPL" if params.get("cleanup-disks") else "destroy"
            raise PveError(f"command 'zpool {tool} {name}' failed: exit code 1")
        await task.spend(Work.DELETE)
        with task.step():
            physical.remove("zfs", name, free=bool(params.get("cleanup-disks")))
            if params.get("cleanup-config"):
                forget_storages(
                    world,
                    node,
                    lambda config: config["type"] == "zfspool" and config.get("pool") == name,
                )

    return call.start_task("zfsremove", name, work)
