"""Disks of a VM: their property strings, what they say in the state, and where they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.provider.resources.vm.blocks import known_block
from stackyard.provider.resources.vm.properties import flag, parse, render, text, whole
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from stackyard.provider.values import Object

__all__ = [
    "GIB",
    "by_interface",
    "configured",
    "disk_options",
    "is_cdrom",
    "is_cloud_init",
    "is_disk",
    "new_disk",
    "order_of",
    "read_disk",
    "same_disks",
    "size_bytes",
    "storage_of",
]

GIB = 1024**3
_INTERFACE = re.compile(r"(ide|sata|scsi|virtio)(\d+)")
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": GIB, "T": 1024**4}
_SPEED = {
    "read": "mbps_rd",
    "read_burstable": "mbps_rd_max",
    "write": "mbps_wr",
    "write_burstable": "mbps_wr_max",
    "iops_read": "iops_rd",
    "iops_read_burstable": "iops_rd_max",
    "iops_write": "iops_wr",
    "iops_write_burstable": "iops_wr_max",
}
# Found out by the apply, so that another value is no reason to change anything.
_FOUND_OUT = ("path_in_datastore",)


def order_of(interface: str) -> tuple[str, int]:
    """Return what disks are ordered by: `scsi2` comes before `scsi10`."""
    match = _INTERFACE.fullmatch(interface)
    return (match[1], int(match[2])) if match else (interface, 0)


def by_interface(disks: list[Object] | None) -> dict[str, Object]:
    """Return disks by where they are attached."""
    return {str(disk["interface"]): disk for disk in disks or ()}


def is_cloud_init(value: Any, vm_id: int) -> bool:
    """Tell whether a drive is the one that cloud-init reads."""
    return f"vm-{vm_id}-cloudinit" in str(value)


def is_cdrom(value: Any) -> bool:
    """Tell whether a drive is a CD drive; the one of cloud-init is one too."""
    return parse(value, "file").get("media") == "cdrom"


def is_disk(key: str, value: Any, vm_id: int) -> bool:
    """Tell whether a property of a VM is a disk in the sense of the `disk` block."""
    if not _INTERFACE.fullmatch(key) or is_cdrom(value) or is_cloud_init(value, vm_id):
        return False
    return parse(value, "file").get("file") not in (None, "none")


def storage_of(value: Any) -> str:
    """Return the storage of a drive; empty when it is a path."""
    storage, separator, _ = parse(value, "file").get("file", "").partition(":")
    return storage if separator else ""


def size_bytes(value: Any) -> int:
    """Return the size in the property string of a drive, or of a size alone; 0 when there is none."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", str(value))
    return int(float(match[1]) * _UNITS[match[2]]) if match else 0


def disk_options(disk: Object) -> dict[str, Any]:
    """Return the options of a disk as its block has them."""
    interface = str(disk["interface"])
    speed = known_block(disk, "speed") or {}
    options = {
        "aio": disk.get("aio") or None,
        "backup": bool(disk.get("backup")),
        "cache": disk.get("cache") or None,
        "discard": disk.get("discard") or None,
        "iothread": None if interface.startswith(("sata", "ide")) else bool(disk.get("iothread")),
        "queues": disk.get("queues") or None,
        "replicate": bool(disk.get("replicate")),
        "serial": disk.get("serial") or None,
        "ssd": None if interface.startswith("virtio") else bool(disk.get("ssd")),
    }
    return options | {key: speed.get(name) or None for name, key in _SPEED.items()}


def new_disk(disk: Object, *, source: str = "") -> str:
    """Return the property string of a disk that is to be made.

    Args:
        disk: Its block.
        source: The image that it begins with.
    """
    path = disk.get("path_in_datastore")
    place = disk.get("datastore_id") or ""
    file_format = disk.get("file_format")
    if isinstance(path, str) and path:
        volume = f"{place}:{path}" if place else path
    else:
        volume = f"{place}:0" if source else f"{place}:{disk.get('size')}"
    made = {
        "file": volume,
        "import-from": source or None,
        "format": file_format if isinstance(file_format, str) and file_format else None,
    }
    return render(made | disk_options(disk))


def configured(current: str, disk: Object) -> str | None:
    """Return the property string of a disk that is there, with other options; None when they are the same.

    What the block does not know about (a limit set by hand) stays as it is.
    """
    found = parse(current, "file")
    wanted = disk_options(disk)
    changed = {
        key: value
        for key, value in wanted.items()
        if _spelled(key, found.get(key))
        != _spelled(key, value if value is None else render({"x": value})[2:])
    }
    if not changed:
        return None
    kept = {key: value for key, value in found.items() if key not in wanted and key not in ("size", "format")}
    return render(kept | wanted)


def _spelled(key: str, value: str | None) -> str:
    """Return an option as it is meant: what is left out has a meaning, too."""
    defaults = {"backup": "1", "replicate": "1", "aio": "io_uring", "cache": "none", "discard": "ignore"}
    fallback = defaults.get(key, "0" if key != "serial" else "")
    return fallback if value is None else str(value)


def read_disk(interface: str, value: Any, known: Object | None) -> Object:
    """Return the block of a disk; its format is left out when the text does not tell."""
    found = parse(value, "file")
    storage, separator, path = found.get("file", "").partition(":")
    if not separator:
        storage, path = "", storage
    suffix = path.rpartition(".")[2] if "." in path.rpartition("/")[2] else ""
    size = size_bytes(found.get("size")) // GIB
    before = known or {}
    if not size and isinstance(before.get("size"), int):
        size = before["size"]
    speed = {name: whole(found.get(key)) for name, key in _SPEED.items()}
    return {
        "interface": interface,
        "datastore_id": storage,
        "path_in_datastore": path,
        "file_format": found.get("format") or suffix or None,
        "file_id": _kept(before, "file_id"),
        "import_from": _kept(before, "import_from"),
        "size": size,
        "aio": found.get("aio", "io_uring"),
        "backup": flag(found.get("backup"), default=True),
        "cache": found.get("cache", "none"),
        "discard": found.get("discard", "ignore"),
        "iothread": flag(found.get("iothread")),
        "queues": whole(found.get("queues")),
        "replicate": flag(found.get("replicate"), default=True),
        "serial": text(found.get("serial")),
        "ssd": flag(found.get("ssd")),
        "speed": [speed] if any(key in found for key in _SPEED.values()) else [],
    }


def _kept(known: Object, name: str) -> str:
    """Return where a disk came from, which Proxmox does not remember."""
    value = known.get(name)
    return value if isinstance(value, str) else ""


def same_disks(before: list[Object], after: list[Object]) -> bool:
    """Tell whether two lists have the same disks, in whatever order."""
    old, new = by_interface(before), by_interface(after)
    if old.keys() != new.keys() or len(before) != len(after):
        return False
    return all(_same(old[interface], new[interface]) for interface in old)


def _same(old: Object, new: Object) -> bool:
    return all(_is_same(old.get(name), new.get(name)) for name in old if name not in _FOUND_OUT)


def _is_same(old: Any, new: Any) -> bool:
    if new is UNKNOWN:
        return True
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return all(_same(a, b) if isinstance(a, dict) else a == b for a, b in zip(old, new, strict=True))
    return bool(old == new) or (not old and not new)
