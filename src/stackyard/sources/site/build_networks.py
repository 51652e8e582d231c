"""The networks that an env makes, as fields of the `Desired` model."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.sources.site.addresses import Interface
from stackyard.sources.site.entities.networks import BridgeNetwork, SdnNetwork, VlanNetwork
from stackyard.sources.site.hosts import node_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stackyard.sources.site.load import Site
    from stackyard.sources.site.networks import DeclaredNetwork, Networks

__all__ = ["build_networks"]

ZONE_DIFFERS = Kind(
    code="E-SITE-ZONE",
    summary="Networks of one zone differ in what the zone is",
    remedy="Write the same `type`, `peers`, `bridge`, `nodes` and `mtu` for all networks of a zone.",
)
NO_PEERS = Kind(
    code="E-SITE-PEERS",
    summary="A VXLAN has no peers",
    remedy="Write `peers` with the addresses of the nodes, or give each node file its `ip`.",
)


def build_networks(
    site: Site, networks: Networks, nodes: Sequence[str], found: Diagnostics, *, is_shared: bool
) -> dict[str, list[dict[str, Any]]]:
    """Return the networks to make: those of an env, which are its own, or those of the site.

    Args:
        site: The site.
        networks: All that there are.
        nodes: The names that Proxmox has for the nodes to make bridges on.
        found: Takes the findings.
        is_shared: Whether to make those of the site, and not those of the env.
    """
    own = [network for network in networks.declared.values() if network.is_shared is is_shared]
    made: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    zones: dict[str, tuple[dict[str, Any], DeclaredNetwork]] = {}
    for network in own:
        if isinstance(network.model, SdnNetwork):
            _add_sdn(site, networks, network, made, zones, found)
        else:
            _add_interfaces(network, nodes, made)
    made["zones"] = [zone for zone, _ in zones.values()]
    return dict(made)


def _add_interfaces(
    network: DeclaredNetwork, nodes: Iterable[str], made: dict[str, list[dict[str, Any]]]
) -> None:
    model = network.model
    if isinstance(model, SdnNetwork) or not model.create:
        return
    for node in nodes:
        fields: dict[str, Any] = {"node": node, "comment": model.description, "mtu": model.mtu}
        if model.address is not None:
            version = Interface.parse(model.address).version
            fields[f"address{version}"] = model.address
        if isinstance(model, BridgeNetwork):
            more = {"name": model.bridge, "ports": list(model.ports), "vlan_aware": model.vlan_aware}
            made["bridges"].append({**fields, **more})
        elif isinstance(model, VlanNetwork):
            more = {"name": f"{model.bridge}.{model.tag}", "interface": model.bridge, "tag": model.tag}
            made["vlans"].append({**fields, **more})


def _add_sdn(
    site: Site,
    networks: Networks,
    network: DeclaredNetwork,
    made: dict[str, list[dict[str, Any]]],
    zones: dict[str, tuple[dict[str, Any], DeclaredNetwork]],
    found: Diagnostics,
) -> None:
    model = network.model
    assert isinstance(model, SdnNetwork)  # noqa: S101 - the caller looked
    zone = _zone(site, network, model, found)
    known, first = zones.setdefault(model.zone, (zone, network))
    if known != zone:
        detail = f"The zone '{model.zone}' is another in the network '{first.name}'."
        found.add(ZONE_DIFFERS, detail, network.place("zone"))
    made["vnets"].append(
        {"name": network.bridge, "zone": model.zone, "tag": model.tag, "alias": model.description}
    )
    if model.cidr is not None:
        made["subnets"].append(
            {
                "vnet": network.bridge,
                "cidr": model.cidr,
                "gateway": networks.gateway_of(network),
                "snat": model.snat,
                "dhcp_range": model.dhcp_range and model.dhcp_range.model_dump(),
                "dhcp_dns_server": model.dhcp_dns_server,
            }
        )


def _zone(site: Site, network: DeclaredNetwork, model: SdnNetwork, found: Diagnostics) -> dict[str, Any]:
    zone: dict[str, Any] = {
        "name": model.zone,
        "type": "vlan" if model.type == "vlan-zone" else model.type,
        "nodes": list(model.nodes),
        "mtu": model.mtu,
    }
    if model.type == "vxlan":
        zone["peers"] = list(model.peers) or _addresses(site)
        if not zone["peers"]:
            found.add(
                NO_PEERS, f"No node of the site says its address, for '{network.name}'.", network.place()
            )
    if model.type == "vlan-zone":
        zone["bridge"] = model.bridge
    if model.type == "simple" and model.dhcp:
        zone["dhcp"] = "dnsmasq"
    return zone


def _addresses(site: Site) -> list[str]:
    found = (node_address(node) for node in site.nodes.values() if node.model.parent_node is None)
    return sorted({address for address in found if address is not None})
