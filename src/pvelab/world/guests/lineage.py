"""What a disk was created from: the image that a guest boots, carried along by every copy of the disk.

A volume document of a disk has `image` where it came from a file in a storage: `name`, the name of the file,
`sha256` where the lab has its bytes (see `blobs`), and `talos` where Talos is on it (see `talos.boot`).
Cloning, moving, migrating and importing keep it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["boot_volume", "disk_keys", "image_in", "image_of"]

_DISK = re.compile(r"(?:scsi|virtio|sata|ide)\d+")
# The order in which the firmware looks where the configuration does not say.
_BUSES = ("scsi", "virtio", "sata", "ide")


def image_in(volume: Document) -> Mapping[str, Any] | None:
    """Return the image that a copy of a volume comes from: itself, if it is a file, or what it came from."""
    if volume.get("content") in ("images", "rootdir"):
        image: Mapping[str, Any] | None = volume.get("image")
        return image
    name = str(volume["volid"]).partition(":")[2].rpartition("/")[2]
    return {"name": name, **{key: volume[key] for key in ("sha256", "talos") if key in volume}}


def image_of(world: World, guest: Document) -> Mapping[str, Any] | None:
    """Return the image that the boot disk of a guest was created from; None if it came from none."""
    volume = boot_volume(world, guest)
    return None if volume is None else image_in(volume)


def boot_volume(world: World, guest: Document) -> Document | None:
    """Return the disk that a guest boots from, None if it has none."""
    config = guest["config"]
    for key in ("rootfs",) if guest["type"] == "lxc" else disk_keys(config):
        volid = str(config.get(key, "")).partition(",")[0]
        if ":" in volid and not volid.startswith("/"):
            found = world.volumes.find(volid, str(guest["node"]))
            if found is not None:
                return found
    return None


def disk_keys(config: Mapping[str, Any]) -> list[str]:
    """Return the options of a VM that hold disks, CD drives not among them, in the order of booting."""
    found = [key for key in config if _DISK.fullmatch(key) and "media=cdrom" not in str(config[key])]
    order = re.search(r"order=([^,]+)", str(config.get("boot", "")))
    wanted = [key for key in re.split(r"[;\s]+", order[1]) if key in found] if order else []
    wanted += [str(config["bootdisk"])] if config.get("bootdisk") in found else []
    found.sort(
        key=lambda key: (
            _BUSES.index(key.rstrip("0123456789")),
            int(key.lstrip("abcdefghijklmnopqrstuvwxyz")),
        )
    )
    return list(dict.fromkeys([*wanted, *found]))
