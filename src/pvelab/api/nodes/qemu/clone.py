"""Cloning a VM: `POST /nodes/{node}/qemu/{vmid}/clone`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives, options
from pvelab.api.nodes.qemu.copies import Copy, copy_drive
from pvelab.api.nodes.qemu.networks import complete_network
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.generate import new_uuid
from pvelab.world.guests import snapshots
from pvelab.world.rollback import undo_on_failure
from pvelab.world.storage.volume_features import has_feature
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.api.nodes.qemu.drives import Drive
    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["clone_vm"]

_NOT_COPIED = re.compile(
    r"lock|template|parent|vmstate|snaptime|snapstate|runningcpu|runningmachine|running-nets-host-mtu|unused\d+"
)
_UUID = re.compile(r"(^|,)uuid=[^,]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clone:
    """A clone that may be created: the source's configuration taken apart.

    Attributes:
        config: What the new VM has from the start: everything but disks.
        disks: The drives to copy, by key.
        full: Which of them are copied in full.
    """

    config: dict[str, Any]
    disks: dict[str, Drive] = field(default_factory=dict)
    full: frozenset[str] = frozenset()


@route("POST /nodes/{node}/qemu/{vmid}/clone")
def clone_vm(call: Call) -> Any:
    """Reserve the number at once, copy the disks in a task."""
    world, node, vmid, newid = call.world, call.node, call.vmid, int(call.params["newid"])
    guest = _load_and_check(call)
    running = guest["status"] == "running"
    clone = _take_apart(call, guest)

    async def work(task: Task) -> None:
        # Several clones of one stopped VM at the same time are fine.
        async with (
            world.locks.guest("qemu", vmid, shared=not running, timeout_s=1),
            world.locks.guest("qemu", newid, timeout_s=1),
        ):
            _check_still(call, running=running)
            task.log(f"creating a clone of VM {vmid} with ID {newid}")
            with task.step():
                world.guests.create("qemu", node, newid, {"lock": "clone"})
                _copy_firewall(world, vmid, newid)
            await _copy(call, task, clone)

    return call.start_task("qmclone", vmid, work)


def _load_and_check(call: Call) -> Document:
    world, params, target = call.world, call.params, _target(call)
    if params.get("pool") is not None:
        world.pools.require(params["pool"])
    if target:
        world.cluster.require_member(target)
    storage = params.get("storage")
    if storage is not None:
        config = world.storages.require(storage, call.node)
        if "images" not in world.storages.content_types(config):
            raise bad_parameter("storage", f"storage '{storage}' does not support vm images")
        if target:
            world.storages.require(storage, target)
            if not world.storages.is_shared(config):
                raise PveError(f"can't clone to non-shared storage '{storage}'")
    world.cluster.require_quorum()
    guest = world.guests.require("qemu", call.node, call.vmid)
    world.guests.check_unlocked(guest)
    if params.get("snapname"):
        snapshots.require(guest, params["snapname"])
    if not _is_full(call, guest):
        for name in ("storage", "format"):
            if name in params:
                raise PveError(f"parameter '{name}' not allowed for linked clones")
    return guest


def _check_still(call: Call, *, running: bool) -> None:
    guest = _load_and_check(call)
    if (guest["status"] == "running") != running:
        raise PveError("unexpected state change")
    _require_free(call)


def _require_free(call: Call) -> None:
    newid = int(call.params["newid"])
    if call.world.guests.get(newid) is not None:
        raise PveError(f"unable to create VM {newid}: config file already exists")


def _target(call: Call) -> str | None:
    target = call.params.get("target")
    return None if target in (None, "localhost", call.node) else str(target)


def _is_full(call: Call, guest: Document) -> bool:
    return bool(call.params.get("full", not guest["config"].get("template")))


def _source_config(call: Call, guest: Document) -> Mapping[str, Any]:
    name = call.params.get("snapname")
    source: Mapping[str, Any] = snapshots.require(guest, name)["config"] if name else guest["config"]
    return source


def _take_apart(call: Call, guest: Document) -> _Clone:
    source = _source_config(call, guest)
    shared = _check_storages(call, source)
    options.check_bridges(call, source)
    target = _target(call)
    if target and not shared:
        raise PveError(f"can't clone VM to node '{target}' (VM uses local storage)")
    _require_free(call)
    full = _is_full(call, guest)
    config: dict[str, Any] = {"lock": "clone"}
    disks: dict[str, Drive] = {}
    copied = set()
    for key in sorted(source):
        if _NOT_COPIED.fullmatch(key):
            continue
        if not drives.is_drive(key):
            config[key] = _copy_value(call.world, key, source[key])
            continue
        if key == "tpmstate0" and full and guest["status"] == "running" and "snapname" not in call.params:
            raise PveError("cannot clone TPM state while VM is running")
        drive = drives.parse_drive(call.world.facts, key, str(source[key]))
        if drives.is_cdrom(drive) and not drives.is_cloudinit(drive):
            config[key] = source[key]
            continue
        disks[key] = drive
        if full or key == "tpmstate0" or drives.is_cloudinit(drive):
            copied.add(key)
        _check_feature(call, key, str(drive["file"]), full=key in copied)
    config["smbios1"] = _new_identity(str(config.get("smbios1", "")))
    if config.get("vmgenid"):
        config["vmgenid"] = new_uuid()
    config["name"] = call.params.get("name") or f"Copy-of-VM-{source.get('name', call.vmid)}"
    if call.params.get("description"):
        config["description"] = call.params["description"]
    return _Clone(config=config, disks=disks, full=frozenset(copied))


def _copy_value(world: World, key: str, value: Any) -> Any:
    if not re.fullmatch(r"net\d+", key):
        return value
    return complete_network(world, str(value), new_address=True)


def _new_identity(smbios: str) -> str:
    rest = _UUID.sub("", smbios).strip(",")
    return f"uuid={new_uuid()}" + (f",{rest}" if rest else "")


def _check_feature(call: Call, key: str, volid: str, *, full: bool) -> None:
    snapshot = call.params.get("snapname")
    volume = None if volid.startswith("/") else call.world.volumes.find(volid, call.node)
    feature = "copy" if full else "clone"
    if volume is None or not has_feature(call.world, feature, volume, snapshot=bool(snapshot)):
        kind, what = "Full" if full else "Linked", " a snapshot of" if snapshot else ""
        raise PveError(f"{kind} clone feature is not supported for{what} '{volid}' ({key})")


def _check_storages(call: Call, source: Mapping[str, Any]) -> bool:
    """Refuse storages that the caller may not fill; return whether all nodes see every volume."""
    shared = True
    for key in drives.drive_keys(source):
        drive = drives.parse_drive(call.world.facts, key, str(source[key]))
        volid = str(drive["file"])
        if volid == "none":
            continue
        if volid == "cdrom":
            call.check("/", "Sys.Console")
            continue
        storage, _ = parse_volume_id(volid)
        shared = shared and call.world.storages.is_shared(call.world.storages.config(storage))
        if not drives.is_cdrom(drive):
            call.check(f"/storage/{call.params.get('storage', storage)}", "Datastore.AllocateSpace")
    if "vmstatestorage" in source:
        call.check(f"/storage/{source['vmstatestorage']}", "Datastore.AllocateSpace")
    return shared


async def _copy(call: Call, task: Task, clone: _Clone) -> None:
    world, node, newid = call.world, call.node, int(call.params["newid"])
    made: list[str] = []
    config = dict(clone.config)

    def remove() -> None:
        with task.step():
            for volid in made:
                world.volumes.free(volid, node)
            world.store.delete("firewall", f"guest/{newid}")
            world.guests.remove(newid)

    with undo_on_failure(remove, failing="clone failed: "):
        for key, drive in sorted(clone.disks.items()):
            copy = Copy(
                key=key,
                drive=drive,
                node=node,
                vmid=newid,
                full=key in clone.full,
                storage=call.params.get("storage") if key in clone.full else None,
                format=call.params.get("format"),
                snapshot=None if drives.is_cloudinit(drive) else call.params.get("snapname"),
            )
            config[key] = drives.print_drive(world.facts, key, await copy_drive(world, task, copy, made))
            with task.step():
                # Anyone who finds a clone that was cut off finds its disks too.
                guest = world.guests.require("qemu", node, newid)
                world.guests.update(guest, config=dict(config))
        if clone.full or not clone.disks:
            await task.spend(Work.CLONE)
        await world.machines.copy(call.vmid, newid, call.params.get("snapname"))
        with task.step():
            _finish(call, config)


def _finish(call: Call, config: Mapping[str, Any]) -> None:
    world, newid = call.world, int(call.params["newid"])
    guest = world.guests.require("qemu", call.node, newid)
    finished = {key: value for key, value in config.items() if key != "lock"}
    world.guests.update(guest, config=finished, node=_target(call) or call.node)
    if call.params.get("pool"):
        world.pools.add_guest(call.params["pool"], newid)


def _copy_firewall(world: World, vmid: int, newid: int) -> None:
    rules = world.store.get("firewall", f"guest/{vmid}")
    if rules is not None:
        world.store.put("firewall", f"guest/{newid}", rules)
