"""Devices of the host that a VM is given: PCI, USB, folders, and the nodes of its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.resources.vm.blocks import Shown, is_managed
from stackyard.provider.resources.vm.properties import flag, numbered, parse, render, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.provider.values import Object

__all__ = ["passthrough_params", "read_passthrough"]


def passthrough_params(state: Object) -> dict[str, str]:
    """Return these devices by their key."""
    found = {str(block["device"]): _pci_text(block) for block in _blocks(state, "hostpci")}
    for number, block in enumerate(_blocks(state, "usb")):
        found[f"usb{number}"] = _usb_text(block)
    for number, block in enumerate(_blocks(state, "virtiofs")):
        found[f"virtiofs{number}"] = _share_text(block)
    return found | {str(block["device"]): _numa_text(block) for block in _blocks(state, "numa")}


def _blocks(state: Object, name: str) -> Iterable[Object]:
    return state.get(name) or ()


def _pci_text(block: Object) -> str:
    return render(
        {
            "host": block.get("id") or None,
            "mapping": block.get("mapping") or None,
            "mdev": block.get("mdev") or None,
            "pcie": bool(block.get("pcie")),
            "rombar": bool(block.get("rombar")),
            "romfile": block.get("rom_file") or None,
            "x-vga": bool(block.get("xvga")),
        }
    )


def _usb_text(block: Object) -> str:
    return render(
        {
            "host": block.get("host") or None,
            "mapping": block.get("mapping") or None,
            "usb3": bool(block.get("usb3")),
        }
    )


def _share_text(block: Object) -> str:
    exposes_acl = bool(block.get("expose_acl"))
    return render(
        {
            "dirid": block["mapping"],
            "cache": block.get("cache") or None,
            "direct-io": bool(block.get("direct_io")),
            "expose-acl": exposes_acl,
            # Access lists include the other attributes.
            "expose-xattr": None if exposes_acl else bool(block.get("expose_xattr")),
        }
    )


def _numa_text(block: Object) -> str:
    return render(
        {
            "cpus": block.get("cpus"),
            "hostnodes": block.get("hostnodes") or None,
            "memory": block.get("memory"),
            "policy": block.get("policy") or None,
        }
    )


def read_passthrough(config: Mapping[str, Any], shown: Shown) -> Object:
    """Return the blocks of all of them."""
    readers = {"hostpci": _read_pci, "usb": _read_usb, "virtiofs": _read_shares, "numa": _read_numa}
    return {name: read(config, shown) for name, read in readers.items() if is_managed(shown, name)}


def _read_pci(config: Mapping[str, Any], shown: Shown) -> list[Object]:
    devices = []
    for number, value in numbered(config, "hostpci"):
        found = parse(value, "host")
        devices.append(
            {
                "device": f"hostpci{number}",
                "id": text(found.get("host")),
                "mapping": text(found.get("mapping")),
                "mdev": text(found.get("mdev")),
                "pcie": flag(found.get("pcie")),
                "rom_file": text(found.get("romfile")),
                "rombar": flag(found.get("rombar"), default=True),
                "xvga": flag(found.get("x-vga")),
            }
        )
    return devices


def _read_usb(config: Mapping[str, Any], shown: Shown) -> list[Object]:
    found = [parse(value, "host") for _, value in numbered(config, "usb")]
    return [
        {"host": text(one.get("host")), "mapping": text(one.get("mapping")), "usb3": flag(one.get("usb3"))}
        for one in found
        if "host" in one or "mapping" in one
    ]


def _read_shares(config: Mapping[str, Any], shown: Shown) -> list[Object]:
    found = [parse(value, "dirid") for _, value in numbered(config, "virtiofs")]
    return [
        {
            "mapping": text(one.get("dirid")),
            "cache": one.get("cache", "auto"),
            "direct_io": flag(one.get("direct-io")),
            "expose_acl": flag(one.get("expose-acl")),
            "expose_xattr": flag(one.get("expose-xattr"), default=flag(one.get("expose-acl"))),
        }
        for one in found
    ]


def _read_numa(config: Mapping[str, Any], shown: Shown) -> list[Object]:
    nodes = {}
    for number, value in numbered(config, "numa"):
        found = parse(value, "cpus")
        nodes[f"numa{number}"] = {
            "device": f"numa{number}",
            "cpus": text(found.get("cpus")),
            "hostnodes": text(found.get("hostnodes")),
            "memory": whole(found.get("memory")),
            "policy": found.get("policy", "preferred"),
        }
    order = [block.get("device") for block in shown.known.get("numa") or ()]
    first = [nodes.pop(str(device)) for device in order if device in nodes]
    return [*first, *nodes.values()]
