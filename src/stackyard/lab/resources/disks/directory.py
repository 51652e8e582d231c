"""Disks as folders: `/nodes/{node}/disks/directory`, a file system that is mounted under /mnt/pve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.generate import new_uuid
from stackyard.lab.latency import Work
from stackyard.lab.physical import DiskPool, Physical
from stackyard.lab.problems import PveError
from stackyard.lab.resources.disks.adding import NewStorage, forget_storages
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from stackyard.lab.call import Call
    from stackyard.lab.tasks import Task

__all__ = ["create_directory", "list_directories", "remove_directory"]

_CONTENT = "backup,iso,vztmpl,rootdir,images,snippets"
# What a file system keeps for itself and for root.
_USABLE_PER_CENT = 95


@route("GET /nodes/{node}/disks/directory")
def list_directories(call: Call) -> Any:
    """List the disks that are mounted as folders."""
    return [
        {
            "unitfile": _unit(name),
            "path": f"/mnt/pve/{name}",
            "device": f"/dev/disk/by-uuid/{found['uuid']}",
            "type": found["filesystem"],
            "options": "defaults",
        }
        for name, found in sorted(Physical(call.store, call.node).pools("directory").items())
    ]


def _unit(name: str) -> str:
    escaped = name.replace("-", "\\x2d")
    return f"/etc/systemd/system/mnt-pve-{escaped}.mount"


@route("POST /nodes/{node}/disks/directory")
def create_directory(call: Call) -> Any:
    """Make a file system on an unused disk and mount it, in a task."""
    params, world, node = call.params, call.world, call.node
    name, device, kind = str(params["name"]), str(params["device"]), str(params.get("filesystem", "ext4"))
    physical, path = Physical(call.store, node), f"/mnt/pve/{params['name']}"
    size = int(physical.require_unused(device)["size"]) * _USABLE_PER_CENT // 100
    storage = NewStorage(
        name=name,
        node=node,
        size=size,
        settings={"type": "dir", "path": path, "content": _CONTENT, "is_mountpoint": "1"},
    )
    if params.get("add_storage"):
        storage.check(call)
    if name in physical.pools("directory"):
        raise PveError(f"a systemd mount unit already exists: {_unit(name)}")

    async def work(task: Task) -> None:
        task.log(f"# /sbin/sgdisk -n1 -t1:8300 {device}")
        task.log(f"# /sbin/mkfs -t {kind} {device}1")
        await task.spend(Work.CREATE)
        with task.step():
            physical.require_unused(device)
            details = {"filesystem": kind, "uuid": new_uuid()}
            pool = DiskPool(kind="directory", name=name, devices=(device,), size=size, details=details)
            physical.add(pool, used=kind)
            if params.get("add_storage"):
                storage.add(world, task)

    return call.start_task("dircreate", name, work)


@route("DELETE /nodes/{node}/disks/directory/{name}")
def remove_directory(call: Call) -> Any:
    """Unmount a disk, in a task; it is wiped and its storage goes if the call says so."""
    params, world, node, name = call.params, call.world, call.node, str(call.params["name"])
    if params.get("cleanup-config"):
        call.check("/storage", "Datastore.Allocate")
    physical = Physical(call.store, node)

    async def work(task: Task) -> None:
        if name not in physical.pools("directory"):
            raise PveError(f"command 'systemctl stop mnt-pve-{name}.mount' failed: exit code 5")
        await task.spend(Work.DELETE)
        with task.step():
            physical.remove("directory", name, free=bool(params.get("cleanup-disks")))
            if params.get("cleanup-config"):
                path = f"/mnt/pve/{name}"
                forget_storages(
                    world, node, lambda config: config["type"] == "dir" and config.get("path") == path
                )

    return call.start_task("dirremove", name, work)
