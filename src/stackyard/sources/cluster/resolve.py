"""Which value counts: that of the node, then of its role, then of the cluster, then the built-in one.

Every value is chosen key by key, and the choice remembers its level and its field, for `cluster explain`.
"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.sources.cluster.model import VmHardware
from stackyard.sources.cluster.spread import spread_nodes
from stackyard.talosapi.schematic import MetaValue, Overlay, Schematic, schematic_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.cluster.fields import ClusterFields, NodeFields, SchematicFields
    from stackyard.sources.cluster.input import ClusterInput
    from stackyard.sources.site.document import Key

__all__ = [
    "DEFAULTS",
    "SIZES",
    "Choice",
    "Level",
    "choose_cluster_values",
    "choose_node_values",
    "choose_schematic",
    "choose_size",
    "convert_schematic",
    "is_virtual",
]


class Level(enum.StrEnum):
    """Where a value was chosen."""

    NODE = "node"
    ROLE = "role"
    CLUSTER = "cluster"
    BUILT_IN = "built-in"
    COMPUTED = "computed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A value, and why it is that one.

    Attributes:
        value: The value.
        level: The level that it was chosen at.
        keys: The field that says it; None for one that no file has.
        why: What it was computed from, for a reader.
    """

    value: Any
    level: Level
    keys: tuple[Key, ...] | None = None
    why: str = ""


# Values of the cluster that the input does not give.
DEFAULTS: Mapping[str, Any] = {
    "node_dns_servers": ("1.1.1.1", "1.0.0.1"),
    "node_ntp_servers": ("162.159.200.1", "162.159.200.123"),
    "cluster_api_tls_sans": (),
    "cluster_pod_cidr": "10.42.0.0/16",
    "cluster_svc_cidr": "10.43.0.0/16",
    "proxmox_vlan_mode": False,
    "registry_mirrors": {},
    "node_labels": {},
    "repository_branch": "main",
    "repository_visibility": "public",
    "talos_version": "1.12.0",
    "kubernetes_version": "1.35.0",
    "talos_factory": "https://factory.talos.dev",
    "talos_image": "iso",
    "talos_arch": "amd64",
    "proxmox_insecure": False,
    "proxmox_iso_storage": "local",
    "proxmox_disk_storage": "local-lvm",
}
# The built-in sizes of VMs: of all, and of each role.
SIZES: Mapping[str, Mapping[str, int]] = {
    "": {"cores": 4, "sockets": 1, "memory": 8192, "disk_size": 128},
    "controller": {"cores": 4, "sockets": 1, "memory": 8192, "disk_size": 64},
    "worker": {"cores": 8, "sockets": 1, "memory": 16384, "disk_size": 256},
}
_OF_NODE: Mapping[str, Any] = {
    "mtu": None,
    "secureboot": False,
    "encrypt_disk": False,
    "kernel_modules": (),
    "node_labels": {},
    "vm_id": None,
    "vm_startup_delay": 15,
    "vm_shutdown_delay": 60,
}
_PLAIN_OF_NODE = ("name", "address", "controller", "disk", "mac_addr")
# A host starts its nodes after what they need, which takes the first places.
_FIRST_STARTUP_ORDER = 4
_HIGHEST_STARTUP_ORDER = 100


def is_virtual(fields: ClusterFields) -> bool:
    """Return whether the nodes are VMs on Proxmox, and not machines of their own."""
    return fields.proxmox_api_url is not None


def choose_cluster_values(read: ClusterInput) -> dict[str, Choice]:
    """Return the values of the cluster that have a built-in default."""
    chosen = {}
    for name, default in DEFAULTS.items():
        value = getattr(read.fields, name)
        chosen[name] = (
            Choice(value=default, level=Level.BUILT_IN)
            if value is None
            else Choice(value=value, level=Level.CLUSTER, keys=(name,))
        )
    chosen["node_default_gateway"] = _gateway(read.fields)
    for name, default in _hardware_defaults().items():
        given = getattr(read.fields.proxmox_vm_advanced, name, None)
        chosen[f"proxmox_vm_advanced.{name}"] = (
            Choice(value=default, level=Level.BUILT_IN)
            if given is None
            else Choice(value=given, level=Level.CLUSTER, keys=("proxmox_vm_advanced", name))
        )
    return chosen


def _gateway(fields: ClusterFields) -> Choice:
    if fields.node_default_gateway is not None:
        return Choice(value=fields.node_default_gateway, level=Level.CLUSTER, keys=("node_default_gateway",))
    network = fields.node_cidr
    first = None if network is None else network.network_address + 1
    return Choice(
        value=first, level=Level.COMPUTED, keys=("node_cidr",), why="the first address of the network"
    )


def _hardware_defaults() -> dict[str, Any]:
    hardware = VmHardware()
    return {name: getattr(hardware, name) for name in VmHardware.__slots__}


def choose_size(fields: ClusterFields, role: str, node: NodeFields | None, index: int) -> dict[str, Choice]:
    """Return the size of a VM, key by key.

    Args:
        fields: The fields of the cluster.
        role: `controller` or `worker`; empty for what all VMs have in common.
        node: The node, where it is one.
        index: Its place among the nodes.
    """
    return {key: _choose_size_key(fields, role, node, (index, key)) for key in SIZES[role]}


