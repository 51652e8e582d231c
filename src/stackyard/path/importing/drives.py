"""The drives of a virtual machine: disks, the CD drive, the drive of cloud-init, UEFI's and the TPM's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.fields.drives import INTERFACE, is_cloud_init
from stackyard.fields.properties import GIB, parse_size
from stackyard.fields.vm import DISK, EFI_DISK, SPEED, TPM
from stackyard.path.importing.configuration import put_row

if TYPE_CHECKING:
    from stackyard.path.importing.configuration import Configuration, Parts

__all__ = ["Drives", "drives_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drives:
    """The drives of a machine as fields of the model, and the drive of cloud-init for itself."""

    fields: dict[str, Any]
    cloud_init: dict[str, Any] | None


def drives_of(config: Configuration, vm_id: int) -> Drives:
    """Return the drives of a machine."""
    fields: dict[str, Any] = {"disks": []}
    cloud_init: dict[str, Any] | None = None
    for slot in sorted(config.matching(INTERFACE.pattern), key=_order):
        parts = config.take_parts(slot, "file")
        if parts is None:
            continue
        if is_cloud_init(parts.get("file"), vm_id):
            if cloud_init is not None:
                config.lack(slot, "it is a second drive of cloud-init")
            cloud_init = {"interface": slot, "datastore": parts.get("file").partition(":")[0]}
            parts.done("file", "media", "size", "format")
        elif parts.get("media") == "cdrom":
            _cdrom(config, slot, parts, fields)
        else:
            fields["disks"].append(_disk(config, slot, parts))
    _firmware(config, fields)
    return Drives(fields=fields, cloud_init=cloud_init)


def _order(slot: str) -> tuple[int, str, int]:
    found = INTERFACE.fullmatch(slot)
    kind, place = (found[1], int(found[2])) if found else (slot, 0)
    # The disks of most machines are on scsi.
    return (0 if kind == "scsi" else 1, kind, place)


def _cdrom(config: Configuration, slot: str, parts: Parts, fields: dict[str, Any]) -> None:
    if "cdrom" in fields:
        config.lack(
            slot, f"it is a second CD drive, beside {fields['cdrom']['interface']}: remove one of them"
        )
    file = parts.take("file")
    fields["cdrom"] = {"interface": slot} if file == "none" else {"interface": slot, "file": file}
    parts.done("media", "size")


def _disk(config: Configuration, slot: str, parts: Parts) -> dict[str, Any]:
    store, colon, _ = (parts.take("file") or "").partition(":")
    if not colon:
        config.lack(slot, "it is a device of the node, which is no volume of a storage")
    disk: dict[str, Any] = {"interface": slot, "datastore": store, "size_gib": _size(config, slot, parts)}
    speed: dict[str, Any] = {}
    for row in SPEED:
        put_row(parts, speed, row, row.property_name)
    if speed:
        disk["speed"] = speed
    # The format is that of the volume, and nobody's choice any more.
    return parts.take_rows(disk, DISK, "format")


def _size(config: Configuration, slot: str, parts: Parts) -> int:
    size = parse_size(parts.take("size")) or 0
    if size < GIB:
        config.lack(f"{slot}.size", "a disk has at least one GiB")
    elif size % GIB:
        config.note(f"has {size / GIB:.2f} GiB on {slot}, which counts as {size // GIB}")
    return max(1, size // GIB)


def _firmware(config: Configuration, fields: dict[str, Any]) -> None:
    disks = {
        "efi_disk": config.take_table("efidisk0", EFI_DISK, "size", "ms-cert"),
        "tpm": config.take_table("tpmstate0", TPM, "size"),
    }
    fields.update((name, disk) for name, disk in disks.items() if disk is not None)
