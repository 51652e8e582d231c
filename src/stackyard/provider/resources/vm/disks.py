"""Disks of a VM: their property strings, what they say in the state, and where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.drives import INTERFACE, format_of
from stackyard.fields.properties import GIB, parse, parse_size, render
from stackyard.fields.vm import DISK, SPEED
from stackyard.provider.values import UNKNOWN, known_block

if TYPE_CHECKING:
    from stackyard.provider.values import Object

__all__ = [
    "by_interface",
    "disk_options",
    "new_disk",
    "order_of",
    "read_disk",
    "render_changed",
    "same_disks",
]

# Found out by the apply, so that another value is no reason to change anything.
_FOUND_OUT = ("path_in_datastore",)


def order_of(interface: str) -> tuple[str, int]:
    """Return what disks are ordered by: `scsi2` comes before `scsi10`."""
    match = INTERFACE.fullmatch(interface)
    return (match[1], int(match[2])) if match else (interface, 0)


def by_interface(disks: list[Object] | None) -> dict[str, Object]:
    """Return disks by where they are attached."""
    return {str(disk["interface"]): disk for disk in disks or ()}


def disk_options(disk: Object) -> dict[str, Any]:
    """Return the options of a disk as its block has them."""
    interface = str(disk["interface"])
    options = DISK.write(disk) | SPEED.write(known_block(disk, "speed") or {})
    if interface.startswith(("sata", "ide")):
        options["iothread"] = None
    if interface.startswith("virtio"):
        options["ssd"] = None
    return options


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


def render_changed(current: str, disk: Object) -> str | None:
    """Return the property string of a disk that is there, with other options; None when they are the same.

    What the block does not know about (a limit set by hand) stays as it is.
    """
    found = parse(current, "file")
    wanted = disk_options(disk)
    changed = {
        key: value
        for key, value in wanted.items()
        if _normalize(key, found.get(key))
        != _normalize(key, value if value is None else render({"x": value})[2:])
    }
    if not changed:
        return None
    kept = {key: value for key, value in found.items() if key not in wanted and key not in ("size", "format")}
    return render(kept | wanted)


def _normalize(key: str, value: str | None) -> str:
    """Return an option as it is meant: what is left out has a meaning, too."""
    if value is not None:
        return str(value)
    return next((render({"x": row.usual})[2:] for row in DISK if row.property_name == key), "0")


def read_disk(interface: str, value: Any, known: Object | None) -> Object:
    """Return the block of a disk; its format is left out when the text does not tell."""
    found = parse(value, "file")
    storage, separator, path = found.get("file", "").partition(":")
    if not separator:
        storage, path = "", storage
    size = (parse_size(found.get("size")) or 0) // GIB
    before = known or {}
    if not size and isinstance(before.get("size"), int):
        size = before["size"]
    has_limits = any(row.property_name in found for row in SPEED)
    return {
        "interface": interface,
        "datastore_id": storage,
        "path_in_datastore": path,
        "file_format": format_of(found),
        "file_id": _keep_source(before, "file_id"),
        "import_from": _keep_source(before, "import_from"),
        "size": size,
        **DISK.read(found),
        "speed": [SPEED.read(found)] if has_limits else [],
    }


def _keep_source(known: Object, name: str) -> str:
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
