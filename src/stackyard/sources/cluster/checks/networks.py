"""Networks must not overlap."""

from __future__ import annotations

import itertools
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.sources.cluster.resolve import DEFAULTS, is_virtual

if TYPE_CHECKING:
    from stackyard.sources.cluster.input import ClusterInput

__all__ = ["check_networks"]

OVERLAP = Kind(
    code="E-CLUSTER-OVERLAP",
    summary="Two networks overlap",
    remedy="Choose networks that have no address in common: nodes, pods and services each need their own.",
)
NO_MAINTENANCE_ADDRESS = Kind(
    code="W-CLUSTER-VLAN",
    summary="A node has no static address before Talos is configured",
    remedy=(
        "Set `proxmox_vlan_mode: true`: Proxmox VE then tags the VLAN, and nodes have their address from the "
        "start. Otherwise let DHCP of the untagged network give them theirs."
    ),
    severity=Severity.WARNING,
)
_NAMES = ("node_cidr", "cluster_pod_cidr", "cluster_svc_cidr", "cilium_lb_pool_cidr")


def check_networks(read: ClusterInput, found: Diagnostics) -> None:
    """Refuse networks that have addresses in common, the built-in ones included."""
    _check_vlan(read, found)
    networks = {name: network for name in _NAMES if (network := _find(read, name)) is not None}
    for (first, one), (second, other) in itertools.combinations(networks.items(), 2):
        # Addresses for services of type LoadBalancer may be part of the network of the nodes.
        if not one.overlaps(other) or (first, second) == ("node_cidr", "cilium_lb_pool_cidr"):
            continue
        given = [name for name in (second, first) if read.is_given(name)]
        places = [read.places.place(name) for name in given]
        names = [read.places.name(name) for name in (first, second)]
        built_in = "" if len(given) == 2 else " (the built-in one)"
        detail = f"`{names[0]}` {one} and `{names[1]}` {other}{built_in} overlap."
        found.add(OVERLAP, detail, places[0] if places else None, also=tuple(places[1:]))


def _check_vlan(read: ClusterInput, found: Diagnostics) -> None:
    fields = read.fields
    if fields.node_vlan_tag is None or fields.proxmox_vlan_mode or not is_virtual(fields):
        return
    tag = read.places.name("node_vlan_tag")
    found.add(
        NO_MAINTENANCE_ADDRESS,
        f"Talos joins the VLAN of `{tag}` when it is configured; before, nodes are in the untagged network.",
        read.places.place("node_vlan_tag"),
    )


def _find(read: ClusterInput, name: str) -> IPv4Network | None:
    if read.is_wrong(name):
        return None
    value: IPv4Network | str | None = getattr(read.fields, name)
    value = DEFAULTS.get(name) if value is None else value
    return None if value is None else IPv4Network(value)
