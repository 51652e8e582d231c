"""A virtual machine of Proxmox in terms of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.desired import Vm
from stackyard.path.importing.cloud_init import tell_cloud_init
from stackyard.path.importing.configuration import Configuration, as_flag
from stackyard.path.importing.drives import drives_of
from stackyard.path.importing.shared import base_fields, number, without_only_mac

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.path.importing.configuration import Parts, Translated

__all__ = ["translate_vm"]

_CARD_MODELS = ("virtio", "e1000", "e1000e", "rtl8139", "vmxnet3")


def translate_vm(
    row: Mapping[str, Any], values: Mapping[str, Any], left_alone: Iterable[str] = ()
) -> Translated:
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
    config.take_into(
        fields,
        machine=("machine", str),
        bios=("bios", str),
        acpi=("acpi", as_flag),
        hotplug=("hotplug", str),
        scsi_hardware=("scsihw", str),
        tablet=("tablet", as_flag),
        keyboard_layout=("keyboard", str),
    )
    fields["os_type"] = config.take("ostype") or "other"
    arguments = (config.take("args") or "").strip()
    if arguments:
        fields["kvm_arguments"] = arguments
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
    cpu: dict[str, Any] = {"numa": config.take_flag("numa")}
    emulated = config.take_parts("cpu", "cputype")
    if emulated is None:
        cpu["type"] = "qemu64"
        config.note("has no CPU type (Proxmox means kvm64), and the provider takes that for qemu64")
    else:
        cpu["type"] = emulated.take("cputype") or "qemu64"
        emulated.take_into(cpu, flags=("flags", lambda text: text.split(";")))
        emulated.done()
    config.take_into(
        cpu,
        cores=("cores", int),
        sockets=("sockets", int),
        hotplugged=("vcpus", int),
        limit=("cpulimit", number),
        units=("cpuunits", int),
        affinity=("affinity", str),
        architecture=("arch", str),
    )
    fields["cpu"] = cpu
    memory: dict[str, Any] = {"dedicated_mib": 512}
    size = config.take_parts("memory", "current")
    if size is not None:
        size.take_into(memory, dedicated_mib=("current", int))
        size.done()
    config.take_into(
        memory,
        floating_mib=("balloon", int),
        hugepages=("hugepages", str),
        keep_hugepages=("keephugepages", as_flag),
    )
    shared = config.take_parts("ivshmem", "size")
    if shared is not None:
        shared.take_into(memory, shared_mib=("size", int))
        shared.done("name")
    fields["memory"] = memory
    fields["numa_nodes"] = [
        _numa_node(config, place, parts) for place, parts in config.take_numbered("numa", "cpus", gaps=True)
    ]


def _numa_node(config: Configuration, place: int, parts: Parts) -> dict[str, Any]:
    node: dict[str, Any] = {"device": f"numa{place}"}
    parts.take_into(
        node,
        cpus=("cpus", str),
        memory_mib=("memory", int),
        host_nodes=("hostnodes", str),
        policy=("policy", str),
    )
    parts.done()
    return node


def _devices(config: Configuration, fields: dict[str, Any]) -> None:
    fields["agent"] = agent = {"enabled": False}
    found = config.take_parts("agent", "enabled")
    if found is not None:
        found.take_into(
            agent, enabled=("enabled", as_flag), trim=("fstrim_cloned_disks", as_flag), type=("type", str)
        )
        found.done()
    serials = config.take_numbered("serial", "device")
    fields["serials"] = [{"device": parts.take("device")} for _, parts in serials]
    display = config.take_parts("vga", "type")
    if display is not None:
        card: dict[str, Any] = {}
        display.take_into(card, type=("type", str), memory_mib=("memory", int), clipboard=("clipboard", str))
        display.done()
        if card not in ({}, {"type": "std"}):
            fields["display"] = card
    _small_devices(config, fields)
    fields["pci_devices"] = [
        _pci(place, parts) for place, parts in config.take_numbered("hostpci", "id", gaps=True)
    ]
    fields["usb_devices"] = [_usb(parts) for _, parts in config.take_numbered("usb", "host")]


def _small_devices(config: Configuration, fields: dict[str, Any]) -> None:
    audio = config.take_parts("audio0", "device")
    if audio is not None:
        card: dict[str, Any] = {}
        fields["audio"] = card
        if "driver" not in audio:
            audio.lack("driver", "it is not set, and the providers take that for a difference: set it")
        audio.take_into(card, device=("device", str), driver=("driver", str))
        audio.done()
    numbers = config.take_parts("rng0", "source")
    if numbers is not None:
        source: dict[str, Any] = {}
        fields["random_numbers"] = source
        numbers.take_into(
            source, source=("source", str), max_bytes=("max_bytes", int), period_ms=("period", int)
        )
        numbers.done()
    watchdog = config.take_parts("watchdog", "model")
    if watchdog is not None:
        dog: dict[str, Any] = {}
        fields["watchdog"] = dog
        watchdog.take_into(dog, model=("model", str), action=("action", str))
        watchdog.done()


def _pci(place: int, parts: Parts) -> dict[str, Any]:
    device: dict[str, Any] = {"device": f"hostpci{place}"}
    parts.take_into(
        device,
        id=("id", str),
        mapping=("mapping", str),
        mdev=("mdev", str),
        pcie=("pcie", as_flag),
        rombar=("rombar", as_flag),
        rom_file=("romfile", str),
        primary_gpu=("x-vga", as_flag),
    )
    host = parts.take("host")
    if host is not None:
        device["id"] = host
    parts.done()
    return device


def _usb(parts: Parts) -> dict[str, Any]:
    device: dict[str, Any] = {}
    parts.take_into(device, host=("host", str), mapping=("mapping", str), usb3=("usb3", as_flag))
    if device.get("host") == "spice":
        parts.lack("host", "a port for SPICE is none of the node's devices")
    parts.done()
    return device


def _nics(config: Configuration) -> list[dict[str, Any]]:
    return without_only_mac([_nic(parts) for _, parts in config.take_numbered("net", "model")])


def _nic(parts: Parts) -> dict[str, Any]:
    card: dict[str, Any] = {}
    model = next((name for name in parts.names() if name in _CARD_MODELS), None)
    if model is not None:
        card |= {"model": model, "mac": parts.take(model)}
    parts.take_into(
        card,
        model=("model", str),
        mac=("macaddr", str),
        bridge=("bridge", str),
        vlan=("tag", int),
        firewall=("firewall", as_flag),
        rate_limit_mb=("rate", float),
        mtu=("mtu", int),
        queues=("queues", int),
        trunks=("trunks", str),
        disconnected=("link_down", as_flag),
    )
    if "bridge" not in card:
        parts.lack("bridge", "a card without a bridge is in no network that could be named")
    parts.done()
    return card
