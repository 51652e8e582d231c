"""Processors, CPU flags, machine types and devices that a guest needs and its node has to have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind
from stackyard.base.suggestions import closest
from stackyard.desired import Vm
from stackyard.fields.properties import parse
from stackyard.guard.declared import PCI, USB
from stackyard.guard.facts import (
    cpu_flags_of,
    cpu_models_of,
    machines_of,
    mappings,
    pci_devices_of,
    rights_on,
)
from stackyard.guard.findings import Finding
from stackyard.guard.pci_mappings import find_mapping_problem, pci_details_of, read_entry
from stackyard.render.names import label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import ApiRead, Facts
    from stackyard.guard.implied import ImpliedCalls

__all__ = [
    "ask_cpu_flags",
    "ask_cpu_models",
    "ask_devices",
    "ask_machines",
    "find_cpu_flags",
    "find_cpu_models",
    "find_devices",
    "find_machines",
    "find_processors",
]

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
NO_CPU_FLAG = Kind(
    code="E-GUARD-NO-SUCH-CPU-FLAG",
    summary="A CPU flag is none that a guest may set",
    remedy="Correct `cpu.flags`; any other flag needs a CPU model of the cluster's own (`custom-NAME`).",
)
NO_MACHINE = Kind(
    code="E-GUARD-NO-SUCH-MACHINE",
    summary="A node does not have a machine type",
    remedy="Correct `machine`, or leave the version out (`q35`, `pc`) for the newest one of the node.",
)
_X86 = (None, "x86_64", "amd64")
# What the newest version of a type is called.
_ALIASES = {"i440fx": "pc", "q35": "q35", "virt": "virt"}
_CUSTOM = "custom-"
_SEEING = ("Mapping.Use", "Mapping.Audit", "Mapping.Modify")


def _list_touched_vms(implied: ImpliedCalls, *attributes: str) -> Iterator[Vm]:
    """Return the virtual machines that are created, or of which one of these attributes changes."""
    for guest, changed in implied.touched_guests:
        if isinstance(guest, Vm) and (changed is None or not changed.isdisjoint(attributes)):
            yield guest


def _is_hosts_own(guest: Vm) -> bool:
    """Return whether a machine has the architecture that nodes list their models, flags and types for."""
    return guest.cpu.architecture in _X86


def find_processors(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report virtual machines with more processors than their node."""
    for guest in _list_touched_vms(implied, "cpu", "started"):
        node = facts.cluster.node(guest.node)
        has, cores = 0 if node is None else node.processors, guest.cpu.cores * guest.cpu.sockets
        if has and cores > has:
            yield Finding(
                kind=TOO_MANY_CORES,
                detail=f"{guest.name} has {cores} processors, and {guest.node} has {has}.",
                label=label(guest.key),
                field=("cpu", "cores"),
            )


