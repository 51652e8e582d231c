"""The volumes of a container: its root and its mount points, how they are read and printed."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Any

from pvelab.server.params import properties
from pvelab.server.params.texts import FormatError
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pvelab.server.facts import Facts

__all__ = [
    "MountPoint",
    "MountType",
    "add_unused",
    "each_volume",
    "is_mount_point",
    "is_volume_used",
    "mount_keys",
    "mount_type",
    "parse_mount_point",
    "parse_new_disk",
    "print_mount_point",
]

MountPoint = dict[str, Any]

_DECLARED_AT = "POST /nodes/{node}/lxc"
_NEW_DISK = re.compile(r"([^:\s]+):(\d+(?:\.\d+)?)")
_MOUNT_POINT = re.compile(r"rootfs|mp\d+")
_MOST_UNUSED = 256


class MountType(enum.StrEnum):
    """What is mounted."""

    VOLUME = "volume"
    BIND = "bind"
    DEVICE = "device"


def is_mount_point(key: str) -> bool:
    """Return whether an option is the root or a mount point (unused volumes are not)."""
    return _MOUNT_POINT.fullmatch(key) is not None


def mount_keys(config: Mapping[str, Any]) -> list[str]:
    """Return the root and the mount points of a configuration in Proxmox's order."""
    points = sorted((key for key in config if re.fullmatch(r"mp\d+", key)), key=lambda key: int(key[2:]))
    return ["rootfs", *points] if "rootfs" in config else points


def mount_type(volume: str) -> MountType:
    """Return what a volume text represents."""
    if volume.startswith("/"):
        return MountType.DEVICE if volume.startswith("/dev/") else MountType.BIND
    return MountType.VOLUME


def parse_new_disk(volume: str) -> tuple[str, int] | None:
    """Return the storage and the bytes of `storage:8`, None for a volume that exists."""
    found = _NEW_DISK.fullmatch(volume)
    return (found[1], int(float(found[2]) * 1024) * 2**20) if found else None


def parse_mount_point(facts: Facts, key: str, text: str) -> MountPoint:
    """Read a mount point.

    Raises:
        PveError: The text cannot be read.
    """
    try:
        return properties.parse(_schema(facts, key), text)
    except FormatError as err:
        raise PveError(str(err)) from err


def print_mount_point(facts: Facts, key: str, point: Mapping[str, Any]) -> str:
    """Print a mount point: the volume first, then where it is mounted, the other keys sorted."""
    return properties.render(_schema(facts, key), point, skip=("mp",) if key == "rootfs" else ())


def each_volume(
    facts: Facts, config: Mapping[str, Any], *, unused: bool = False
) -> Iterator[tuple[str, MountPoint]]:
    """Yield every mount point (and unused volume) of a configuration with its key."""
    for key in mount_keys(config):
        yield key, parse_mount_point(facts, key, str(config[key]))
    for key in sorted(config) if unused else ():
        if key.startswith("unused"):
            yield key, {"volume": str(config[key])}


def is_volume_used(facts: Facts, volid: str, *configs: Mapping[str, Any]) -> bool:
    """Return whether a volume is mounted in one of some configurations."""
    return any(point["volume"] == volid for config in configs for _, point in each_volume(facts, config))


def add_unused(config: dict[str, Any], volid: str) -> None:
    """Keep a volume in a configuration as unused, once.

    Raises:
        PveError: There are too many.
    """
    names = [f"unused{number}" for number in range(_MOST_UNUSED)]
    if any(config.get(name) == volid for name in names):
        return
    free = next((name for name in names if name not in config), None)
    if free is None:
        raise PveError("Too many unused volumes - please delete them first.")
    config[free] = volid


def _schema(facts: Facts, key: str) -> properties.PropertySchema:
    if key.startswith("unused"):
        return {"volume": {"type": "string", "default_key": 1}}
    found: properties.PropertySchema = facts.schema(_DECLARED_AT, "rootfs" if key == "rootfs" else "mp[n]")[
        "format"
    ]
    return found
