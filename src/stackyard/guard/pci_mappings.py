"""Whether the entries of PCI mappings are what nodes have: Proxmox starts no guest with one that is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind
from stackyard.clients.proxmox import quote
from stackyard.guard.facts import ApiRead
from stackyard.guard.findings import Finding
from stackyard.render.objects import address_of_object
from stackyard.render.references import short_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.desired import ClusterObject
    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import Facts
    from stackyard.guard.implied import ImpliedCalls

__all__ = ["ask_pci_mappings", "find_mapping_problem", "find_pci_mappings", "pci_details_of", "read_entry"]

OTHER_DEVICE = Kind(
    code="E-GUARD-MAPPING",
    summary="A PCI mapping is not the device that its node has",
    remedy="Write the values that the finding names: Proxmox compares all of them when a guest starts. "
    "`pvesh get /nodes/NODE/hardware/pci --verbose 1` lists them on the node.",
)
_PCI = "hardware_mapping_pci"
# What Proxmox calls the attributes of an entry.
_NAMES = {"iommugroup": "iommu_group", "subsystem-id": "subsystem_id"}


def pci_details_of(node: str) -> ApiRead:
    """Return the question for all PCI devices of a node, with the ids of their boards."""
    return ApiRead(f"/nodes/{quote(node)}/hardware/pci", (("pci-class-blacklist", ""), ("verbose", "1")))


def read_entry(text: str) -> dict[str, str]:
    """Return an entry of a mapping as the API has it, by the attributes of its resource."""
    found = (part.partition("=")[::2] for part in text.split(","))
    return {_NAMES.get(key, key): value for key, value in found}


def find_mapping_problem(entry: Mapping[str, Any], facts: Facts) -> str:
    """Return what of an entry is not as its node has it, as a sentence; empty where nothing is known to be.

    Args:
        entry: The attributes of the entry.
        facts: What the nodes tell.
    """
    node, path = str(entry.get("node")), str(entry.get("path"))
    question = pci_details_of(node)
    if not isinstance(facts.answers.get(question), list):
        return ""
    devices = {str(row.get("id")): row for row in facts.rows(question)}
    for number, part in enumerate(path.split(";")):
        # A whole device is known by its first function.
        place = part if "." in part else f"{part}.0"
        if place not in devices:
            return f"{node} has no PCI device {place}."
        wanted = _describe(devices[place], with_group=number == 0)
        wrong = {key: value for key, value in wanted.items() if _text(entry.get(key)) != value}
        if wrong:
            said = ", ".join(f"`{key}` {value}{_instead(entry.get(key))}" for key, value in wrong.items())
            return f"{place} of {node} has {said}."
    return ""


def _describe(device: Mapping[str, Any], *, with_group: bool) -> dict[str, str]:
    """Return what Proxmox expects an entry to say of a device."""
    found = {"id": f"{_hex(device.get('vendor'))}:{_hex(device.get('device'))}"}
    # Without an IOMMU, the group is -1 and not compared.
    group = device.get("iommugroup")
    if with_group and group is not None and int(group) >= 0:
        found["iommu_group"] = str(int(group))
    if device.get("subsystem_vendor") and device.get("subsystem_device"):
        board = f"{_hex(device['subsystem_vendor'])}:{_hex(device['subsystem_device'])}"
        found["subsystem_id"] = board
    return found


def _hex(value: Any) -> str:
    return str(value).removeprefix("0x").lower()


def _text(value: Any) -> str:
    return "" if value is None else str(value).lower()


def _instead(said: Any) -> str:
    return ", which the entry lacks" if said is None else f" and not {said}"


def _list_new(implied: ImpliedCalls) -> Iterator[ClusterObject]:
    for one in implied.desired.objects:
        if short_type(one.key.type) == _PCI and address_of_object(one.key) not in implied.unchanged:
            yield one


def ask_pci_mappings(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask for the PCI devices of the nodes that a mapping is on."""
    online = {node.name for node in cluster.nodes if node.is_online}
    for one in _list_new(implied):
        for entry in one.attributes.get("map") or ():
            if entry["node"] in online:
                yield pci_details_of(entry["node"])


def find_pci_mappings(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report entries of mappings that are not what their node has."""
    for one in _list_new(implied):
        for index, entry in enumerate(one.attributes.get("map") or ()):
            problem = find_mapping_problem(entry, facts)
            if problem:
                yield Finding(
                    kind=OTHER_DEVICE,
                    detail=f"The PCI mapping {one.key.name}: {problem}",
                    label=address_of_object(one.key),
                    field=("map", index),
                )