def ask_cpu_models(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask for the CPU models of the nodes."""
    for guest in _list_touched_vms(implied, "cpu"):
        node = cluster.node(guest.node)
        if node is not None and node.is_online and _is_hosts_own(guest):
            yield cpu_models_of(guest.node)
            if guest.cpu.type.startswith(_CUSTOM):
                yield from rights_on(f"/nodes/{guest.node}")


def find_cpu_models(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report CPU models that a node does not offer."""
    for guest in _list_touched_vms(implied, "cpu"):
        answer = facts.answers.get(cpu_models_of(guest.node))
        rows = answer if isinstance(answer, list) else []
        known = {str(row.get("name")) for row in rows}
        wanted = guest.cpu.type
        # Models of the cluster's own are listed only to those who may look at the nodes.
        is_hidden = wanted.startswith(_CUSTOM) and not facts.may(f"/nodes/{guest.node}", "Sys.Audit")
        if known and wanted not in known and _is_hosts_own(guest) and not is_hidden:
            detail = f"{guest.name} has the CPU model {wanted}, which {guest.node} does not know."
            yield Finding(kind=NO_CPU_MODEL, detail=detail, label=label(guest.key), field=("cpu", "type"))


def ask_cpu_flags(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask for the CPU flags that guests may set on the nodes."""
    for guest in _list_touched_vms(implied, "cpu"):
        node = cluster.node(guest.node)
        if node is not None and node.is_online and guest.cpu.flags and _is_hosts_own(guest):
            yield cpu_flags_of(guest.node)


def find_cpu_flags(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report CPU flags that Proxmox lets no guest set."""
    for guest in _list_touched_vms(implied, "cpu"):
        answer = facts.answers.get(cpu_flags_of(guest.node))
        rows = answer if isinstance(answer, list) else []
        known = {str(row.get("name")) for row in rows}
        for index, flag in enumerate(guest.cpu.flags):
            if known and flag[1:] not in known and _is_hosts_own(guest):
                detail = f"{guest.name} has the CPU flag {flag}; {guest.node} lets guests set "
                yield Finding(
                    kind=NO_CPU_FLAG,
                    detail=f"{detail}{', '.join(sorted(known))}.",
                    label=label(guest.key),
                    field=("cpu", "flags", index),
                )


def ask_devices(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask for the PCI devices of nodes and the mappings of the cluster."""
    for guest in _list_touched_vms(implied, "hostpci", "usb"):
        node = cluster.node(guest.node)
        if node is None or not node.is_online:
            continue
        if any(pci.id is not None for pci in guest.pci_devices):
            yield pci_devices_of(guest.node)
        for kind, devices in (("pci", guest.pci_devices), ("usb", guest.usb_devices)):
            for name in {device.mapping for device in devices} - {None}:
                yield mappings(kind)
                yield from rights_on(f"/mapping/{kind}/{name}")
                if kind == PCI:
                    yield pci_details_of(guest.node)


def ask_machines(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask for the machine types of the nodes."""
    for guest in _list_touched_vms(implied, "machine"):
        node = cluster.node(guest.node)
        if node is not None and node.is_online and guest.machine is not None and _is_hosts_own(guest):
            yield machines_of(guest.node)


def find_machines(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report machine types, and versions of them, that a node does not have."""
    for guest in _list_touched_vms(implied, "machine"):
        answer = facts.answers.get(machines_of(guest.node))
        rows = answer if isinstance(answer, list) else []
        wanted = _machine_type(guest.machine or "")
        if not wanted or not rows or not _is_hosts_own(guest) or _is_known_machine(wanted, rows):
            continue
        close = closest(wanted, (str(row.get("id")) for row in rows))
        said = f" There is {close}." if close else ""
        detail = f"{guest.name} has the machine type {wanted}, which {guest.node} does not have.{said}"
        yield Finding(kind=NO_MACHINE, detail=detail, label=label(guest.key), field=("machine",))


def _machine_type(text: str) -> str:
    """Return the type of `q35,viommu=intel` or `type=q35`; empty where only options are given."""
    return parse(text, "type").get("type", "")


def _is_known_machine(wanted: str, rows: list[Any]) -> bool:
    ids = {str(row.get("id")) for row in rows}
    bare = wanted.removesuffix(".pxe")
    base, _, revision = bare.partition("+")
    if base in {_ALIASES.get(str(row.get("type"))) for row in rows} or bare in ids:
        return True
    # Older versions of Proxmox list no revisions of their own.
    are_revisions_listed = any("+" in one for one in ids)
    return base in ids and (not revision or not are_revisions_listed or revision == "pve0")


def find_devices(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report PCI devices and mappings that are not there."""
    for guest in _list_touched_vms(implied, "hostpci", "usb"):
        for index, pci in enumerate(guest.pci_devices):
            wrong = _pci(guest, pci.id, facts) or _mapping(guest, PCI, pci.mapping, implied, facts)
            if wrong:
                yield _device(guest, wrong, ("pci_devices", index))
        for index, usb in enumerate(guest.usb_devices):
            wrong = _mapping(guest, USB, usb.mapping, implied, facts)
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
    """Return whether a device is meant: by its whole address, or by one without domain or function."""
    whole = wanted if wanted.count(":") > 1 else f"0000:{wanted}"
    return device == whole or ("." not in whole and device.startswith(f"{whole}."))


def _mapping(guest: Vm, kind: str, wanted: str | None, implied: ImpliedCalls, facts: Facts) -> str:
    rows = facts.answers.get(mappings(kind))
    may_see = wanted is not None and facts.may(f"/mapping/{kind}/{wanted}", *_SEEING)
    if wanted is None or not may_see or not isinstance(rows, list):
        return ""
    said = f"{guest.name} uses the {kind.upper()} mapping {wanted}"
    found = next((row for row in rows if row.get("id") == wanted), None)
    if found is None:
        names = sorted(str(row.get("id")) for row in rows)
        why = implied.declared.explain(kind, wanted, guest.node, names)
        return f"{said}, which does not exist; there is {', '.join(names) or 'none'}.{why}"
    entries = [read_entry(str(entry)) for entry in found.get("map", ())]
    mine = [entry for entry in entries if entry.get("node") == guest.node]
    if not mine:
        return f"{said}, which has no device of {guest.node}."
    # Proxmox takes any of the entries that is free.
    wrong = [find_mapping_problem(entry, facts) for entry in mine] if kind == PCI else []
    return f"{said}. {wrong[0]} Correct its entry." if wrong and all(wrong) else ""
