"""Devices of a node: `/nodes/{node}/hardware`. Every node of the lab has the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = ["PCI_DEVICES", "USB_DEVICES", "index_hardware", "index_pci", "list_mdev", "list_pci", "list_usb"]

_MEMORY_BRIDGES_CPUS = "05;06;0b"
_INTEL, _NVIDIA, _SAMSUNG = "0x8086", "0x10de", "0x144d"
_VENDORS = {
    _INTEL: "Intel Corporation",
    _NVIDIA: "NVIDIA Corporation",
    _SAMSUNG: "Samsung Electronics Co Ltd",
}


def _device(ident: str, kind: str, identity: tuple[str, str], group: int, name: str) -> Mapping[str, Any]:
    vendor, device = identity
    return {
        "id": ident,
        "class": kind,
        "vendor": vendor,
        "device": device,
        "iommugroup": group,
        "vendor_name": _VENDORS[vendor],
        "device_name": name,
        "subsystem_vendor": vendor,
        "subsystem_device": "0x0001",
    }


def _usb(
    place: tuple[int, int, int], identity: tuple[str, str], speed: str, maker: str, name: str
) -> Mapping[str, Any]:
    bus, number, port = place
    return {
        "busnum": bus,
        "devnum": number,
        "port": port,
        "level": int(port > 0),
        "class": 0 if port else 9,
        "speed": speed,
        "vendid": identity[0],
        "prodid": identity[1],
        "manufacturer": maker,
        "product": name,
        **({"usbpath": str(port)} if port else {}),
    }


PCI_DEVICES: tuple[Mapping[str, Any], ...] = (
    _device("0000:00:00.0", "0x060000", (_INTEL, "0x3ec2"), 0, "8th Gen Core Host Bridge"),
    _device("0000:00:01.0", "0x060400", (_INTEL, "0x1901"), 1, "Core Processor PCIe Controller (x16)"),
    _device(
        "0000:00:14.0", "0x0c0330", (_INTEL, "0xa36d"), 2, "Cannon Lake PCH USB 3.1 xHCI Host Controller"
    ),
    _device("0000:00:1f.4", "0x0c0500", (_INTEL, "0xa323"), 3, "Cannon Lake PCH SMBus Controller"),
    _device("0000:01:00.0", "0x030200", (_NVIDIA, "0x1eb8"), 12, "TU104GL [Tesla T4]"),
    *(
        _device(
            f"0000:02:00.{port}",
            "0x020000",
            (_INTEL, "0x1521"),
            13 + port,
            "I350 Gigabit Network Connection",
        )
        for port in range(4)
    ),
    _device("0000:03:00.0", "0x010802", (_SAMSUNG, "0xa808"), 17, "NVMe SSD Controller SM981/PM981/PM983"),
)
USB_DEVICES: tuple[Mapping[str, Any], ...] = (
    _usb((1, 1, 0), ("1d6b", "0002"), "480", "Linux", "xHCI Host Controller"),
    _usb((1, 2, 1), ("1050", "0407"), "12", "Yubico", "YubiKey OTP+FIDO+CCID"),
    _usb((2, 2, 3), ("0781", "5583"), "5000", "SanDisk", "Ultra Fit"),
)
_MDEV_TYPES: tuple[Mapping[str, Any], ...] = tuple(
    {
        "type": f"nvidia-{number}",
        "name": f"GRID T4-{memory}Q",
        "available": 16 // memory,
        "description": f"num_heads=4, framebuffer={memory * 1024}M, max_instance={16 // memory}",
    }
    for number, memory in ((230, 1), (231, 2), (232, 4), (233, 8), (234, 16))
)
_NAMES = ("vendor_name", "device_name", "subsystem_vendor", "subsystem_device")


@route("GET /nodes/{node}/hardware")
def index_hardware(_call: Call) -> Any:
    """List the kinds of devices."""
    return [{"type": "pci"}, {"type": "usb"}]


@route("GET /nodes/{node}/hardware/pci")
def list_pci(call: Call) -> Any:
    """List the PCI devices, but for classes that no one passes through."""
    hidden = split_list(call.params.get("pci-class-blacklist", _MEMORY_BRIDGES_CPUS))
    verbose = call.params.get("verbose", 1)
    return [
        {key: value for key, value in device.items() if verbose or key not in _NAMES}
        for device in PCI_DEVICES
        if not device["class"].removeprefix("0x").startswith(tuple(hidden))
    ]


@route("GET /nodes/{node}/hardware/pci/{pci-id-or-mapping}")
def index_pci(_call: Call) -> Any:
    """List what there is of a PCI device."""
    return [{"method": "mdev"}]


@route("GET /nodes/{node}/hardware/pci/{pci-id-or-mapping}/mdev")
def list_mdev(call: Call) -> Any:
    """List the mediated devices that a card can be divided into; the graphics card can, others have none."""
    named = str(call.params["pci-id-or-mapping"])
    mapping = call.store.get("mapping_pci", named)
    wanted = {named if named.count(":") > 1 else f"0000:{named}"}
    if ":" not in named:
        if mapping is None:
            raise PveError(f"mapping '{named}' not found")
        entries = [dict(part.partition("=")[::2] for part in str(one).split(",")) for one in mapping["map"]]
        wanted = {
            path for entry in entries if entry.get("node") == call.node for path in entry["path"].split(";")
        }
    known = {str(device["id"]): device for device in PCI_DEVICES}
    found = [known[path] for path in wanted if path in known]
    if not found:
        return []
    return [dict(kind) for kind in _MDEV_TYPES] if found[0]["vendor"] == _NVIDIA else []


@route("GET /nodes/{node}/hardware/usb")
def list_usb(_call: Call) -> Any:
    """List the USB devices."""
    return [dict(device) for device in USB_DEVICES]
