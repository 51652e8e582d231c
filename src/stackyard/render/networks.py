"""Bridges, VLANs and the SDN as resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.desired import SimpleZone, VlanZone, VxlanZone
from stackyard.render.names import address, label
from stackyard.render.references import (
    BRIDGE,
    SUBNET,
    VLAN,
    VNET,
    interface_label,
    subnet_label,
    zone_type,
)
from stackyard.render.terms import Expression, Json, expression, present

if TYPE_CHECKING:
    from stackyard.desired import Bridge, Desired, Subnet, Vlan, Vnet, Zone

__all__ = ["APPLIER", "FINALIZER", "SDN", "network_resources"]

# How the types of all parts of the SDN begin.
SDN = "proxmox_sdn_"
APPLIER = "proxmox_sdn_applier"
FINALIZER = f"{APPLIER}.removal"


def network_resources(desired: Desired) -> dict[str, dict[str, Json]]:
    """Return the resources by type and label."""
    resources: dict[str, dict[str, Json]] = {
        BRIDGE: {interface_label(bridge): _bridge(bridge) for bridge in desired.bridges},
        VLAN: {interface_label(vlan): _vlan(vlan, desired) for vlan in desired.vlans},
    }
    for zone in desired.zones:
        resources.setdefault(zone_type(zone), {})[label(zone.name)] = _zone(zone)
    resources[VNET] = {label(vnet.name): _vnet(vnet, desired) for vnet in desired.vnets}
    resources[SUBNET] = {subnet_label(s): _subnet(s, desired) for s in desired.subnets}
    resources[APPLIER] = _appliers(desired)
    return {kind: found for kind, found in resources.items() if found}


def _bridge(bridge: Bridge) -> dict[str, Json]:
    return present({**_interface(bridge), "ports": bridge.ports, "vlan_aware": bridge.vlan_aware})


def _vlan(vlan: Vlan, desired: Desired) -> dict[str, Json]:
    parent = vlan.interface or vlan.name.partition(".")[0]
    below = [
        f"{BRIDGE}.{interface_label(bridge)}"
        for bridge in desired.bridges
        if (bridge.node, bridge.name) == (vlan.node, parent)
    ]
    below += [
        address(one.key.type, one.key.name)
        for one in desired.objects
        if (one.attributes.get("node_name"), one.attributes.get("name")) == (vlan.node, parent)
    ]
    return present(
        {**_interface(vlan), "interface": vlan.interface, "vlan": vlan.tag, "depends_on": tuple(below)}
    )


def _interface(interface: Bridge | Vlan) -> dict[str, Json]:
    return {
        "node_name": interface.node,
        "name": interface.name,
        "address": interface.address4,
        "gateway": interface.gateway4,
        "address6": interface.address6,
        "gateway6": interface.gateway6,
        "mtu": interface.mtu,
        "autostart": interface.autostart,
        "comment": interface.comment,
    }


def _zone(zone: Zone) -> dict[str, Json]:
    own: dict[str, Json] = {}
    if isinstance(zone, SimpleZone):
        own = {"dhcp": zone.dhcp}
    elif isinstance(zone, VlanZone):
        own = {"bridge": zone.bridge}
    elif isinstance(zone, VxlanZone):
        own = {"peers": zone.peers}
    return present(
        {
            "id": zone.name,
            "nodes": zone.nodes,
            "mtu": zone.mtu,
            "dns": zone.dns,
            "reverse_dns": zone.reverse_dns,
            "dns_zone": zone.dns_zone,
            "ipam": zone.ipam,
            **own,
            "depends_on": (FINALIZER,),
        }
    )


def _vnet(vnet: Vnet, desired: Desired) -> dict[str, Json]:
    return present(
        {
            "id": vnet.name,
            "zone": _zone_of(vnet, desired),
            "tag": vnet.tag,
            "alias": vnet.alias,
            "vlan_aware": vnet.vlan_aware or None,
            "isolate_ports": vnet.isolate_ports or None,
            "depends_on": (FINALIZER,),
        }
    )


def _zone_of(vnet: Vnet, desired: Desired) -> str | Expression:
    for zone in desired.zones:
        if zone.name == vnet.zone:
            return expression(f"{address(zone_type(zone), zone.name)}.id")
    for one in desired.objects:
        if one.key.type.startswith(f"{SDN}zone_") and one.key.name == vnet.zone:
            return expression(f"{address(one.key.type, one.key.name)}.id")
    return vnet.zone


def _subnet(subnet: Subnet, desired: Desired) -> dict[str, Json]:
    is_ours = any(vnet.name == subnet.vnet for vnet in desired.vnets) or any(
        (one.key.type, one.key.name) == (VNET, subnet.vnet) for one in desired.objects
    )
    span = subnet.dhcp_range
    return present(
        {
            "vnet": expression(f"{address(VNET, subnet.vnet)}.id") if is_ours else subnet.vnet,
            "cidr": subnet.cidr,
            "gateway": subnet.gateway,
            "snat": subnet.snat or None,
            "dhcp_range": span and {"start_address": span.start, "end_address": span.end},
            "dhcp_dns_server": subnet.dhcp_dns_server,
            "dns_zone_prefix": subnet.dns_zone_prefix,
            "depends_on": (FINALIZER,),
        }
    )


def _appliers(desired: Desired) -> dict[str, Json]:
    """Return what makes changes of the SDN take effect: one after all changes, one after all removals."""
    parts = [
        *(address(zone_type(zone), zone.name) for zone in desired.zones),
        *(address(VNET, vnet.name) for vnet in desired.vnets),
        *(f"{SUBNET}.{subnet_label(subnet)}" for subnet in desired.subnets),
        *(address(one.key.type, one.key.name) for one in desired.objects if one.key.type.startswith(SDN)),
    ]
    if not parts:
        return {}
    return {
        "sdn": {"depends_on": parts, "lifecycle": [{"replace_triggered_by": parts}]},
        "removal": {"on_create": False},
    }