def _choose_size_key(
    fields: ClusterFields, role: str, node: NodeFields | None, at: tuple[int, str]
) -> Choice:
    index, key = at
    own = getattr(node, f"vm_{key}", None)
    if own is not None:
        return Choice(value=own, level=Level.NODE, keys=("nodes", index, f"vm_{key}"))
    for name, level in ((f"proxmox_vm_{role}_defaults", Level.ROLE), ("proxmox_vm_defaults", Level.CLUSTER)):
        value = getattr(getattr(fields, name, None), key, None)
        if value is not None:
            return Choice(value=value, level=level, keys=(name, key))
    return Choice(value=SIZES[role][key], level=Level.BUILT_IN)


def choose_node_values(read: ClusterInput) -> list[dict[str, Choice]]:
    """Return the values of every node."""
    hosts = spread_nodes(read)
    return [_choose_node(read, index, hosts[index]) for index in range(len(read.nodes))]


def _choose_node(read: ClusterInput, index: int, host: str | None) -> dict[str, Choice]:
    node, fields = read.nodes[index], read.fields
    chosen = {
        name: Choice(value=getattr(node, name), level=Level.NODE, keys=("nodes", index, name))
        for name in _PLAIN_OF_NODE
    }
    chosen["schematic_id"] = choose_schematic(read, index)[0]
    for name, default in _OF_NODE.items():
        value = getattr(node, name)
        chosen[name] = (
            Choice(value=default, level=Level.BUILT_IN)
            if value is None
            else Choice(value=value, level=Level.NODE, keys=("nodes", index, name))
        )
    if fields.node_labels or node.node_labels:
        chosen["node_labels"] = _merge_labels(fields, node, index)
    if not is_virtual(fields):
        return {name: choice for name, choice in chosen.items() if not name.startswith("vm_")}
    chosen["proxmox_node"] = _choose_host(read, index, host)
    role = "controller" if node.controller else "worker"
    sizes = choose_size(fields, role, node, index)
    chosen.update({f"vm_{key}": choice for key, choice in sizes.items()})
    chosen["vm_startup_order"] = _choose_startup_order(node, index)
    return chosen


def _merge_labels(fields: ClusterFields, node: NodeFields, index: int) -> Choice:
    merged = {**(fields.node_labels or {}), **(node.node_labels or {})}
    if node.node_labels:
        return Choice(value=merged, level=Level.NODE, keys=("nodes", index, "node_labels"))
    return Choice(value=merged, level=Level.CLUSTER, keys=("node_labels",))


def _choose_host(read: ClusterInput, index: int, spread: str | None) -> Choice:
    node, fields = read.nodes[index], read.fields
    for name in ("proxmox_node", "target_node"):
        if getattr(node, name) is not None:
            return Choice(value=getattr(node, name), level=Level.NODE, keys=("nodes", index, name))
    if spread is not None:
        keys = ("proxmox_nodes",)
        return Choice(value=spread, level=Level.CLUSTER, keys=keys, why="spread over the Proxmox nodes")
    for name in ("proxmox_node", "target_node"):
        if getattr(fields, name) is not None:
            return Choice(value=getattr(fields, name), level=Level.CLUSTER, keys=(name,))
    return Choice(value=None, level=Level.BUILT_IN)


def _choose_startup_order(node: NodeFields, index: int) -> Choice:
    if node.vm_startup_order is not None:
        keys = ("nodes", index, "vm_startup_order")
        return Choice(value=node.vm_startup_order, level=Level.NODE, keys=keys)
    order = min(index + _FIRST_STARTUP_ORDER, _HIGHEST_STARTUP_ORDER)
    return Choice(value=order, level=Level.COMPUTED, why="its place among the nodes")


def choose_schematic(read: ClusterInput, index: int) -> tuple[Choice, Schematic | None]:
    """Return the id of the schematic of a node, and what is in it where that is known."""
    node, fields = read.nodes[index], read.fields
    levels = (
        (Level.NODE, node.schematic_id, node.schematic, ("nodes", index, "schematic_id"), "schematic"),
        (Level.CLUSTER, fields.schematic_id, fields.talos_schematic, ("schematic_id",), "talos_schematic"),
    )
    for level, given, content, keys, other in levels:
        known = None if content is None else convert_schematic(content)
        if given is not None:
            return Choice(value=given, level=level, keys=keys), known
        if known is not None:
            place = (*keys[:-1], other)
            why = f"computed from {other}"
            return Choice(value=_known_id(known), level=level, keys=place, why=why), known
    return Choice(value=None, level=Level.BUILT_IN), None


def _known_id(schematic: Schematic) -> str:
    """Return the id of a schematic, which all nodes of a cluster may share."""
    try:
        return _remember_id(schematic)
    except TypeError:
        # The options of an overlay are any YAML, which no cache takes.
        return schematic_id(schematic)


_remember_id = functools.lru_cache(maxsize=64)(schematic_id)


def convert_schematic(fields: SchematicFields) -> Schematic:
    """Return a schematic as its id is computed from it."""
    overlay, boot, disk = fields.overlay, fields.secureboot, fields.disk_image
    return Schematic(
        extensions=fields.extensions or (),
        extra_kernel_args=fields.extra_kernel_args or (),
        meta=tuple(MetaValue(key=one.key, value=one.value) for one in fields.meta or ()),
        overlay=None
        if overlay is None
        else Overlay(image=overlay.image, name=overlay.name, options=overlay.options or {}),
        bootloader=fields.bootloader or "",
        enroll_keys="" if boot is None else boot.enroll_keys or "",
        well_known_certificates=boot is not None and bool(boot.include_well_known_certificates),
        sector_size=0 if disk is None else disk.sector_size or 0,
        embedded_machine_configuration=fields.embedded_machine_configuration or "",
        owner=fields.owner or "",
    )
