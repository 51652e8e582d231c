"""What a VM boots from, if that is Talos, and why it may not come up.

Talos on a disk is in the `image` of the volume: `talos`, what was installed (see `images`), and `state`, what
its partitions hold: `config` (the machine configuration) and `etcd` (the data of a member). A disk that was
made from a disk image has no `state` before it boots.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.world.guests.lineage import disk_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["COLLECTION", "Boot", "Drive", "boot_order", "drives_of", "find_boot", "system_disk"]

# Of the documents of machines that run: see `machine`.
COLLECTION = "talos"
_DRIVE = re.compile(r"(?:scsi|virtio|sata|ide)\d+")
_KEEP_GOING = "-talos.halt_if_installed"
# Types of CPUs without x86-64-v2, which images for amd64 need; a VM without a type has kvm64.
_OLD_CPUS = frozenset(
    (
        *("486", "athlon", "Conroe", "core2duo", "coreduo", "kvm32", "kvm64", "Opteron_G1", "Opteron_G2"),
        *("Opteron_G3", "Penryn", "pentium", "pentium2", "pentium3", "phenom", "qemu32", "qemu64"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """A drive of a VM: its option, its volume, and what Talos calls it."""

    key: str
    volume: Mapping[str, Any]
    device: str
    is_cdrom: bool = False

    @property
    def talos(self) -> Mapping[str, Any] | None:
        """The Talos on it, None if there is none."""
        place = self.volume if self.is_cdrom else self.volume.get("image") or {}
        found = place.get("talos")
        return found if isinstance(found, dict) else None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to boot on it, as on a cloud-init drive: the firmware looks further."""
        if self.is_cdrom:
            return "cloudinit" in str(self.volume["volid"])
        return not self.volume.get("image")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """A VM that boots Talos.

    Attributes:
        drive: What it boots from.
        problem: Why it does not come up, None if it does.
    """

    drive: Drive
    problem: str | None = None


def find_boot(world: World, guest: Document) -> Boot | None:
    """Return how a VM boots Talos, None if it boots anything else."""
    if guest["type"] != "qemu":
        return None
    drives = drives_of(world, guest)
    for key in boot_order(guest["config"]):
        drive = drives.get(key)
        if drive is None or drive.is_empty:
            continue
        if drive.talos is None:
            return None
        return Boot(drive=drive, problem=_problem(guest["config"], drive, drives))
    return None


def system_disk(drives: Mapping[str, Drive]) -> Drive | None:
    """Return the disk that Talos is installed on, None if there is none."""
    return next((drive for drive in drives.values() if not drive.is_cdrom and drive.talos is not None), None)


def boot_order(config: Mapping[str, Any]) -> list[str]:
    """Return the drives of a VM in the order in which the firmware looks at them."""
    order = re.search(r"order=([^,]+)", str(config.get("boot", "")))
    if order:
        return [key for key in re.split(r"[;\s]+", order[1]) if _DRIVE.fullmatch(key)]
    cdroms = sorted(key for key in config if _DRIVE.fullmatch(key) and _is_cdrom(str(config[key])))
    legacy = re.fullmatch(r"(?:legacy=)?([acdn]+)", str(config.get("boot", "")))
    disks = disk_keys(config)[:1]
    places = {"c": disks, "d": cdroms[:1]}
    return [key for place in (legacy[1] if legacy else "cd") for key in places.get(place, [])]


def drives_of(world: World, guest: Document) -> dict[str, Drive]:
    """Return the drives of a VM that hold something, by their option: disks first, as Talos names them."""
    config, node = guest["config"], str(guest["node"])
    found: dict[str, Drive] = {}
    named: dict[str, int] = {}
    keys = sorted((key for key in config if _DRIVE.fullmatch(key)), key=_place)
    for key in keys:
        text = str(config[key])
        is_cdrom = _is_cdrom(text)
        prefix = "sr" if is_cdrom else "vd" if key.startswith("virtio") else "sd"
        number = named[prefix] = named.get(prefix, -1) + 1
        volid = text.partition(",")[0]
        volume = _find_volume(world, volid, node)
        if volume is not None:
            letter = str(number) if is_cdrom else _letters(number)
            found[key] = Drive(key=key, volume=volume, device=f"{prefix}{letter}", is_cdrom=is_cdrom)
    return found


def _find_volume(world: World, volid: str, node: str) -> Document | None:
    if ":" not in volid or volid.startswith("/"):
        return None
    try:
        return world.volumes.find(volid, node)
    except PveError:
        # Its storage was removed while the VM kept it.
        return None


def _problem(config: Mapping[str, Any], drive: Drive, drives: Mapping[str, Drive]) -> str | None:
    talos = drive.talos or {}
    is_arm = str(config.get("arch", "x86_64")) == "aarch64"
    if is_arm != (talos.get("arch") == "arm64"):
        return f"the image is for {talos.get('arch')}: the firmware finds nothing to boot"
    kind = re.match(r"(?:cputype=)?([^,]+)", str(config.get("cpu", "kvm64")))
    if not is_arm and kind is not None and kind[1] in _OLD_CPUS:
        return f"the CPU type {kind[1]} lacks x86-64-v2: the kernel stops and the VM boots again and again"
    has_uefi = config.get("bios") == "ovmf"
    if has_uefi and "pre-enrolled-keys=1" in str(config.get("efidisk0", "")):
        return "secure boot with the keys of others (pre-enrolled-keys=1): the firmware refuses the image"
    if talos.get("secureboot") and (not has_uefi or "efidisk0" not in config):
        return "the secure boot image needs UEFI (bios: ovmf) with an EFI disk"
    installed = system_disk(drives)
    if drive.is_cdrom and installed is not None and _KEEP_GOING not in talos.get("kernel_args", ()):
        return (
            f"Talos is already installed to disk /dev/{installed.device} but booted from another media"
            " and talos.halt_if_installed kernel parameter is set"
        )
    return None


def _is_cdrom(text: str) -> bool:
    return "media=cdrom" in text


def _place(key: str) -> tuple[int, int]:
    bus = key.rstrip("0123456789")
    return ("scsi", "virtio", "sata", "ide").index(bus), int(key[len(bus) :])


def _letters(number: int) -> str:
    """Return the letters of a disk: a, b, ... z, aa, ab."""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters
