"""File systems of a Ceph cluster: `/nodes/{node}/ceph/fs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.ceph import FILE_SYSTEMS, POOLS, Ceph
from stackyard.lab.latency import Work
from stackyard.lab.problems import PveError
from stackyard.lab.resources.ceph.pools import add_pool
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from stackyard.lab.call import Call
    from stackyard.lab.tasks import Task
    from stackyard.lab.world import World

__all__ = ["create_file_system", "list_file_systems", "remove_file_system"]

_CONTENT = "backup,iso,vztmpl"


@route("GET /nodes/{node}/ceph/fs")
def list_file_systems(call: Call) -> Any:
    """List the file systems with their pools."""
    ceph = Ceph(call.world)
    ceph.require()
    pools = ceph.pools()
    return [
        {
            "name": name,
            "data_pool": found["data_pool"],
            "data_pools": [found["data_pool"]],
            "data_pool_ids": [pools[str(found["data_pool"])]["id"]],
            "metadata_pool": found["metadata_pool"],
            "metadata_pool_id": pools[str(found["metadata_pool"])]["id"],
        }
        for name, found in ceph.file_systems().items()
        if found["data_pool"] in pools and found["metadata_pool"] in pools
    ]


@route("POST /nodes/{node}/ceph/fs/{name}")
def create_file_system(call: Call) -> Any:
    """Make a file system and its two pools, in a task, with a storage on it if asked for."""
    params, ceph, world = call.params, Ceph(call.world), call.world
    ceph.require()
    name = str(params.get("name", "cephfs"))
    if params.get("add-storage"):
        call.check("/storage", "Datastore.Allocate")
    _check(ceph, name)

    async def work(task: Task) -> None:
        await task.spend(Work.CREATE)
        with task.step():
            _check(ceph, name)
            groups = int(params.get("pg_num", 128))
            task.log(f"creating data pool '{name}_data'...")
            add_pool(world, f"{name}_data", {"pg_num": groups, "application": "cephfs"})
            task.log(f"creating metadata pool '{name}_metadata'...")
            add_pool(world, f"{name}_metadata", {"pg_num": max(16, groups // 4), "application": "cephfs"})
            task.log(f"configuring new CephFS '{name}'")
            system = {"data_pool": f"{name}_data", "metadata_pool": f"{name}_metadata"}
            world.store.put(FILE_SYSTEMS, name, system)
            task.log(f"Successfully create CephFS '{name}'")
            if params.get("add-storage"):
                task.log(f"Adding '{name}' to storage configuration...")
                _add_storage(world, name)
            ceph.refresh_capacities()

    return call.start_task("cephfscreate", name, work)


def _check(ceph: Ceph, name: str) -> None:
    if f"{name}_data" in ceph.pools() or f"{name}_metadata" in ceph.pools():
        raise PveError(f"ceph pools '{name}_data' and/or '{name}_metadata' already exist")
    if name in ceph.file_systems():
        raise PveError(f"ceph fs '{name}' already exists")
    running = [mds for mds in ceph.services("mds").values() if ceph.runs(mds)]
    if not running:
        raise PveError("no running Metadata Server (MDS) found!")
    if len(running) <= len(ceph.file_systems()):
        raise PveError("no standby Metadata Server (MDS) found!")


def _add_storage(world: World, name: str) -> None:
    if name in world.storages.all():
        text = "check log and add manually!"
        raise PveError(
            f"adding storage for CephFS '{name}' failed, {text} storage ID '{name}' already defined"
        )
    settings = {"storage": name, "type": "cephfs", "path": f"/mnt/pve/{name}", "content": _CONTENT}
    world.store.put("storages", name, {**settings, "fs-name": name})


@route("DELETE /nodes/{node}/ceph/fs/{name}")
def remove_file_system(call: Call) -> Any:
    """Remove a file system whose storages are disabled, in a task."""
    params, ceph, world, name = call.params, Ceph(call.world), call.world, str(call.params["name"])
    ceph.require()
    if params.get("remove-storages"):
        call.check("/storage", "Datastore.Allocate")
    found = ceph.file_systems().get(name)
    if found is None:
        raise PveError(f"no such cephfs '{name}'")

    async def work(task: Task) -> None:
        storages = [
            storage
            for storage, config in world.storages.all().items()
            if config["type"] == "cephfs"
            and not config.get("monhost")
            and config.get("fs-name", storage) == name
        ]
        for storage in storages:
            if not world.storages.config(storage).get("disable"):
                text = "make sure to disable and unmount the storage first"
                raise PveError(f"storage '{storage}' is not disabled, {text}")
        await task.spend(Work.DELETE)
        with task.step():
            world.store.delete(FILE_SYSTEMS, name)
            for storage in storages if params.get("remove-storages") else ():
                world.store.delete("storages", storage)
                world.store.delete("capacities", f"|{storage}")
            if params.get("remove-pools"):
                for pool in (found["data_pool"], found["metadata_pool"]):
                    task.log(f"removing pool '{pool}'")
                    world.store.delete(POOLS, str(pool))

    return call.start_task("cephdestroyfs", name, work)
