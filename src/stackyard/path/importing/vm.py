"""A virtual machine of Proxmox in terms of the model: the inverse of `render.vm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.desired import Vm
from stackyard.fields.guest import STARTUP
from stackyard.fields.properties import list_numbered
from stackyard.fields.vm import (
    AGENT,
    AUDIO,
    BASICS,
    CARD,
    CPU,
    DISPLAY,
    EFI_DISK,
    MEMORY,
    NUMA_NODE,
    PCI_DEVICE,
    RANDOM_NUMBERS,
    TPM,
    USB_DEVICE,
    WATCHDOG,
)
from stackyard.path.importing.cloud_init import KNOWN_SETTINGS, add_cloud_init, forget_settings
from stackyard.path.importing.configuration import Configuration, KnownParts, parts_of
from stackyard.path.importing.drives import Drives, add_drives, find_drives
from stackyard.path.importing.shared import KNOWN_KEYS, base_fields, without_only_mac
from stackyard.provider.resources.vm.blocks import PriorState
from stackyard.provider.resources.vm.read import describe_vm

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.fields.table import Table
    from stackyard.path.importing.configuration import TranslatedGuest
    from stackyard.provider.values import Object

__all__ = ["translate_vm"]

_CARD_MODELS = ("virtio", "e1000", "e1000e", "rtl8139", "vmxnet3")
# Blocks that the provider otherwise leaves out where they have their defaults.
_SHOWN: dict[str, Any] = {name: [{}] for name in ("agent", "cpu", "memory", "operating_system", "rng", "vga")}
_PROCESSING = {row.property_name: None for table in (BASICS, CPU, MEMORY) for row in table}
_KNOWN: dict[str, KnownParts | None] = {
    **KNOWN_KEYS,
    **KNOWN_SETTINGS,
    **_PROCESSING,
    **dict.fromkeys(("onboot", "hotplug", "ostype", "bootdisk", "meta", "vmgenid", r"serial\d+")),
    # The older spelling is nobody's but Proxmox's own.
    "boot": KnownParts(names=frozenset(("order", "legacy")), bare="legacy"),
    "smbios1": KnownParts(names=frozenset(("uuid", "base64")), bare="uuid"),
    "startup": parts_of(STARTUP),
    "cpu": KnownParts(names=frozenset(("cputype", "flags")), bare="cputype"),
    "memory": KnownParts(names=frozenset(("current",)), bare="current"),
    "ivshmem": KnownParts(names=frozenset(("size", "name")), bare="size"),
    "agent": parts_of(AGENT),
    "vga": parts_of(DISPLAY),
    "audio0": parts_of(AUDIO),
    "rng0": parts_of(RANDOM_NUMBERS),
    "watchdog": parts_of(WATCHDOG),
    "efidisk0": parts_of(EFI_DISK, "size", "ms-cert"),
    "tpmstate0": parts_of(TPM, "size"),
    r"numa\d+": parts_of(NUMA_NODE),
    r"hostpci\d+": parts_of(PCI_DEVICE),
    r"usb\d+": parts_of(USB_DEVICE),
    r"net\d+": parts_of(CARD, *_CARD_MODELS),
}


def translate_vm(
    row: Mapping[str, Any], values: Mapping[str, Any], left_alone: Iterable[str] = ()
) -> TranslatedGuest:
    """Return a virtual machine in terms of the model, or everything that stands against it.

    Args:
        row: How the cluster lists it.
        values: Its configuration.
        left_alone: Keys that stay outside of everything.
    """
    config, vm_id = Configuration(values, left_alone), int(row["vmid"])
    drives = find_drives(config, vm_id)
    if not drives.cloud_init:
        forget_settings(config)
    known = {**_SHOWN, "cdrom": [{"interface": drives.cdrom, "file_id": "any"}]}
    shown = PriorState(known=known, is_clone=False)
    attributes = config.read(lambda given: describe_vm(given, shown, vm_id))
    fields = base_fields(config, row, attributes, BASICS)
    _add_basics(config, attributes, fields)
    _add_processing(config, attributes, fields)
    _add_devices(config, attributes, fields)
    fields["nics"] = _nics(config, attributes)
    add_drives(config, drives, attributes, fields)
    if drives.cloud_init:
        add_cloud_init(config, attributes["initialization"][0], fields)
    _forget_usual_order(fields, drives)
    config.lack_unknown({**_KNOWN, **drives.known})
    return config.translate(row, Vm.model_validate, fields)


def _add_basics(config: Configuration, attributes: Object, fields: dict[str, Any]) -> None:
    if "name" in fields:
        fields["key"] = fields["name"]
    else:
        config.lack("name", "it has none, and everything here goes by names: give it one")
    fields["on_boot"] = attributes["on_boot"]
    fields["os_type"] = attributes["operating_system"][0]["type"] or "other"
    if "hotplug" in attributes:
        fields["hotplug"] = attributes["hotplug"]
    fields["boot_order"] = [device for device in attributes["boot_order"] or () if device]


def _forget_usual_order(fields: dict[str, Any], drives: Drives) -> None:
    """Leave out an order of booting that is Proxmox's own: a disk, what is in the CD drive, the network."""
    order = fields["boot_order"]
    drive = drives.cdrom or drives.cloud_init
    rest = [device for device, is_there in ((drive, drive), ("net0", fields["nics"])) if is_there]
    is_disk = bool(order) and order[0] in [disk["interface"] for disk in fields["disks"]]
    if is_disk and order[1:] == rest:
        fields["boot_order"] = []


