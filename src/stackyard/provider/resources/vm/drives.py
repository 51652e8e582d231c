"""Drives beside the disks: the CD drive, and the small disks of the firmware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.resources.vm.blocks import Shown, is_managed, known_block, one, shows
from stackyard.provider.resources.vm.disks import is_cdrom, is_cloud_init
from stackyard.provider.resources.vm.properties import flag, parse, render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["CDROM_INTERFACE", "cdrom_params", "efi_text", "read_cdrom", "read_efi", "read_tpm", "tpm_text"]

CDROM_INTERFACE = "ide3"
_EFI = {"datastore_id": "local-lvm", "file_format": "raw", "pre_enrolled_keys": False, "type": "2m"}
_TPM = {"datastore_id": "local-lvm", "version": "v2.0"}


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
    efi = one(state, "efi_disk", _EFI)
    return render(
        {
            "file": f"{efi['datastore_id']}:1",
            "format": efi["file_format"] or "raw",
            "efitype": efi["type"],
            "pre-enrolled-keys": bool(efi["pre_enrolled_keys"]),
        }
    )


def tpm_text(state: Object) -> str | None:
    """Return a new disk for the state of the TPM."""
    if known_block(state, "tpm_state") is None:
        return None
    tpm = one(state, "tpm_state", _TPM)
    return render({"file": f"{tpm['datastore_id']}:1", "version": tpm["version"] or "v2.0"})


def read_cdrom(config: Mapping[str, Any], shown: Shown, vm_id: int) -> Object:
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


def read_efi(config: Mapping[str, Any], shown: Shown, file_format: str | None) -> Object:
    """Return the block of the firmware's disk."""
    if not config.get("efidisk0"):
        return shows(shown, "efi_disk", None, default=_EFI)
    found = parse(config["efidisk0"], "file")
    efi = {
        "datastore_id": found.get("file", "").partition(":")[0],
        "file_format": file_format,
        "pre_enrolled_keys": flag(found.get("pre-enrolled-keys")),
        "type": found.get("efitype", "2m").lower(),
    }
    return _shows_always(shown, "efi_disk", efi)


def read_tpm(config: Mapping[str, Any], shown: Shown) -> Object:
    """Return the block of the TPM's disk."""
    if not config.get("tpmstate0"):
        return shows(shown, "tpm_state", None, default=_TPM)
    found = parse(config["tpmstate0"], "file")
    tpm = {
        "datastore_id": found.get("file", "").partition(":")[0],
        "version": found.get("version") or "v2.0",
    }
    return _shows_always(shown, "tpm_state", tpm)


def _shows_always(shown: Shown, name: str, block: Object) -> Object:
    """Return a block that only its presence on the VM decides about, also after an import."""
    return {name: [block]} if is_managed(shown, name) else {}
