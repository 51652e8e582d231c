"""Archives of guests: what a backup holds, how large it is, and its configuration as text.

The document of a backup in a storage has, beside what `volumes` says, `archive`: the `kind` of the guest, its
`config` as it was, the `disks` by their key (`size`, `format` and `storage` each), and the `text` of the
configuration file that is inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.mountpoints import MountType
from pvelab.api.nodes.qemu import drives
from pvelab.server.problems import PveError
from pvelab.world.guests.text import config_lines
from pvelab.world.storage.volume_names import path_of
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["GuestVolume", "archive_of", "archive_size", "config_in", "guest_volumes"]

# How much of a disk its archive takes, in thousandths. The disks of the lab hold nothing to measure.
_THOUSANDTHS = {"": 120, "lzo": 70, "gz": 50, "zst": 45}
_SMALLEST = 2**20
_LEFT_OUT = ("lock", "parent", "snaptime", "vmstate", "runningmachine", "runningcpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestVolume:
    """A disk or mount point of a guest, and whether backups have it."""

    key: str
    volume: str
    included: bool
    reason: str
    size: int
    format: str


def guest_volumes(world: World, guest: Document) -> list[GuestVolume]:
    """Return the disks or mount points of a guest as a backup sees them."""
    return _disks(world, guest) if guest["type"] == "qemu" else _mount_points(world, guest)


def _disks(world: World, guest: Document) -> list[GuestVolume]:
    found, config = [], guest["config"]
    for key in drives.drive_keys(config):
        drive = drives.parse_drive(world.facts, key, str(config[key]))
        if drives.is_cdrom(drive):
            continue
        included = bool(drive.get("backup", 1))
        reason = f"backup={'no' if 'backup' in drive else 'yes'}"
        if key == "efidisk0" and config.get("bios") != "ovmf":
            included, reason = False, "efidisk but no OVMF BIOS"
        found.append(_volume(world, guest, key, str(drive["file"]), (included, reason)))
    return found


def _mount_points(world: World, guest: Document) -> list[GuestVolume]:
    found = []
    for key, point in mountpoints.each_volume(world.facts, guest["config"]):
        volume = str(point["volume"])
        if key == "rootfs":
            state = (True, "rootfs")
        elif mountpoints.mount_type(volume) is not MountType.VOLUME:
            state = (False, "not a volume")
        else:
            state = (True, "enabled") if point.get("backup") else (False, "disabled")
        found.append(_volume(world, guest, key, volume, state))
    return found


def _volume(world: World, guest: Document, key: str, volume: str, state: tuple[bool, str]) -> GuestVolume:
    known = ":" in volume and not volume.startswith("/")
    found = world.volumes.find(volume, str(guest["node"])) if known else None
    return GuestVolume(
        key=key,
        volume=volume,
        included=state[0],
        reason=state[1],
        size=0 if found is None else int(found["size"]),
        format="raw" if found is None else str(found.get("format", "raw")),
    )


def archive_of(world: World, guest: Document) -> dict[str, Any]:
    """Return what a backup of a guest holds now."""
    config = {key: value for key, value in guest["config"].items() if key not in _LEFT_OUT}
    included = [volume for volume in guest_volumes(world, guest) if volume.included]
    disks = {
        volume.key: {
            "size": volume.size,
            "format": volume.format,
            "storage": parse_volume_id(volume.volume)[0] if ":" in volume.volume else "",
        }
        for volume in included
    }
    return {
        "kind": guest["type"],
        "config": config,
        "disks": disks,
        "text": _text(str(guest["type"]), config, disks),
    }


def archive_size(archive: Mapping[str, Any], compression: str) -> int:
    """Return how many bytes an archive takes."""
    whole = sum(int(disk["size"]) for disk in archive["disks"].values())
    return max(_SMALLEST, whole * _THOUSANDTHS[compression] // 1000)


def config_in(world: World, volid: str, node: str) -> str:
    """Return the text of the configuration in an archive.

    Raises:
        PveError: There is no such archive, or it has none.
    """
    storage, _ = parse_volume_id(volid)
    volume = world.volumes.find(volid, node)
    path = path_of(world.storages.require(storage, node), volid)
    if volume is None:
        raise PveError(f"ERROR: file '{path}' does not exist")
    if "archive" not in volume:
        raise PveError("ERROR: archive contains no configuration file")
    return str(volume["archive"]["text"])


def _text(kind: str, config: Mapping[str, Any], disks: Mapping[str, Mapping[str, Any]]) -> str:
    shown = {key: value for key, value in config.items() if not key.startswith("unused")}
    lines = config_lines(shown)
    if kind == "qemu":
        for key, disk in disks.items():
            chosen = "" if disk["format"] == "raw" else disk["format"]
            lines.append(f"#qmdump#map:{key}:drive-{key}:{disk['storage']}:{chosen}:")
    return "".join(f"{line}\n" for line in lines)