def _add_processing(config: Configuration, attributes: Object, fields: dict[str, Any]) -> None:
    if "cpu" not in config.values:
        config.note("has no CPU type (Proxmox means kvm64), and the provider takes that for qemu64")
    emulated = config.parts("cpu", "cputype")
    fields["cpu"] = CPU.to_fields(attributes["cpu"][0], {**config.values, **emulated})
    fields["memory"] = MEMORY.to_fields(attributes["memory"][0], config.values)
    fields["numa_nodes"] = _slotted(config, NUMA_NODE, attributes["numa"])


def _slotted(config: Configuration, table: Table, blocks: list[Object]) -> list[dict[str, Any]]:
    """Return devices that have their number in a field of their own."""
    return [{"device": block["device"], **config.fields(block["device"], table, block)} for block in blocks]


def _add_devices(config: Configuration, attributes: Object, fields: dict[str, Any]) -> None:
    config.lack_gaps("serial", "usb", "net")
    agent = attributes["agent"]
    fields["agent"] = config.fields("agent", AGENT, agent[0]) if agent else {"enabled": False}
    fields["serials"] = [serial for serial in attributes["serial_device"] if serial["device"]]
    singles = (
        ("display", "vga", DISPLAY, attributes["vga"]),
        ("audio", "audio0", AUDIO, attributes["audio_device"]),
        ("random_numbers", "rng0", RANDOM_NUMBERS, attributes["rng"]),
        ("watchdog", "watchdog", WATCHDOG, attributes.get("watchdog")),
    )
    for field, key, table, blocks in singles:
        if blocks and key in config.values:
            fields[field] = config.fields(key, table, blocks[0])
    if fields.get("display") in ({}, {"type": "std"}):
        del fields["display"]
    if "driver" not in fields.get("audio", {"driver": ""}):
        config.lack("audio0.driver", "it is not set, and the providers take that for a difference: set it")
    fields["pci_devices"] = _slotted(config, PCI_DEVICE, attributes["hostpci"])
    # The provider passes over one that names no device.
    devices = [USB_DEVICE.read_text(text) for _, text in list_numbered(config.values, "usb")]
    fields["usb_devices"] = config.numbered("usb", USB_DEVICE, devices)
    for number, device in enumerate(fields["usb_devices"]):
        if device.get("host") == "spice":
            config.lack(f"usb{number}.host", "a port for SPICE is none of the node's devices")


def _nics(config: Configuration, attributes: Object) -> list[dict[str, Any]]:
    cards = []
    for number, card in enumerate(attributes["network_device"]):
        key = f"net{number}"
        if key not in config.values:
            continue
        # The model is the name of the address: `virtio=BC:24:11:00:00:01`.
        told = {name for name, value in (("model", card["model"]), ("macaddr", card["mac_address"])) if value}
        fields = CARD.to_fields(card, {*config.parts(key, CARD.bare), *told})
        if not card["bridge"]:
            config.lack(f"{key}.bridge", "a card without a bridge is in no network that could be named")
        cards.append(fields)
    return without_only_mac(cards)
