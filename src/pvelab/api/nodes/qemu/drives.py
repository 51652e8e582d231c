"""Drives of a VM: which keys are drives, and how their property strings are read and printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.server.params import properties
from pvelab.server.params.texts import FormatError
from pvelab.server.problems import PveError, bad_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pvelab.server.facts import Facts

__all__ = [
    "NO_BOOT_ORDER",
    "Drive",
    "boot_order",
    "check_parameters",
    "drive_keys",
    "is_cdrom",
    "is_cloudinit",
    "is_drive",
    "is_new_disk",
    "parse_drive",
    "print_drive",
]

Drive = dict[str, Any]

# An order without devices is an empty text in the file, of which reading leaves the space after the colon.
NO_BOOT_ORDER = " "

_DECLARED_AT = "POST /nodes/{node}/qemu"
_COUNTS = {"ide": 4, "scsi": 31, "virtio": 16, "sata": 6}
_NAMES = (
    *(f"{bus}{n}" for bus, count in _COUNTS.items() for n in range(count)),
    "efidisk0",
    "tpmstate0",
)
_DRIVES = frozenset(_NAMES)
_NEEDED_BY_IMPORT = {"efidisk0": ("efitype", "pre-enrolled-keys"), "tpmstate0": ("version",)}
_NEW_DISK = re.compile(r"(?:([^/:\s]+):)?(\d+(?:\.\d+)?)")
_CLOUDINIT = re.compile(r"(?:^|[:/])vm-\d+-cloudinit(?:\.\w+)?$|:cloudinit$")


def is_drive(key: str) -> bool:
    """Return whether an option is a drive (unused disks are not)."""
    return key in _DRIVES


def drive_keys(config: Mapping[str, Any]) -> list[str]:
    """Return the drives of a configuration in Proxmox's order."""
    return [name for name in _NAMES if name in config]


def boot_order(devices: Sequence[str]) -> str:
    """Print the devices that a VM boots from, in this order."""
    return f"order={';'.join(devices)}" if devices else NO_BOOT_ORDER


def is_cdrom(drive: Mapping[str, Any]) -> bool:
    """Return whether a drive is a CD drive; a cloud-init drive is one too."""
    return drive.get("media") == "cdrom"


def is_cloudinit(drive: Mapping[str, Any]) -> bool:
    """Return whether a drive carries cloud-init data, allocated or about to be."""
    return bool(_CLOUDINIT.search(str(drive.get("file", ""))))


def is_new_disk(volume: str) -> tuple[str | None, float] | None:
    """Return the storage (None for the default one) and the GiB of `storage:8`, None for anything else."""
    found = _NEW_DISK.fullmatch(volume)
    return (found[1], float(found[2])) if found else None


def parse_drive(facts: Facts, key: str, text: str) -> Drive:
    """Read a drive.

    Raises:
        PveError: The text cannot be read.
    """
    try:
        drive = properties.parse(_schema(facts, key), text)
    except FormatError as err:
        raise PveError(f"unable to parse drive options for '{key}' - {err}") from err
    if drive["file"] in ("none", "cdrom") and key not in ("efidisk0", "tpmstate0"):
        drive.setdefault("media", "cdrom")
    return drive


def check_parameters(facts: Facts, settings: Mapping[str, Any]) -> None:
    """Refuse drives that contradict themselves.

    Raises:
        PveError: 400, with what is wrong about a drive.
    """
    for key in drive_keys(settings):
        drive = parse_drive(facts, key, str(settings[key]))
        volume = str(drive["file"])
        if "import-from" in drive:
            new = is_new_disk(volume)
            if new is None or new[1]:
                text = "'import-from' requires special syntax - use <storage ID>:0,import-from=<source>"
                raise bad_parameter(key, text)
            for needed in _NEEDED_BY_IMPORT.get(key, ()):
                if needed not in drive:
                    raise bad_parameter(key, f"need to specify '{needed}' when using 'import-from'")
        if volume.partition(":")[2].startswith("iso/") and not is_cdrom(drive):
            raise bad_parameter(key, "explicit 'media=cdrom' is required for iso images")


def print_drive(facts: Facts, key: str, drive: Mapping[str, Any]) -> str:
    """Print a drive: the volume first, the other keys sorted, nothing that only allocation needs."""
    return properties.render(_schema(facts, key), drive, skip=("format", "import-from"))


def _schema(facts: Facts, key: str) -> properties.PropertySchema:
    bus = key.rstrip("0123456789")
    if bus == "unused":
        return {"file": {"type": "string", "default_key": 1}}
    found: properties.PropertySchema = facts.schema(_DECLARED_AT, f"{bus}[n]" if bus in _COUNTS else key)[
        "format"
    ]
    return found
