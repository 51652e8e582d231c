"""What the text of a drive says: a disk, a CD drive or the drive of cloud-init, and on which storage."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["INTERFACE", "format_of", "is_cdrom", "is_cloud_init", "is_disk", "storage_of"]

INTERFACE = re.compile(r"(ide|sata|scsi|virtio)(\d+)")


def is_cloud_init(value: Any, vm_id: int) -> bool:
    """Return whether a drive is the one that cloud-init reads."""
    return f"vm-{vm_id}-cloudinit" in str(value)


def is_cdrom(value: Any) -> bool:
    """Return whether a drive is a CD drive; the one of cloud-init is one too."""
    return parse(value, "file").get("media") == "cdrom"


def is_disk(key: str, value: Any, vm_id: int) -> bool:
    """Return whether a property of a VM is a disk in the sense of the `disk` block."""
    if not INTERFACE.fullmatch(key) or is_cdrom(value) or is_cloud_init(value, vm_id):
        return False
    return parse(value, "file").get("file") not in (None, "none")


def storage_of(value: Any) -> str:
    """Return the storage of a drive; empty when it is a path."""
    storage, separator, _ = parse(value, "file").get("file", "").partition(":")
    return storage if separator else ""


def format_of(parts: Mapping[str, str]) -> str | None:
    """Return the format of a drive, where its text or the name of its volume tells it; None otherwise."""
    file = parts.get("file", "")
    name = (file.partition(":")[2] or file).rpartition("/")[2]
    return parts.get("format") or (name.rpartition(".")[2] if "." in name else "") or None
