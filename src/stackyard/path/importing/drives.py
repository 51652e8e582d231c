"""The drives of a virtual machine: disks, the CD drive, the drive of cloud-init, UEFI's and the TPM's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.path.importing.configuration import GIB, as_flag, size_bytes

if TYPE_CHECKING:
    from stackyard.path.importing.configuration import Configuration, Parts

__all__ = ["Drives", "drives_of"]

_SLOT = re.compile(r"(ide|sata|scsi|virtio)(\d+)")
_SPEED = {
    "read_mb": "mbps_rd",
    "read_burst_mb": "mbps_rd_max",
    "write_mb": "mbps_wr",
    "write_burst_mb": "mbps_wr_max",
    "read_iops": "iops_rd",
    "read_burst_iops": "iops_rd_max",
    "write_iops": "iops_wr",
    "write_burst_iops": "iops_wr_max",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drives:
    """The drives of a machine as fields of the model, and the drive of cloud-init for itself."""

    fields: dict[str, Any]
    cloud_init: dict[str, Any] | None


def drives_of(config: Configuration, vm_id: int) -> Drives:
    """Return the drives of a machine."""
    fields: dict[str, Any] = {"disks": []}
    cloud_init: dict[str, Any] | None = None
    for slot in sorted(config.matching(_SLOT.pattern), key=_order):
        parts = config.take_parts(slot, "file")
        if parts is None:
            continue
        if f"vm-{vm_id}-cloudinit" in parts.get("file"):
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
    found = _SLOT.fullmatch(slot)
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
    parts.take_into(
        disk,
        cache=("cache", str),
        aio=("aio", str),
        ssd=("ssd", as_flag),
        discard=("discard", lambda text: text == "on"),
        iothread=("iothread", as_flag),
        backup=("backup", as_flag),
        replicate=("replicate", as_flag),
        queues=("queues", int),
        serial=("serial", str),
    )
    speed: dict[str, Any] = {}
    parts.take_into(speed, **{field: (name, int) for field, name in _SPEED.items()})
    if speed:
        disk["speed"] = speed
    # The format is that of the volume, and nobody's choice any more.
    parts.done("format")
    return disk


def _size(config: Configuration, slot: str, parts: Parts) -> int:
    size = size_bytes(parts.take("size") or "")
    if size < GIB:
        config.lack(f"{slot}.size", "a disk has at least one GiB")
    elif size % GIB:
        config.note(f"has {size / GIB:.2f} GiB on {slot}, which counts as {size // GIB}")
    return max(1, size // GIB)


def _firmware(config: Configuration, fields: dict[str, Any]) -> None:
    variables = config.take_parts("efidisk0", "file")
    if variables is not None:
        fields["efi_disk"] = disk = {
            "datastore": (variables.take("file") or "").partition(":")[0],
            "type": (variables.take("efitype") or "2m").lower(),
            "pre_enrolled_keys": variables.take_flag("pre-enrolled-keys"),
        }
        disk_format = variables.take("format")
        if disk_format is not None:
            disk["format"] = disk_format
        variables.done("size", "ms-cert")
    state = config.take_parts("tpmstate0", "file")
    if state is not None:
        fields["tpm"] = {
            "datastore": (state.take("file") or "").partition(":")[0],
            "version": state.take("version") or "v2.0",
        }
        state.done("size")
