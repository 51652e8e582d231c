"""The fields of a cluster with their defaults, as plain values for templates: no secret is among them."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Any

from stackyard.sources.cluster.resolve import choose_size, is_virtual

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.sources.cluster.input import ClusterInput
    from stackyard.sources.cluster.resolve import Choice

__all__ = ["list_values"]

_SIZES = {
    "proxmox_vm_defaults": "",
    "proxmox_vm_controller_defaults": "controller",
    "proxmox_vm_worker_defaults": "worker",
}


def list_values(
    read: ClusterInput, chosen: Mapping[str, Any], nodes: Sequence[Mapping[str, Choice]]
) -> dict[str, Any]:
    """Return every field by its name in cluster.yaml, and the tables of a cluster.toml beside them."""
    values: dict[str, Any] = {**read.tables, **read.given}
    values.update({name: to_plain(value) for name, value in chosen.items() if "." not in name})
    values["proxmox_vm_advanced"] = {
        name.partition(".")[2]: to_plain(value) for name, value in chosen.items() if "." in name
    }
    for name, role in _SIZES.items():
        sizes = choose_size(read.fields, role, None, 0)
        values[name] = {key: choice.value for key, choice in sizes.items()}
    if read.fields.node_vlan_tag is not None:
        values["node_vlan_tag"] = read.fields.node_vlan_tag
    values["infrastructure_enabled"] = is_virtual(read.fields)
    values["nodes"] = [{name: to_plain(choice.value) for name, choice in node.items()} for node in nodes]
    return values


def to_plain(value: Any) -> Any:
    """Return a value as a template takes it: addresses as text, tuples as lists."""
    if isinstance(value, IPv4Address | IPv4Network):
        return str(value)
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value
