"""Guests, volumes and storages of a seed, put into a new lab as they stand, in the running transaction.

What a guest's configuration says of its disks is enough: a volume that it names and that is not there yet is
made, with the size that stands beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.params.formats import parse_size
from pvelab.server.problems import PveError
from pvelab.world.storage.storages import KNOWN_TYPES, type_of
from pvelab.world.storage.volume_names import FILE_CONTENTS, VolumeName, list_format, parse_name
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pvelab.seeds import Seed, SeedGuest, SeedVolume
    from pvelab.world.world import World

__all__ = ["plant_guests", "plant_storages"]

_PID = 1000
_CLOUDINIT_SIZE = 4 * 2**20
_OWN = ("snaptime", "parent", "description", "vmstate", "snapstate")


def plant_storages(world: World, seed: Seed, nodes: tuple[str, ...]) -> None:
    """Define the storages of a seed and say how much fits into them.

    Raises:
        PveError: The lab knows no storage of that type.
    """
    put = world.store.put
    for storage, config in (seed.storages or {}).items():
        if config["type"] not in KNOWN_TYPES:
            raise PveError(
                f"storage '{storage}' has the type '{config['type']}', which the lab does not have"
            )
        kept = {key: value for key, value in config.items() if key not in ("storage", "digest")}
        if kept.get("nodes"):
            listed = (seed.placed(node, nodes) for node in str(kept["nodes"]).split(","))
            kept["nodes"] = ",".join(dict.fromkeys(listed))
        put("storages", storage, {"storage": storage, **kept})
    for storage, node, total in seed.capacities:
        for one in nodes if node is None else (seed.placed(node, nodes),):
            put("capacities", f"{world.storages.scope(storage, one)}|{storage}", {"total": total})


def plant_guests(world: World, seed: Seed, nodes: tuple[str, ...]) -> None:
    """Put the volumes and the guests of a seed where they are.

    Raises:
        PveError: A volume is in a storage that is not there, or has a name that the storage cannot have.
    """
    for volume in seed.volumes:
        _put_volume(world, volume, seed.placed(volume.node, nodes))
    for guest in seed.guests:
        _put_guest(world, guest, seed.placed(guest.node, nodes))


def _put_volume(world: World, volume: SeedVolume, node: str) -> None:
    storage, name = parse_volume_id(volume.volume)
    parsed = parse_name(world.storages.config(storage), name)
    facts: dict[str, Any] = {"content": parsed.content, "format": parsed.format, "vmid": parsed.vmid}
    if parsed.content in FILE_CONTENTS:
        facts["format"] = list_format(parsed.content, parsed.name)
    world.volumes.add(volume.volume, node, volume.size, **{**facts, **volume.facts})


def _put_guest(world: World, guest: SeedGuest, node: str) -> None:
    config = {key: value for key, value in guest.config.items() if key != "digest"}
    snapshots = {name: _snapshot(found) for name, found in guest.snapshots.items()}
    for wanted in (config, *(snapshot["config"] for snapshot in snapshots.values())):
        _make_volumes(world, guest, node, wanted)
    run: dict[str, Any] = {"pid": _PID + guest.vmid} if guest.running else {}
    if guest.running and guest.type == "qemu":
        run["qmpstatus"] = "running"
    if guest.running:
        # It has been up for as long as anyone remembers, so its agent answers at once.
        run["booting_since"] = 0
    world.guests.plant(
        {
            "vmid": guest.vmid,
            "node": node,
            "type": guest.type,
            "config": config,
            "pending": {},
            "pending_delete": {},
            "snapshots": snapshots,
            "status": "running" if guest.running else "stopped",
            "started": world.clock.now() if guest.running else None,
            "run": run,
        }
    )


def _snapshot(given: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key: given[key] for key in _OWN if key in given}, "config": dict(given.get("config", {}))}


def _make_volumes(world: World, guest: SeedGuest, node: str, config: Mapping[str, Any]) -> None:
    for volid, size in _list_volumes(guest.type, config):
        storage, _, name = volid.partition(":")
        found = world.store.get("storages", storage)
        if found is None or world.volumes.find(volid, node) is not None:
            continue
        if type_of(found).files and "/" not in name:
            continue
        parsed = _parse_volume(found, name, guest.vmid)
        if parsed.content not in ("images", "rootdir"):
            continue
        parent = _base_in(name)
        chosen = "subvol" if parsed.name.startswith(("subvol-", "basevol-")) else parsed.format
        content = "rootdir" if guest.type == "lxc" else "images"
        owner = parsed.vmid if parsed.vmid is not None else guest.vmid
        facts = {"content": content, "format": chosen, "vmid": owner, "parent": parent}
        if parent is not None:
            facts["borrowed"] = size
        world.volumes.add(volid, node, size, **facts)


def _parse_volume(config: Mapping[str, Any], name: str, vmid: int) -> VolumeName:
    try:
        return parse_name(config, name)
    except PveError:
        # Not a name that Proxmox gives, but one that someone's disk has.
        return VolumeName(content="images", name=name, format="raw", vmid=vmid)


def _base_in(name: str) -> str | None:
    """Return the base of a linked clone, if its name says it: `base-9000-disk-0/vm-100-disk-0`."""
    parts = name.split("/")
    if len(parts) == 4:
        return "/".join(parts[:2])
    return parts[0] if len(parts) == 2 and not parts[0].isdecimal() else None


def _list_volumes(kind: str, config: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the volumes that the values of a configuration begin with, and the size of each."""
    for key, value in config.items():
        if not isinstance(value, str) or ":" not in value or not _is_drive(kind, key):
            continue
        parts = value.split(",")
        volid = parts[0].removeprefix("file=").removeprefix("volume=")
        if volid.startswith("/") or ":" not in volid:
            continue
        size = next((parse_size(part[5:]) for part in parts if part.startswith("size=")), None)
        if size is None and "media=cdrom" not in parts:
            size = 0
        yield volid, size if size is not None else _CLOUDINIT_SIZE


def _is_drive(kind: str, key: str) -> bool:
    if kind == "lxc":
        return key == "rootfs" or key.startswith(("mp", "unused"))
    return key == "vmstate" or (
        key[-1:].isdecimal()
        and key.rstrip("0123456789") in ("scsi", "virtio", "sata", "ide", "efidisk", "tpmstate", "unused")
    )
