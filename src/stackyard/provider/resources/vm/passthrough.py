"""Devices of the host that a VM is given: PCI, USB, folders, and the nodes of its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import list_numbered, parse, render
from stackyard.fields.vm import NUMA_NODE, PCI_DEVICE, SHARED_FOLDER, USB_DEVICE
from stackyard.provider.resources.vm.blocks import PriorState, is_managed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.provider.values import Object

__all__ = ["passthrough_params", "read_passthrough"]


def passthrough_params(state: Object) -> dict[str, str]:
    """Return these devices by their key."""
    found = {str(block["device"]): PCI_DEVICE.write_text(block) for block in _blocks(state, "hostpci")}
    for number, block in enumerate(_blocks(state, "usb")):
        found[f"usb{number}"] = USB_DEVICE.write_text(block)
    for number, block in enumerate(_blocks(state, "virtiofs")):
        found[f"virtiofs{number}"] = _share_text(block)
    return found | {str(block["device"]): NUMA_NODE.write_text(block) for block in _blocks(state, "numa")}


def _blocks(state: Object, name: str) -> Iterable[Object]:
    return state.get(name) or ()


def _share_text(block: Object) -> str:
    sent = SHARED_FOLDER.write(block)
    # Access lists include the other attributes.
    return render({**sent, "expose-xattr": None if sent["expose-acl"] else sent["expose-xattr"]})


def read_passthrough(config: Mapping[str, Any], shown: PriorState) -> Object:
    """Return the blocks of all of them."""
    readers = {"hostpci": _read_pci, "usb": _read_usb, "virtiofs": _read_shares, "numa": _read_numa}
    return {name: read(config, shown) for name, read in readers.items() if is_managed(shown, name)}


def _read_pci(config: Mapping[str, Any], shown: PriorState) -> list[Object]:
    return [
        {"device": f"hostpci{number}", **PCI_DEVICE.read_text(value)}
        for number, value in list_numbered(config, "hostpci")
    ]


def _read_usb(config: Mapping[str, Any], shown: PriorState) -> list[Object]:
    found = [parse(value, "host") for _, value in list_numbered(config, "usb")]
    return [USB_DEVICE.read(one) for one in found if "host" in one or "mapping" in one]


def _read_shares(config: Mapping[str, Any], shown: PriorState) -> list[Object]:
    found = [parse(value, SHARED_FOLDER.bare) for _, value in list_numbered(config, "virtiofs")]
    # Access lists include the other attributes.
    return [SHARED_FOLDER.read({"expose-xattr": one.get("expose-acl"), **one}) for one in found]


def _read_numa(config: Mapping[str, Any], shown: PriorState) -> list[Object]:
    nodes = {
        f"numa{number}": {"device": f"numa{number}", **NUMA_NODE.read_text(value)}
        for number, value in list_numbered(config, "numa")
    }
    order = [block.get("device") for block in shown.known.get("numa") or ()]
    first = [nodes.pop(str(device)) for device in order if device in nodes]
    return [*first, *nodes.values()]
