"""The drives of a virtual machine: disks, the CD drive, the drive of cloud-init, UEFI's and the TPM's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.fields.drives import INTERFACE, is_cdrom, is_cloud_init
from stackyard.fields.vm import DISK, EFI_DISK, SPEED, TPM
from stackyard.path.importing.configuration import KnownParts, parts_of
from stackyard.path.importing.shared import size_gib

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.path.importing.configuration import Configuration
    from stackyard.provider.values import Object

__all__ = ["Drives", "add_drives", "find_drives"]

_SPEED = (row.property_name for row in SPEED)
# The format is that of the volume, and nobody's choice any more.
_DISK = parts_of(DISK, "file", "size", "format", *_SPEED)
_CDROM = KnownParts(names=frozenset(("file", "media", "size")), bare="file")
_CLOUD_INIT = KnownParts(names=frozenset(("file", "media", "size", "format")), bare="file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drives:
    """Where the drives of a machine are attached.

    Attributes:
        known: The parts of every drive that the model carries, by where it is.
        cdrom: The CD drive; empty where there is none.
        cloud_init: The drive of cloud-init; empty where there is none.
    """

    known: Mapping[str, KnownParts]
    cdrom: str
    cloud_init: str


def find_drives(config: Configuration, vm_id: int) -> Drives:
    """Return where the drives of a machine are; a second one of a kind is reported."""
    known: dict[str, KnownParts] = {}
    cdrom = cloud_init = ""
    for slot in sorted(config.list_matching(INTERFACE.pattern), key=_order):
        if is_cloud_init(config.values[slot], vm_id):
            if cloud_init:
                config.lack(slot, "it is a second drive of cloud-init")
            cloud_init, known[slot] = slot, _CLOUD_INIT
        elif is_cdrom(config.values[slot]):
            if cdrom:
                config.lack(slot, f"it is a second CD drive, beside {cdrom}: remove one of them")
            cdrom, known[slot] = slot, _CDROM
        else:
            known[slot] = _DISK
    return Drives(known=known, cdrom=cdrom, cloud_init=cloud_init)


def _order(slot: str) -> tuple[int, str, int]:
    found = INTERFACE.fullmatch(slot)
    kind, place = (found[1], int(found[2])) if found else (slot, 0)
    # The disks of most machines are on scsi.
    return (0 if kind == "scsi" else 1, kind, place)


def add_drives(config: Configuration, drives: Drives, attributes: Object, fields: dict[str, Any]) -> None:
    """Add the drives to the fields of a machine, but for that of cloud-init."""
    blocks = {disk["interface"]: disk for disk in attributes["disk"]}
    fields["disks"] = [
        _disk(config, slot, blocks.get(slot)) for slot, parts in drives.known.items() if parts is _DISK
    ]
    for cdrom in attributes["cdrom"]:
        file = cdrom["file_id"]
        fields["cdrom"] = {"interface": cdrom["interface"], **({} if file == "none" else {"file": file})}
    for efi_disk in attributes["efi_disk"]:
        fields["efi_disk"] = config.fields("efidisk0", EFI_DISK, efi_disk)
    for tpm in attributes["tpm_state"]:
        fields["tpm"] = config.fields("tpmstate0", TPM, tpm)


def _disk(config: Configuration, slot: str, block: Object | None) -> dict[str, Any]:
    disk: dict[str, Any] = {"interface": slot, "datastore": (block or {}).get("datastore_id")}
    if not disk["datastore"]:
        config.lack(slot, "it is a device of the node, which is no volume of a storage")
        disk["datastore"] = "none"
    disk["size_gib"] = size_gib(config, slot, DISK.bare)
    if block is not None:
        disk |= config.fields(slot, DISK, block)
        for speed in block["speed"]:
            disk["speed"] = SPEED.to_fields(speed, config.parts(slot, DISK.bare))
    return disk
