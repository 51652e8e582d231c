"""Processors, CPU models, PCI devices and mappings that a guest needs and its node has to have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.desired import Vm
from stackyard.diagnostics import Kind
from stackyard.guard.facts import PERMISSIONS, cpu_models_of, mappings, pci_devices_of
from stackyard.guard.findings import Finding
from stackyard.render.terms import label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import Facts, Question
    from stackyard.guard.implied import Implied

__all__ = ["ask_cpu_models", "ask_devices", "find_cpu_models", "find_devices", "find_processors"]

TOO_MANY_CORES = Kind(
    code="E-PREFLIGHT-CPU",
    summary="A guest has more processors than its node",
    remedy="Give the guest fewer: Proxmox does not start it.",
)
NO_CPU_MODEL = Kind(
    code="E-GUARD-NO-SUCH-CPU",
    summary="A node does not know a CPU model",
    remedy="Correct `cpu.type`; models of the cluster's own begin with `custom-`.",
)
NO_DEVICE = Kind(
    code="E-GUARD-NO-SUCH-DEVICE",
    summary="A device, or the mapping of one, does not exist on a node",
    remedy="Correct the device, or add the mapping under Datacenter, Resource Mappings.",
)
_X86 = (None, "x86_64", "amd64")
_CUSTOM = "custom-"
_SEEING = ("Mapping.Use", "Mapping.Audit", "Mapping.Modify")


def _touched(implied: Implied, *attributes: str) -> Iterator[Vm]:
    """Return the virtual machines that are made, or of which one of these attributes changes."""
    for guest, changed in implied.touched_guests:
        if isinstance(guest, Vm) and (changed is None or not changed.isdisjoint(attributes)):
            yield guest


def find_processors(implied: Implied, facts: Facts) -> Iterator[Finding]:
    """Report virtual machines with more processors than their node."""
    for guest in _touched(implied, "cpu", "started"):
        node = facts.cluster.node(guest.node)
        has, cores = 0 if node is None else node.processors, guest.cpu.cores * guest.cpu.sockets
        if has and cores > has:
            yield Finding(
                kind=TOO_MANY_CORES,
                detail=f"{guest.name} has {cores} processors, and {guest.node} has {has}.",
                label=label(guest.key),
                field=("cpu", "cores"),
            )


def ask_cpu_models(implied: Implied, cluster: Cluster) -> Iterator[Question]:
    """Ask for the CPU models of the nodes."""
    for guest in _touched(implied, "cpu"):
        node = cluster.node(guest.node)
        if node is not None and node.is_online and guest.cpu.architecture in _X86:
            yield cpu_models_of(guest.node)
            if guest.cpu.type.startswith(_CUSTOM):
                yield PERMISSIONS


def find_cpu_models(implied: Implied, facts: Facts) -> Iterator[Finding]:
    """Report CPU models that a node does not offer."""
    for guest in _touched(implied, "cpu"):
        answer = facts.answers.get(cpu_models_of(guest.node))
        rows = answer if isinstance(answer, list) else []
        known = {str(row.get("name")) for row in rows}
        wanted = guest.cpu.type
        # Models of the cluster's own are listed only to those who may look at the nodes.
        is_hidden = wanted.startswith(_CUSTOM) and not facts.may(f"/nodes/{guest.node}", "Sys.Audit")
        if known and wanted not in known and guest.cpu.architecture in _X86 and not is_hidden:
            detail = f"{guest.name} has the CPU model {wanted}, which {guest.node} does not know."
            yield Finding(kind=NO_CPU_MODEL, detail=detail, label=label(guest.key), field=("cpu", "type"))


def ask_devices(implied: Implied, cluster: Cluster) -> Iterator[Question]:
    """Ask for the PCI devices of nodes and the mappings of the cluster."""
    for guest in _touched(implied, "hostpci", "usb"):
        node = cluster.node(guest.node)
        if node is None or not node.is_online:
            continue
        if any(pci.id is not None for pci in guest.pci_devices):
            yield pci_devices_of(guest.node)
        for kind, devices in (("pci", guest.pci_devices), ("usb", guest.usb_devices)):
            if any(device.mapping is not None for device in devices):
                yield from (mappings(kind), PERMISSIONS)


def find_devices(implied: Implied, facts: Facts) -> Iterator[Finding]:
    """Report PCI devices and mappings that are not there."""
    for guest in _touched(implied, "hostpci", "usb"):
        for index, pci in enumerate(guest.pci_devices):
            wrong = _pci(guest, pci.id, facts) or _mapping(guest, "pci", pci.mapping, facts)
            if wrong:
                yield _device(guest, wrong, ("pci_devices", index))
        for index, usb in enumerate(guest.usb_devices):
            wrong = _mapping(guest, "usb", usb.mapping, facts)
            if wrong:
                yield _device(guest, wrong, ("usb_devices", index))


def _device(guest: Vm, detail: str, field: tuple[str | int, ...]) -> Finding:
    return Finding(kind=NO_DEVICE, detail=detail, label=label(guest.key), field=field)


def _pci(guest: Vm, wanted: str | None, facts: Facts) -> str:
    rows = facts.answers.get(pci_devices_of(guest.node))
    if wanted is None or not isinstance(rows, list):
        return ""
    known = {str(row.get("id")) for row in rows}
    gone = [one for one in wanted.split(";") if not any(_is_part(one, device) for device in known)]
    if not gone:
        return ""
    return f"{guest.name} uses the PCI device {', '.join(gone)}, which {guest.node} does not have."


def _is_part(wanted: str, device: str) -> bool:
    """Tell whether a device is meant: by its whole address, or by one without domain or function."""
    whole = wanted if wanted.count(":") > 1 else f"0000:{wanted}"
    return device == whole or ("." not in whole and device.startswith(f"{whole}."))


def _mapping(guest: Vm, kind: str, wanted: str | None, facts: Facts) -> str:
    rows = facts.answers.get(mappings(kind))
    may_see = wanted is not None and facts.may(f"/mapping/{kind}/{wanted}", *_SEEING)
    if not may_see or not isinstance(rows, list):
        return ""
    said = f"{guest.name} uses the {kind.upper()} mapping {wanted}"
    found = next((row for row in rows if row.get("id") == wanted), None)
    if found is None:
        known = ", ".join(sorted(str(row.get("id")) for row in rows)) or "none"
        return f"{said}, which does not exist; there is {known}."
    return "" if guest.node in _nodes_of(found) else f"{said}, which has no device of {guest.node}."


def _nodes_of(mapping: dict[str, Any]) -> set[str]:
    entries = [str(entry).split(",") for entry in mapping.get("map", ())]
    return {part.removeprefix("node=") for entry in entries for part in entry if part.startswith("node=")}
