"""Devices of a node that a VM is to have for itself: they are there, and no other VM has them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.mapping import entries_on, problem_of
from pvelab.api.nodes.hardware import PCI_DEVICES
from pvelab.api.nodes.qemu.machine_types import is_q35
from pvelab.server.params import properties
from pvelab.server.params.property_formats import PROPERTY_FORMATS
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["require_directories", "require_pci_devices", "require_usb_mappings"]

_DECLARED_AT = "POST /nodes/{node}/qemu"
# Each is a list of devices of which any will do; such a device may have several functions.
Alternatives = list[list[str]]


def require_pci_devices(world: World, guest: Document, config: Mapping[str, Any]) -> list[str]:
    """Return the PCI devices that a VM has once it runs.

    Raises:
        PveError: A device is not there, or the VM has it twice, or another VM that runs has it.
    """
    node, chosen = str(guest["node"]), set[str]()
    wanted = {key: _alternatives(world, config, node, key) for key in _keys(config, "hostpci")}
    taken = _in_use(world, guest)
    for key, alternatives in wanted.items():
        if alternatives is None:
            continue
        if len(alternatives) > 1:
            free = [one for one in alternatives if not chosen & set(one) and not taken.keys() & set(one)]
            if not free:
                raise PveError(f"could not find a free device for '{key}'")
            chosen |= set(free[0])
            continue
        for device in alternatives[0]:
            if device in chosen:
                raise PveError(f"device '{device}' assigned more than once")
            chosen.add(device)
    for device in sorted(chosen & taken.keys()):
        raise PveError(f"PCI device '{device}' already in use by VMID '{taken[device]}'")
    return sorted(chosen)


def require_usb_mappings(world: World, config: Mapping[str, Any], node: str) -> None:
    """Refuse to start a VM with a mapped USB device that its node does not have.

    Raises:
        PveError: There is no such mapping, or the device is another one.
    """
    for key in _keys(config, "usb"):
        name = _parse(world, "usb[n]", str(config[key])).get("mapping")
        if name is None:
            continue
        found = entries_on(world, "usb", str(name), node)
        if not found:
            raise PveError(f"USB device mapping not found for '{name}'")
        if len(found) > 1:
            raise PveError("More than one USB mapping per host not supported")
        problem = problem_of(world, "usb", str(name), found[0])
        if problem is not None:
            raise PveError(f"USB Mapping invalid (hardware probably changed): {problem}")


def require_directories(world: World, config: Mapping[str, Any], node: str) -> None:
    """Refuse to start a VM that shares a directory for which its node has no mapping.

    Raises:
        PveError: There is no such mapping, or none for this node.
    """
    for key in _keys(config, "virtiofs"):
        name = str(_parse(world, "virtiofs[n]", str(config[key]))["dirid"])
        found = entries_on(world, "dir", name, node)
        if found is None:
            raise PveError(f"Directory ID {name} does not exist.")
        if not found:
            raise PveError(f"No directory mapping for node {node}.")


def _alternatives(world: World, config: Mapping[str, Any], node: str, key: str) -> Alternatives | None:
    """Return the devices that an option represents; None if the VM gets a part of one only."""
    given = _parse(world, "hostpci[n]", str(config[key]))
    mapping, host = given.get("mapping"), given.get("host")
    if mapping is not None and host is not None:
        raise PveError("Cannot set both 'host' and 'mapping'.")
    if mapping is not None:
        paths = _resolve_mapping(world, str(mapping), node)
    elif host is not None:
        paths = [str(host)]
    else:
        raise PveError("Either 'host' or 'mapping' must be set.")
    found = [[device for part in path.split(";") for device in _find(part)] for path in paths]
    if given.get("pcie") and not is_q35(world, config):
        raise PveError("q35 machine model is not enabled at /usr/share/perl5/PVE/QemuServer/PCI.pm line 510.")
    return None if given.get("mdev") else found


def _resolve_mapping(world: World, name: str, node: str) -> list[str]:
    found = entries_on(world, "pci", name, node)
    if not found:
        raise PveError(f"PCI device mapping not found for '{name}'")
    for entry in found:
        problem = problem_of(world, "pci", name, entry)
        if problem is not None:
            raise PveError(f"PCI device mapping invalid (hardware probably changed): {problem}")
    return [str(entry["path"]) for entry in found]


def _find(place: str) -> list[str]:
    """Return the devices whose address begins with a text, the domain of which may be left out."""
    found = [str(device["id"]) for device in PCI_DEVICES]
    found = [ident for ident in found if ident.startswith((place, f"0000:{place}"))]
    if not found:
        raise PveError(f"no PCI device found for '{place}'")
    return found


def _in_use(world: World, guest: Document) -> dict[str, int]:
    """Return which devices of a VM's node other VMs that run have."""
    taken: dict[str, int] = {}
    for other in world.guests.on_node(str(guest["node"]), "qemu"):
        if other["vmid"] == guest["vmid"] or other["status"] != "running":
            continue
        for device in other["run"].get("pci") or _devices_of(world, other):
            taken[device] = int(other["vmid"])
    return taken


def _devices_of(world: World, guest: Document) -> list[str]:
    """Return the devices of a VM that a seed has put there running."""
    found: list[str] = []
    for key in _keys(guest["config"], "hostpci"):
        try:
            alternatives = _alternatives(world, guest["config"], str(guest["node"]), key)
        except PveError:
            continue
        found += alternatives[0] if alternatives else []
    return found


def _keys(config: Mapping[str, Any], kind: str) -> Iterator[str]:
    found = [key for key in config if re.fullmatch(rf"{kind}\d+", key)]
    return iter(sorted(found, key=lambda key: int(key.removeprefix(kind))))


def _parse(world: World, name: str, text: str) -> Mapping[str, Any]:
    schema = world.facts.schema(_DECLARED_AT, name)["format"]
    return properties.parse(PROPERTY_FORMATS[schema] if isinstance(schema, str) else schema, text)
