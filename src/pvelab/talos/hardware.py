"""What Talos sees of a VM: disks, links and addresses, from its configuration."""

from __future__ import annotations

import hashlib
import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.talos.boot import drives_of, system_disk
from pvelab.world.guests.addresses import LOOPBACK, list_planned_addresses
from pvelab.world.guests.rows import memory_bytes
from pvelab.world.storage.contents import disk_size
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from pvelab.world.guests.addresses import Interface
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = [
    "DiskFacts",
    "find_install_disk",
    "list_addresses",
    "list_disks",
    "list_interfaces",
    "memory_kib",
    "node_id",
]

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFacts:
    """A disk as Talos sees it."""

    key: str
    device: str
    size: int
    model: str
    serial: str
    transport: str
    bus_path: str
    is_rotational: bool
    is_cdrom: bool
    is_readonly: bool
    is_system: bool

    @property
    def path(self) -> str:
        """Its device file."""
        return f"/dev/{self.device}"

    @property
    def pretty_size(self) -> str:
        """Its size for people: `21 GB`."""
        size, unit = float(self.size), 0
        while size >= 1000 and unit < len(_UNITS) - 1:
            size, unit = size / 1000, unit + 1
        return f"{size:.1f} {_UNITS[unit]}" if unit and size < 10 else f"{size:.0f} {_UNITS[unit]}"

    def message(self) -> Any:
        """Return it as `StorageService/Disks` answers."""
        kinds = pb.Disk.DiskType
        kind = kinds.CD if self.is_cdrom else kinds.HDD if self.is_rotational else kinds.SSD
        return pb.Disk(
            size=self.size,
            model=self.model,
            device_name=self.path,
            serial=self.serial,
            type=kind,
            bus_path=self.bus_path,
            system_disk=self.is_system,
            subsystem="/sys/class/block",
            readonly=self.is_readonly,
        )

    def spec(self) -> dict[str, Any]:
        """Return it as the resource has it."""
        optional = {"model": self.model, "serial": self.serial, "bus_path": self.bus_path}
        return {
            "dev_path": self.path,
            "size": self.size,
            "pretty_size": self.pretty_size,
            "io_size": 512,
            "sector_size": 2048 if self.is_cdrom else 512,
            "readonly": self.is_readonly,
            "cdrom": self.is_cdrom,
            **{key: value for key, value in optional.items() if value},
            "sub_system": "/sys/class/block",
            "transport": self.transport,
            **({"rotational": True} if self.is_rotational else {}),
        }


def list_disks(world: World, guest: Document) -> list[DiskFacts]:
    """Return the disks of a VM, CD drives among them."""
    drives = drives_of(world, guest)
    system = system_disk(drives)
    return [
        _disk(str(guest["config"][key]), key, drive.device, disk_size(drive.volume), drive is system)
        for key, drive in drives.items()
    ]


def _disk(text: str, key: str, device: str, size: int, is_system: bool) -> DiskFacts:
    options = dict(part.partition("=")[::2] for part in text.split(",")[1:])
    is_cdrom = options.get("media") == "cdrom"
    transport = "virtio" if key.startswith(("virtio", "scsi")) else "sata"
    number = re.sub(r"\D", "", key)
    model = "" if key.startswith("virtio") else "QEMU DVD-ROM" if is_cdrom else "QEMU HARDDISK"
    return DiskFacts(
        key=key,
        device=device,
        size=size,
        model=model,
        serial=options.get("serial", f"drive-{key}" if key.startswith("scsi") else ""),
        transport=transport,
        bus_path=f"/pci0000:00/0000:00:05.0/{transport}{number}",
        is_rotational=not is_cdrom and transport != "virtio" and options.get("ssd") != "1",
        is_cdrom=is_cdrom,
        is_readonly=is_cdrom or options.get("ro") == "1",
        is_system=is_system,
    )


def find_install_disk(disks: list[DiskFacts], install: Any) -> DiskFacts | None:
    """Return the disk that a configuration wants Talos to be installed on, None if there is none."""
    usable = [disk for disk in disks if not disk.is_cdrom and not disk.is_readonly]
    selector = install.get("diskSelector") if isinstance(install, dict) else None
    if isinstance(selector, dict) and selector:
        return next((disk for disk in usable if _matches(disk, selector)), None)
    return next((disk for disk in usable if disk.path == install.get("disk")), None)


def _matches(disk: DiskFacts, selector: dict[str, Any]) -> bool:
    texts = {"name": disk.path, "model": disk.model, "serial": disk.serial, "busPath": disk.bus_path}
    for key, wanted in selector.items():
        if key == "size":
            if not _size_matches(disk.size, str(wanted)):
                return False
        elif key == "type":
            kinds = {"hdd"} if disk.is_rotational else {"ssd"}
            if str(wanted).lower() not in kinds:
                return False
        elif not _glob(texts.get(key, ""), str(wanted)):
            return False
    return True


def _glob(text: str, pattern: str) -> bool:
    expression = "".join(".*" if one == "*" else re.escape(one) for one in pattern)
    return re.fullmatch(expression, text) is not None


def _size_matches(size: int, wanted: str) -> bool:
    found = re.fullmatch(r"\s*(<=|>=|==|<|>)?\s*([\d.]+)\s*([KMGTP]?i?)B?\s*", wanted, re.IGNORECASE)
    if found is None:
        return False
    unit = found[3].upper()
    number = float(found[2]) * (1024 if unit.endswith("I") else 1000) ** " KMGTP".index(unit[:1] or " ")
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
    return bool(compare.get(found[1] or "", operator.eq)(size, number))


def list_interfaces(world: World, guest: Document) -> list[Interface]:
    """Return the links of a VM with their addresses, the loopback first."""
    return [LOOPBACK, *list_planned_addresses(world, guest)]


def list_addresses(world: World, guest: Document) -> list[str]:
    """Return the addresses of a VM that others reach it at."""
    return [
        one.address
        for interface in list_planned_addresses(world, guest)
        for one in interface.addresses
        if not one.is_link_local
    ]


def memory_kib(guest: Document) -> int:
    """Return the memory that the kernel of a VM sees: a part is the firmware's and its own."""
    return int(memory_bytes(guest["config"]) * 0.96) // 1024


def node_id(guest: Document) -> str:
    """Return what distinguishes a machine from all others, as long as its VM exists."""
    identity = f"{guest['vmid']}|{guest['config'].get('smbios1', '')}"
    return hashlib.sha256(identity.encode()).hexdigest()
