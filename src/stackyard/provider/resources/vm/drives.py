"""Drives beside the disks: the CD drive, and the small disks of the firmware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.drives import is_cdrom, is_cloud_init
from stackyard.fields.properties import parse, render
from stackyard.fields.vm import EFI_DISK, TPM
from stackyard.provider.resources.vm.blocks import PriorState, is_managed, one, shows
from stackyard.provider.values import known_block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = [
    "CDROM_INTERFACE",
    "FIRMWARE",
    "cdrom_params",
    "efi_text",
    "read_cdrom",
    "read_efi",
    "read_tpm",
    "tpm_text",
]

CDROM_INTERFACE = "ide3"


def cdrom_params(state: Object) -> dict[str, str]:
    """Return the CD drive by its interface."""
    block = known_block(state, "cdrom")
    if block is None:
        return {}
    file = render({"file": block.get("file_id") or "cdrom", "media": "cdrom"})
    return {str(block.get("interface") or CDROM_INTERFACE): file}


def efi_text(state: Object) -> str | None:
    """Return a new disk for the variables of the firmware."""
    if known_block(state, "efi_disk") is None:
        return None
    return EFI_DISK.write_text(one(state, "efi_disk", EFI_DISK.defaults()))


def tpm_text(state: Object) -> str | None:
    """Return a new disk for the state of the TPM."""
    if known_block(state, "tpm_state") is None:
        return None
    return TPM.write_text(one(state, "tpm_state", TPM.defaults()))


# The block, the property and the text of a new disk.
FIRMWARE = (("efi_disk", "efidisk0", efi_text), ("tpm_state", "tpmstate0", tpm_text))


def read_cdrom(config: Mapping[str, Any], shown: PriorState, vm_id: int) -> Object:
    """Return the block of the CD drive."""
    known = known_block(shown.known, "cdrom")
    interface = str((known or {}).get("interface") or CDROM_INTERFACE)
    value = config.get(interface)
    if value is None or not is_cdrom(value) or is_cloud_init(value, vm_id):
        return {"cdrom": []}
    if not is_managed(shown, "cdrom"):
        return {}
    file = parse(value, "file").get("file", "")
    if known is not None and not known.get("file_id"):
        file = ""
    enabled = (known or {}).get("enabled")
    return {"cdrom": [{"file_id": file, "interface": interface, "enabled": enabled}]}


def read_efi(config: Mapping[str, Any], shown: PriorState) -> Object:
    """Return the block of the firmware's disk; its format is left out when the text does not tell."""
    if not config.get("efidisk0"):
        return shows(shown, "efi_disk", None, default={})
    found = parse(config["efidisk0"], EFI_DISK.bare)
    return _shows_always(shown, "efi_disk", {**EFI_DISK.read(found), "file_format": found.get("format")})


def read_tpm(config: Mapping[str, Any], shown: PriorState) -> Object:
    """Return the block of the TPM's disk."""
    if not config.get("tpmstate0"):
        return shows(shown, "tpm_state", None, default={})
    return _shows_always(shown, "tpm_state", TPM.read_text(config["tpmstate0"]))


def _shows_always(shown: PriorState, name: str, block: Object) -> Object:
    """Return a block that only its presence on the VM decides about, also after an import."""
    return {name: [block]} if is_managed(shown, name) else {}
