"""What single attributes of a VM may be, and when another spelling means the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import at_least, is_masked, matches, one_of, same_elements
from stackyard.provider.durations import is_duration, same_duration
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RULES"]

_HOTPLUG = ("cpu", "disk", "memory", "network", "usb")
_FILE = matches(
    r"|[A-Za-z][\w.\-]*:[^/\s]+(/[^\s]+)*", "be a file of a datastore, such as local:iso/debian.img"
)
_FORMAT = one_of("qcow2", "raw", "vmdk", "unspecified", "")
_LAYOUTS = (
    *("da", "de", "de-ch", "en-gb", "en-us", "es", "fi", "fr", "fr-be", "fr-ca", "fr-ch", "hu", "is", "it"),
    *("ja", "lt", "mk", "nl", "no", "pl", "pt", "pt-br", "sl", "sv", "tr"),
)
_SYSTEMS = (
    *("l24", "l26", "other", "solaris", "w2k", "w2k3", "w2k8", "win10", "win11", "win7", "win8"),
    *("wvista", "wxp"),
)
_DISPLAYS = (
    *("cirrus", "none", "qxl", "qxl2", "qxl3", "qxl4", "serial0", "serial1", "serial2", "serial3", "std"),
    *("virtio", "virtio-gl", "vmware"),
)


def _between(least: int, most: int) -> Callable[[Any], str | None]:
    return lambda value: None if least <= float(value) <= most else f"must be between {least} and {most}"


def _is_number(value: Any) -> str | None:
    return None if value == -1 or 100 <= int(value) <= 2147483647 else "must be between 100 and 2147483647"


def _is_hotplug(value: Any) -> str | None:
    parts = str(value).split(",")
    if value in ("", "0", "1") or (set(parts) <= set(_HOTPLUG) and len(set(parts)) == len(parts)):
        return None
    return f"must be 0, 1 or some of {', '.join(_HOTPLUG)}"


def _is_queues(value: Any) -> str | None:
    return None if value == 0 or int(value) >= 2 else "must be 0, or at least 2"


def _same_features(prior: Any, config: Any) -> bool:
    if prior is None or {prior, config} & {"0", "1"}:
        return bool(prior == config)
    return sorted(str(prior).split(",")) == sorted(str(config).split(","))


RULES = {
    "agent.timeout": Rule(check=is_duration, same=same_duration),
    "agent.type": Rule(check=one_of("isa", "virtio")),
    "amd_sev.type": Rule(check=one_of("std", "es", "snp")),
    "audio_device.device": Rule(check=one_of("AC97", "ich9-intel-hda", "intel-hda")),
    "audio_device.driver": Rule(check=one_of("spice")),
    "bios": Rule(check=one_of("ovmf", "seabios")),
    "cdrom.interface": Rule(
        check=matches(r"ide[0-3]|sata[0-5]|scsi([0-9]|1[0-3])", "be one of ide0-3, sata0-5, scsi0-13")
    ),
    "clone.vm_id": Rule(check=_is_number),
    "cpu.affinity": Rule(check=matches(r"|\d+[\d,-]*", "be numbers and ranges with commas between")),
    "cpu.architecture": Rule(check=one_of("", "aarch64", "x86_64")),
    "cpu.cores": Rule(check=_between(1, 2304)),
    "cpu.hotplugged": Rule(check=_between(0, 2304)),
    "cpu.limit": Rule(check=_between(0, 128)),
    "cpu.sockets": Rule(check=_between(1, 16)),
    "cpu.units": Rule(check=_between(1, 262144)),
    "disk.aio": Rule(check=one_of("io_uring", "native", "threads")),
    "disk.cache": Rule(check=one_of("none", "writethrough", "writeback", "unsafe", "directsync")),
    "disk.file_format": Rule(check=_FORMAT),
    "disk.file_id": Rule(check=_FILE),
    "disk.import_from": Rule(check=_FILE),
    "disk.interface": Rule(
        check=matches(r"(ide|sata|scsi|virtio)\d+", "be ide, sata, scsi or virtio with a number")
    ),
    "disk.queues": Rule(check=_is_queues),
    "disk.serial": Rule(check=matches(r".{0,20}", "have at most 20 characters")),
    "disk.size": Rule(check=at_least(1)),
    "efi_disk.type": Rule(check=one_of("2m", "4m")),
    "hotplug": Rule(check=_is_hotplug, same=_same_features),
    "initialization.interface": Rule(
        check=matches(r"|ide[0-3]|sata[0-5]|scsi(30|[12]?[0-9])", "be one of ide0-3, sata0-5, scsi0-30"),
        same=lambda prior, config: config == "",
    ),
    "initialization.type": Rule(check=one_of("configdrive2", "nocloud")),
    "initialization.user_account.password": Rule(same=is_masked),
    "keyboard_layout": Rule(check=one_of(*_LAYOUTS)),
    "memory.dedicated": Rule(check=_between(64, 268435456)),
    "memory.floating": Rule(check=_between(0, 268435456)),
    "memory.hugepages": Rule(check=one_of("", "1024", "2", "any")),
    "memory.shared": Rule(check=_between(0, 268435456)),
    "name": Rule(
        check=lambda value: (
            None
            if re.fullmatch(
                r"|[a-zA-Z0-9]([a-zA-Z0-9\-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9\-]*[a-zA-Z0-9])?)*",
                str(value),
            )
            else "must be a valid host name"
        )
    ),
    "numa.policy": Rule(check=one_of("bind", "interleave", "preferred")),
    "operating_system.type": Rule(check=one_of(*_SYSTEMS)),
    "pool_id": Rule(same=lambda prior, config: config == "" and bool(prior)),
    "scsi_hardware": Rule(
        check=one_of("lsi", "lsi53c810", "virtio-scsi-pci", "virtio-scsi-single", "megasas", "pvscsi")
    ),
    "tags": Rule(same=same_elements),
    "tpm_state.version": Rule(check=one_of("v1.2", "v2.0")),
    "vga.memory": Rule(check=_between(4, 512)),
    "vga.type": Rule(check=one_of(*_DISPLAYS)),
    "virtiofs.cache": Rule(check=one_of("auto", "always", "metadata", "never")),
    "vm_id": Rule(check=_is_number),
    "watchdog.action": Rule(check=one_of("debug", "none", "pause", "poweroff", "reset", "shutdown")),
    "watchdog.model": Rule(check=one_of("i6300esb", "ib700")),
}
