"""Volumes of a storage: `/nodes/{node}/storage/{storage}/content` and one volume below it."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from pvelab.faults.latency import Work
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.storage import images
from pvelab.world.storage.allocation import Inline, allocate
from pvelab.world.storage.contents import disk_size
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volume_access import check_volume_access
from pvelab.world.storage.volume_names import FILE_CONTENTS, parse_name, path_of
from pvelab.world.storage.volumes import NewVolume, parse_volume_id

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = [
    "copy_volume",
    "create_volume",
    "delete_volume",
    "free",
    "index_storage",
    "read_volume",
    "update_volume",
]

_SUBDIRECTORIES = (
    *("content", "download-url", "file-restore", "identity", "import-metadata", "oci-registry-pull"),
    *("prunebackups", "rrd", "rrddata", "status", "upload"),
)
_UNITS = {"": 2**10, "M": 2**20, "G": 2**30}
_MOST_PROTECTED = 5


@route("GET /nodes/{node}/storage/{storage}")
def index_storage(_call: Call) -> Any:
    """List what there is of a storage."""
    return [{"subdir": name} for name in _SUBDIRECTORIES]


@route("POST /nodes/{node}/storage/{storage}/content")
async def create_volume(call: Call) -> Any:
    """Allocate a volume for a guest and answer its id."""
    params, world = call.params, call.world
    storage, name, chosen = str(params["storage"]), str(params["filename"]), params.get("format")
    # A pattern of Perl lets a line break at the end pass.
    asked = str(params["size"]).strip()
    unit = asked.lstrip("0123456789")
    size = int(asked.removesuffix(unit)) * _UNITS[unit]
    suffix = re.search(r"\.(raw|qcow2|vmdk)$", name)
    if suffix is not None:
        if chosen is not None and chosen != suffix[1]:
            raise bad_parameter("format", f"different storage formats ({chosen} != {suffix[1]})")
        chosen = suffix[1]
    config = world.storages.require(storage, call.node)
    chosen = chosen or str(config.get("format") or type_of(config).default_format)
    _check_name(config, name, chosen, call.vmid)
    new = NewVolume(storage=storage, node=call.node, vmid=call.vmid, size=size, format=chosen, name=name)
    return await allocate(world, Inline(world), new)


def _check_name(config: Document, name: str, chosen: str, vmid: int) -> None:
    if not type_of(config).files:
        prefix = "subvol" if chosen == "subvol" else "vm"
        if not name.startswith(f"{prefix}-{vmid}-"):
            raise PveError(f"illegal name '{name}' - should be '{prefix}-{vmid}-*'")
        return
    parsed = parse_name(config, f"{vmid}/{name}")
    if parsed.format != chosen:
        text = f"illegal name '{name}' - wrong extension for format ('{parsed.format} != '{chosen}')"
        raise PveError(text)


@route("GET /nodes/{node}/storage/{storage}/content/{volume}")
def read_volume(call: Call) -> Any:
    """Answer where a volume is and how large."""
    volid, config = _volume(call)
    check_volume_access(call, volid)
    _, name = parse_volume_id(volid)
    parsed = parse_name(config, name)
    volume = call.world.volumes.find(volid, call.node)
    if volume is None:
        raise PveError(f"volume_size_info on '{volid}' failed - no format")
    is_file = parsed.content in FILE_CONTENTS
    size = disk_size(volume) if parsed.content == "import" else int(volume["size"])
    chosen = parsed.format if is_file else str(volume["format"])
    if not size and chosen != "subvol":
        raise PveError(f"volume '{volid}' has size zero")
    entry: dict[str, Any] = {
        "path": path_of(config, volid),
        "size": size,
        "used": int(volume["size"]) if type_of(config).files else 0,
        "format": chosen,
    }
    if parsed.content == "backup":
        entry |= {"notes": volume.get("notes", ""), "protected": int(volume.get("protected", 0))}
    return entry


@route("PUT /nodes/{node}/storage/{storage}/content/{volume}")
def update_volume(call: Call) -> Any:
    """Change the notes of a backup, or protect it."""
    volid, config = _volume(call)
    check_volume_access(call, volid)
    changes = {key: call.params[key] for key in ("notes", "protected") if key in call.params}
    _, name = parse_volume_id(volid)
    parsed = parse_name(config, name)
    for attribute in changes:
        if not type_of(config).files:
            text = f"attribute '{attribute}' is not supported for storage type '{config['type']}'"
            raise PveError(text)
        if parsed.content != "backup":
            raise PveError(
                "only backups can have notes"
                if attribute == "notes"
                else f"only backups support attribute '{attribute}'"
            )
    volume = call.world.volumes.require(volid, call.node)
    if changes.get("protected") and not volume.get("protected"):
        _check_protected(call, config, volume)
    call.store.put("volumes", f"{volume['scope']}|{volid}", {**volume, **changes})
    return None


def _check_protected(call: Call, config: Document, volume: Document) -> None:
    storage = str(volume["storage"])
    unlimited = call.may(f"/storage/{storage}", "Datastore.Allocate")
    most = int(config.get("max-protected-backups", -1 if unlimited else _MOST_PROTECTED))
    present = [
        one
        for one in call.world.storages.volumes(storage, call.node)
        if one.get("protected") and one["content"] == "backup" and one.get("vmid") == volume.get("vmid")
    ]
    if -1 < most <= len(present):
        text = f"The number of protected backups per guest is limited to {most} on storage '{storage}'"
        raise PveError(text)


@route("DELETE /nodes/{node}/storage/{storage}/content/{volume}")
async def delete_volume(call: Call) -> Any:
    """Remove a volume in a task; with `delay` the answer waits for its end, and is empty then."""
    world, node = call.world, call.node
    volid, config = _volume(call)
    storage, name = parse_volume_id(volid)
    parsed = parse_name(config, name)
    if parsed.content == "backup" and parsed.vmid is not None:
        call.check(f"/storage/{storage}", "Datastore.AllocateSpace")
        call.check(f"/vms/{parsed.vmid}", "VM.Backup")
    else:
        call.check(f"/storage/{storage}", "Datastore.Allocate")

    async def work(task: Task) -> None:
        await task.spend(Work.DELETE)
        with task.step():
            free(world, task, volid, node)
            task.log(f"Removed volume '{volid}'")

    ident = storage if parsed.vmid is None else f"{parsed.vmid}@{storage}"
    upid = call.start_task("imgdel", ident, work)
    if "delay" not in call.params:
        return upid
    return await _wait_for_task(call, upid, float(call.params["delay"]))


def free(world: World, task: Task, volid: str, node: str) -> None:
    """Free a volume in the running transaction; a file that is not there is only worth a line in the log.

    Raises:
        PveError: It is protected, linked clones depend on it, or it is a disk that does not exist.
    """
    storage, name = parse_volume_id(volid)
    config = world.storages.require(storage, node)
    images.check_unused_base(world, volid, node)
    volume = world.volumes.find(volid, node)
    if volume is not None and volume.get("protected"):
        raise PveError(f"cannot remove protected volume '{name}' on '{storage}'")
    if volume is not None:
        world.volumes.free(volid, node)
    elif type_of(config).files:
        task.log(f"disk image '{path_of(config, volid)}' does not exist")
    elif config["type"] in ("lvm", "lvmthin"):
        group = config.get("vgname", storage)
        text = f"lvremove '{group}/{name}' error:   Failed to find logical volume \"{group}/{name}\""
        raise PveError(text)
    else:
        raise PveError(f"{config['type']} error: volume '{name}' does not exist")


async def _wait_for_task(call: Call, upid: str, seconds: float) -> str | None:
    tasks = call.world.tasks
    end = asyncio.ensure_future(tasks.wait(upid))
    timer = asyncio.ensure_future(call.world.clock.sleep(seconds))
    try:
        await asyncio.wait({end, timer}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        end.cancel()
    if tasks.is_running(upid):
        return upid
    status = str((tasks.get(upid) or {}).get("status", "unexpected status"))
    if status != "OK" and not status.startswith("WARNINGS"):
        raise PveError(status)
    return None


@route("POST /nodes/{node}/storage/{storage}/content/{volume}")
def copy_volume(call: Call) -> Any:
    """Copy a volume under another name, to another node if one is named, in a task."""
    world, node = call.world, call.node
    source, _ = _volume(call)
    target, config = _volume(call, "target")
    there = str(call.params.get("target_node", node))
    world.cluster.require_member(there)
    world.volumes.require(source, node)

    async def work(task: Task) -> None:
        volume = world.volumes.require(source, node)
        storage, name = parse_volume_id(target)
        parsed = parse_name(config, name)
        await task.spend(Work.MOVE)
        with task.step():
            if world.volumes.find(target, there) is not None:
                raise PveError(f"volume {target} already exists")
            if parsed.content == "images":
                _copy_disk(
                    world,
                    volume,
                    NewVolume(
                        storage=storage,
                        node=there,
                        vmid=int(parsed.vmid or 0),
                        size=int(volume["size"]),
                        format=parsed.format,
                        name=parsed.name,
                        image=volume.get("image"),
                    ),
                )
            else:
                _copy_file(world, volume, target, there)

    return call.start_task("imgcopy", "", work)


def _copy_disk(world: World, volume: Document, new: NewVolume) -> None:
    copied = world.volumes.allocate(new)
    key = f"{world.storages.scope(new.storage, new.node)}|{copied}"
    world.store.put("volumes", key, {**(world.store.get("volumes", key) or {}), "content": volume["content"]})


def _copy_file(world: World, volume: Document, target: str, node: str) -> None:
    own = ("volid", "storage", "scope", "place", "size", "ctime")
    fields = {key: value for key, value in volume.items() if key not in own}
    world.volumes.add(target, node, int(volume["size"]), **fields)


def _volume(call: Call, parameter: str = "volume") -> tuple[str, Document]:
    """Return the volume id that a call names, with or without its storage, and the storage's definition."""
    storage, volume = str(call.params["storage"]), str(call.params[parameter])
    if ":" in volume:
        try:
            named, _ = parse_volume_id(volume)
        except PveError as err:
            raise bad_parameter(parameter, err.text) from err
        if named != storage:
            raise bad_parameter(parameter, f"storage ID mismatch ({named} != {storage})")
    volid = volume if ":" in volume else f"{storage}:{volume}"
    return volid, call.world.storages.config(storage)
