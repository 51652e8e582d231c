"""Addresses must be inside of the network of the nodes, and each belongs to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stackyard.base.diagnostics import Diagnostics, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator
    from ipaddress import IPv4Address

    from stackyard.base.errors import Location
    from stackyard.sources.cluster.input import ClusterInput

__all__ = ["check_addresses"]

OUTSIDE = Kind(
    code="E-CLUSTER-OUTSIDE",
    summary="An address is outside of the network of the nodes",
    remedy="Choose an address inside of node_cidr, or correct node_cidr.",
)
NOT_A_HOST = Kind(
    code="E-CLUSTER-NOT-A-HOST",
    summary="No host can have this address",
    remedy="Choose another address: the first and the last one of a network belong to the network itself.",
)
SAME_ADDRESS = Kind(
    code="E-CLUSTER-SAME-ADDRESS",
    summary="An address is used twice",
    remedy="Give one of the two another address.",
)
# Those that Cilium announces: without BGP, only in the network of the nodes.
_ANNOUNCED = ("cluster_gateway_addr", "cluster_dns_gateway_addr", "cloudflare_gateway_addr")
_SMALLEST_WITH_BROADCAST = 30


class _Use(NamedTuple):
    address: IPv4Address
    name: str
    where: Location
    is_inside: bool


def check_addresses(read: ClusterInput, found: Diagnostics) -> None:
    """Refuse addresses that do not fit the network of the nodes, and those that are used twice."""
    network = read.fields.node_cidr
    known: dict[IPv4Address, _Use] = {}
    for use in _list_uses(read):
        if (other := known.setdefault(use.address, use)) is not use:
            detail = f"{use.address} is `{other.name}` and `{use.name}`."
            found.add(SAME_ADDRESS, detail, use.where, also=(other.where,))
        if network is None or not use.is_inside:
            continue
        if use.address not in network:
            found.add(OUTSIDE, f"`{use.name}` {use.address} is not in {network}.", use.where)
        elif network.prefixlen <= _SMALLEST_WITH_BROADCAST and use.address in (
            network.network_address,
            network.broadcast_address,
        ):
            found.add(NOT_A_HOST, f"`{use.name}` {use.address} is the first or last of {network}.", use.where)


def _list_uses(read: ClusterInput) -> Iterator[_Use]:
    fields, places = read.fields, read.places
    if fields.node_default_gateway is not None:
        name = "node_default_gateway"
        yield _Use(fields.node_default_gateway, places.name(name), places.place(name), is_inside=True)
    elif fields.node_cidr is not None and fields.node_cidr.num_addresses > 1:
        first = fields.node_cidr.network_address + 1
        name = f"{places.name('node_default_gateway')} (the first of the network)"
        yield _Use(first, name, places.place("node_cidr"), is_inside=False)
    if fields.cluster_api_addr is not None:
        name = "cluster_api_addr"
        yield _Use(fields.cluster_api_addr, places.name(name), places.place(name), is_inside=True)
    has_bgp = fields.cilium_bgp_router_addr is not None
    for name in _ANNOUNCED:
        address: IPv4Address | None = getattr(fields, name)
        if address is not None:
            yield _Use(address, places.name(name), places.place(name), is_inside=not has_bgp)
    for index, node in enumerate(read.nodes):
        if node.address is not None:
            keys = ("nodes", index, "address")
            yield _Use(node.address, places.name(*keys), places.place(*keys), is_inside=True)
