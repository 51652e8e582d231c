"""What a node has made of the zones: `/nodes/{node}/sdn`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.applied import read_applied
from pvelab.api.cluster.sdn.status import vnet_status, zone_statuses
from pvelab.api.nodes.network.files import load
from pvelab.server.problems import bad_parameter
from pvelab.server.routing import route
from pvelab.world.bridges import LOCAL_ZONE, SDN_LOCAL, links_up

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = ["index_status", "index_zone", "list_bridges", "list_content", "list_zone_status"]


@route("GET /nodes/{node}/sdn")
def index_status(_call: Call) -> Any:
    """List what there is of SDN on a node."""
    return [{"name": name} for name in ("fabrics", "vnets", "zones")]


@route("GET /nodes/{node}/sdn/zones")
def list_zone_status(call: Call) -> Any:
    """List the zones in force on a node, and whether the node has made them."""
    found = zone_statuses(call.store, call.node)
    return [{"zone": zone, "status": status} for zone, status in found.items()]


@route("GET /nodes/{node}/sdn/zones/{zone}")
def index_zone(_call: Call) -> Any:
    """List what there is of a zone on a node."""
    return [{"subdir": name} for name in ("content", "bridges", "ip-vrf")]


@route("GET /nodes/{node}/sdn/zones/{zone}/content")
def list_content(call: Call) -> Any:
    """List the virtual networks of a zone, and whether the node has made them."""
    zone = call.params["zone"]
    if zone not in zone_statuses(call.store, call.node):
        return []
    return [
        {"vnet": vnet, **vnet_status(call.store, call.node, vnet)}
        for vnet, section in sorted(read_applied(call.store, "vnets").items())
        if section["zone"] == zone
    ]


@route("GET /nodes/{node}/sdn/zones/{zone}/bridges")
def list_bridges(call: Call) -> Any:
    """List the bridges of a zone on a node, with the guests that are plugged in."""
    zone = call.params["zone"]
    bridges = _local_bridges(call) if zone == LOCAL_ZONE else _zone_bridges(call, zone)
    return [
        {**bridge, "ports": [*bridge["ports"], *_guest_ports(call, bridge["name"])]}
        for bridge in bridges
        if call.may(f"/sdn/zones/{zone}/{bridge['name']}", "SDN.Audit", "SDN.Allocate", any_of=True)
    ]


def _local_bridges(call: Call) -> list[dict[str, Any]]:
    up = links_up(call.store, call.node)
    return [
        {
            "name": name,
            "vlan_filtering": int(up.get(name, {}).get("vlan_aware", 0)),
            "ports": [{"name": port} for port in str(interface.get("bridge_ports") or "").split()],
        }
        for name, interface in load(call.world, call.node).by_name.items()
        if interface["type"] == "bridge"
    ]


def _zone_bridges(call: Call, zone: str) -> list[dict[str, Any]]:
    if zone not in read_applied(call.store, "zones"):
        raise bad_parameter("zone", "zone does not exist")
    made = (call.store.get(SDN_LOCAL, call.node) or {}).get("vnets", {})
    return [
        {"name": name, "vlan_filtering": int(vnet["vlan_aware"]), "ports": []}
        for name, vnet in made.items()
        if vnet["zone"] == zone
    ]


def _guest_ports(call: Call, bridge: str) -> list[dict[str, Any]]:
    ports = []
    for guest in call.world.guests.on_node(call.node):
        prefix = "tap" if guest["type"] == "qemu" else "veth"
        for key in _list_nics_on(guest["config"], bridge) if guest["status"] == "running" else ():
            name = f"{prefix}{guest['vmid']}i{key[3:]}"
            ports.append({"name": name, "vmid": str(guest["vmid"]), "index": key})
    return ports


def _list_nics_on(config: Mapping[str, Any], bridge: str) -> list[str]:
    return [
        key
        for key, value in config.items()
        if key.startswith("net") and key[3:].isdecimal() and f"bridge={bridge}" in str(value).split(",")
    ]
