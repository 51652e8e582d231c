"""A virtual machine of Proxmox in terms of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.desired import Vm
from stackyard.fields.vm import (
    AGENT,
    AUDIO,
    BASICS,
    CARD,
    CPU,
    DISPLAY,
    MEMORY,
    NUMA_NODE,
    PCI_DEVICE,
    RANDOM_NUMBERS,
    USB_DEVICE,
    WATCHDOG,
)
from stackyard.path.importing.cloud_init import tell_cloud_init
from stackyard.path.importing.configuration import Configuration, put_row
from stackyard.path.importing.drives import drives_of
from stackyard.path.importing.shared import base_fields, without_only_mac

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.fields.table import Table
    from stackyard.path.importing.configuration import Parts, TranslatedGuest

__all__ = ["translate_vm"]

_CARD_MODELS = ("virtio", "e1000", "e1000e", "rtl8139", "vmxnet3")


def translate_vm(
    row: Mapping[str, Any], values: Mapping[str, Any], left_alone: Iterable[str] = ()
) -> TranslatedGuest:
    """Return a virtual machine in terms of the model, or everything that stands against it.

    Args:
        row: How the cluster lists it.
        values: Its configuration.
        left_alone: Keys that stay outside of everything.
    """
    config = Configuration(values, left_alone)
    fields = base_fields(config, row)
    name = config.take("name")
    if name is None:
        config.lack("name", "it has none, and everything here goes by names: give it one")
    else:
        fields["name"] = fields["key"] = name
    _basics(config, fields)
    _processing(config, fields)
    _devices(config, fields)
    fields["nics"] = _nics(config)
    drives = drives_of(config, int(row["vmid"]))
    fields.update(drives.fields)
    tell_cloud_init(config, fields, drives.cloud_init)
    _forget_usual_order(fields)
    return config.translated(row, Vm.model_validate, fields)


def _basics(config: Configuration, fields: dict[str, Any]) -> None:
    config.take_rows(fields, BASICS)
    config.take_into(fields, hotplug=("hotplug", str))
    fields["os_type"] = config.take("ostype") or "other"
    boot = config.take_parts("boot", "legacy")
    if boot is not None:
        order = boot.take("order")
        if order:
            fields["boot_order"] = order.split(";")
        # The older spelling is nobody's but Proxmox's own.
        boot.done("legacy")
    config.forget("bootdisk", "meta", "vmgenid")
    identity = config.take_parts("smbios1", "uuid")
    if identity is not None:
        identity.done("uuid", "base64")


def _forget_usual_order(fields: dict[str, Any]) -> None:
    """Leave out an order of booting that is Proxmox's own: a disk, what is in the CD drive, the network."""
    order = fields.get("boot_order", [])
    drives = [fields[drive]["interface"] for drive in ("cdrom", "cloud_init") if drive in fields]
    rest = [*drives[:1], *(["net0"] if fields["nics"] else [])]
    is_disk = bool(order) and order[0] in [disk["interface"] for disk in fields["disks"]]
    if is_disk and order[1:] == rest:
        del fields["boot_order"]


def _processing(config: Configuration, fields: dict[str, Any]) -> None:
    fields["cpu"] = cpu = dict[str, Any]()
    emulated = config.take_parts("cpu", "cputype")
    if emulated is None:
        config.note("has no CPU type (Proxmox means kvm64), and the provider takes that for qemu64")
    config.take_rows(cpu, CPU, emulated)
    if emulated is not None:
        emulated.done()
    fields["memory"] = memory = dict[str, Any]()
    sizes = {"memory": ("current",), "ivshmem": ("size", "name")}
    for row in MEMORY:
        part, *ignored = sizes.get(row.property_name, ("",))
        parts = config.take_parts(row.property_name, part) if part else None
        if parts is not None:
            put_row(parts, memory, row, part)
            parts.done(*ignored)
    config.take_rows(memory, MEMORY)
    fields["numa_nodes"] = _numbered(config, "numa", NUMA_NODE)


def _numbered(config: Configuration, prefix: str, table: Table) -> list[dict[str, Any]]:
    """Return devices that have their number in a field of their own."""
    return [
        parts.take_rows({"device": f"{prefix}{place}"}, table)
        for place, parts in config.take_numbered(prefix, table.bare, gaps=True)
    ]


def _devices(config: Configuration, fields: dict[str, Any]) -> None:
    fields["agent"] = config.take_table("agent", AGENT) or {"enabled": False}
    serials = config.take_numbered("serial", "device")
    fields["serials"] = [{"device": parts.take("device")} for _, parts in serials]
    display = config.take_table("vga", DISPLAY)
    if display not in (None, {}, {"type": "std"}):
        fields["display"] = display
    _small_devices(config, fields)
    fields["pci_devices"] = _numbered(config, "hostpci", PCI_DEVICE)
    fields["usb_devices"] = [_usb(parts) for _, parts in config.take_numbered("usb", USB_DEVICE.bare)]


def _small_devices(config: Configuration, fields: dict[str, Any]) -> None:
    audio = config.take_parts("audio0", AUDIO.bare)
    if audio is not None:
        if "driver" not in audio:
            audio.lack("driver", "it is not set, and the providers take that for a difference: set it")
        fields["audio"] = audio.take_rows({}, AUDIO)
    devices = {
        "random_numbers": config.take_table("rng0", RANDOM_NUMBERS),
        "watchdog": config.take_table("watchdog", WATCHDOG),
    }
    fields.update((name, device) for name, device in devices.items() if device is not None)


def _usb(parts: Parts) -> dict[str, Any]:
    device = parts.take_rows({}, USB_DEVICE)
    if device.get("host") == "spice":
        parts.lack("host", "a port for SPICE is none of the node's devices")
    return device


def _nics(config: Configuration) -> list[dict[str, Any]]:
    return without_only_mac([_nic(parts) for _, parts in config.take_numbered("net", "model")])


def _nic(parts: Parts) -> dict[str, Any]:
    card: dict[str, Any] = {}
    model = next((name for name in parts.names() if name in _CARD_MODELS), None)
    if model is not None:
        card |= {"model": model, "mac": parts.take(model)}
    parts.take_rows(card, CARD)
    if "bridge" not in card:
        parts.lack("bridge", "a card without a bridge is in no network that could be named")
    return card
