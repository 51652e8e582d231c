"""Migrating a VM to another node: `/nodes/{node}/qemu/{vmid}/migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives, options
from pvelab.api.nodes.qemu.devices import Mapped, local_devices, missing_mappings
from pvelab.api.nodes.qemu.local_volumes import StorageMap, references
from pvelab.api.nodes.qemu.migration import Migration
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.ha.config import is_managed, sid_of
from pvelab.world.ha.motion import motion_info
from pvelab.world.ha.requests import ask_to_migrate, is_managed_by_ha
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["check_available", "migrate_vm", "read_precondition"]

_ROOT_ONLY = ("force", "migration_type", "migration_network")


@route("GET /nodes/{node}/qemu/{vmid}/migrate")
def read_precondition(call: Call) -> Any:
    """Answer where a VM can go, and what of it is on its node alone."""
    world = call.world
    world.cluster.require_quorum()
    guest = world.guests.require("qemu", call.node, call.vmid)
    world.guests.check_unlocked(guest)
    running = guest["status"] == "running"
    blocking, mapped = local_devices(world, guest["config"], running=running)
    sid = sid_of("qemu", call.vmid)
    together, blockers = motion_info(world, sid)
    obstacles = {
        node: _list_obstacles(world, guest["config"], mapped, node) | _list_blockers(blockers, node)
        for node in world.cluster.nodes()
        if node != call.node
    }
    dependent = {"dependent-ha-resources": together} if is_managed(call.store, sid) else {}
    return {
        **dependent,
        "running": int(running),
        "allowed_nodes": [node for node, found in obstacles.items() if not found],
        "not_allowed_nodes": {node: found for node, found in obstacles.items() if found},
        "local_disks": _local_disks(world, guest),
        "local_resources": blocking,
        "mapped-resources": sorted(mapped),
        "mapped-resource-info": mapped,
        "has-dbus-vmstate": 1,
    }


@route("POST /nodes/{node}/qemu/{vmid}/migrate")
def migrate_vm(call: Call) -> Any:
    """Take a VM to another node in a task, its local disks with it."""
    world, params, target = call.world, call.params, str(call.params["target"])
    if target == call.node:
        raise bad_parameter("target", "target is local node.")
    world.cluster.require_quorum()
    if target not in world.cluster.nodes():
        raise PveError(f"no such cluster node '{target}'")
    for name in _ROOT_ONLY:
        if params.get(name) and not call.is_root:
            raise bad_parameter(name, "Only root may use this option.")
    guest = world.guests.require("qemu", call.node, call.vmid)
    world.guests.check_unlocked(guest)
    running = guest["status"] == "running"
    if running and not params.get("online"):
        raise PveError("can't migrate running VM without --online")
    storage_map = _storage_map(call, guest, target)
    if is_managed_by_ha(call, "qemu"):
        return ask_to_migrate(call, "qemu", target)

    async def work(task: Task) -> None:
        migration = Migration(
            world=world,
            task=task,
            vmid=call.vmid,
            source=call.node,
            target=target,
            storage_map=storage_map,
            online=running,
            with_local_disks=bool(params.get("with-local-disks")),
            force=bool(params.get("force")),
        )
        await migration.run()

    return call.start_task("qmigrate", call.vmid, work)


def _storage_map(call: Call, guest: Document, target: str) -> StorageMap:
    world, text = call.world, call.params.get("targetstorage")
    if not text:
        check_available(world, guest["config"], target)
        return StorageMap()
    try:
        storage_map = StorageMap.parse(text)
    except PveError as problem:
        raise bad_parameter("targetstorage", f"failed to parse storage map: {problem.text}\n") from problem
    if not storage_map.identity:
        options.check_vm(call, "VM.Config.Disk")
    for storage in (*storage_map.entries.values(), *filter(None, (storage_map.default,))):
        config = world.storages.require(storage, target)
        call.check(f"/storage/{storage}", "Datastore.AllocateSpace")
        if "images" not in world.storages.content_types(config):
            raise PveError(f"storage '{storage}' does not support vm images")
    if storage_map.identity:
        check_available(world, guest["config"], target)
    return storage_map


def check_available(world: World, config: Mapping[str, Any], target: str) -> None:
    """Refuse to take a VM to a node where a storage of it is not.

    Raises:
        PveError: Naming the storage.
    """
    for key in drives.drive_keys(config):
        volid = str(drives.parse_drive(world.facts, key, str(config[key]))["file"])
        if ":" in volid and not volid.startswith("/"):
            world.storages.require(parse_volume_id(volid)[0], target)


def _list_obstacles(world: World, config: Mapping[str, Any], mapped: Mapped, node: str) -> dict[str, Any]:
    found = {
        "unavailable_storages": _missing_storages(world, config, node),
        "unavailable-resources": missing_mappings(world, mapped, node),
    }
    return {key: names for key, names in found.items() if names}


def _list_blockers(blockers: Mapping[str, list[dict[str, str]]], node: str) -> dict[str, Any]:
    return {"blocking-ha-resources": blockers[node]} if node in blockers else {}


def _missing_storages(world: World, config: Mapping[str, Any], node: str) -> list[str]:
    missing = set()
    for key in drives.drive_keys(config):
        volid = str(drives.parse_drive(world.facts, key, str(config[key]))["file"])
        if ":" in volid and not volid.startswith("/"):
            storage, _ = parse_volume_id(volid)
            definition = world.storages.config(storage)
            if definition.get("disable") or not world.storages.is_on(definition, node):
                missing.add(storage)
    return sorted(missing)


def _local_disks(world: World, guest: Document) -> list[dict[str, Any]]:
    rows = []
    for volid, reference in references(world, guest).items():
        if volid == "none" or reference.shared:
            continue
        row = {
            "volid": volid,
            "cdrom": int(reference.cdrom),
            "shared": 0,
            "is_unused": int(reference.where == "unused"),
            "is_attached": int(reference.where in ("attached", "generated")),
            "is_vmstate": int(reference.key == "vmstate"),
            "is_tpmstate": int(reference.key == "tpmstate0"),
        }
        if drives.is_drive(reference.key):
            row["drivename"] = reference.key
        if ":" in volid:
            if world.storages.is_shared(world.storages.config(parse_volume_id(volid)[0])):
                continue
            volume = world.volumes.find(volid, str(guest["node"]))
            row |= {} if volume is None else {"size": volume["size"]}
        rows.append(row)
    return rows
