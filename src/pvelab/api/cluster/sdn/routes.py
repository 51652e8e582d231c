"""What the routing of a node has learned: fabrics, and the virtual networks of EVPN zones.

The lab routes nothing. It shows what FRR would if all is well: everyone who is up has found everyone else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.access import check_vnet
from pvelab.api.cluster.sdn.applied import is_on, read_applied
from pvelab.server.problems import bad_parameter
from pvelab.server.routing import route
from pvelab.world.guests.addresses import addresses_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = [
    "index_fabric",
    "index_vnet",
    "list_interfaces",
    "list_ip_routes",
    "list_mac_routes",
    "list_neighbors",
    "list_routes",
]

_METRIC = 20
_HOUR_S = 3600


@route("GET /nodes/{node}/sdn/fabrics/{fabric}")
def index_fabric(_call: Call) -> Any:
    """List what there is of a fabric on a node."""
    return [{"subdir": "neighbors"}, {"subdir": "routes"}]


@route("GET /nodes/{node}/sdn/fabrics/{fabric}/neighbors")
def list_neighbors(call: Call) -> Any:
    """List the nodes of a fabric that a node is next to."""
    fabric, here, others = _fabric(call)
    if here is None:
        return []
    is_ospf = fabric["protocol"] == "ospf"
    return [
        {
            "neighbor": str(other.get("ip", other["node_id"])) if is_ospf else other["node_id"],
            "status": "Full/-" if is_ospf else "Up",
            "uptime": _uptime(call),
        }
        for other in others
    ]


@route("GET /nodes/{node}/sdn/fabrics/{fabric}/routes")
def list_routes(call: Call) -> Any:
    """List the routes to the other nodes of a fabric."""
    _, here, others = _fabric(call)
    if here is None:
        return []
    rows = []
    for other in others:
        for key, length in (("ip", 32), ("ip6", 128)):
            if key in other:
                rows.append({"route": f"{other[key]}/{length}", "via": [other[key]]})
    return rows


@route("GET /nodes/{node}/sdn/fabrics/{fabric}/interfaces")
def list_interfaces(call: Call) -> Any:
    """List the interfaces of a node that are part of a fabric, its own dummy among them."""
    fabric, here, _ = _fabric(call)
    if here is None:
        return []
    up = "up" if fabric["protocol"] == "ospf" else "Up"
    rows = [{"name": f"dummy_{call.params['fabric']}", "type": "Loopback", "state": up}]
    for text in here.get("interfaces", ()):
        parts = dict(part.partition("=")[::2] for part in text.split(","))
        numbered = "ip" in parts and fabric["protocol"] == "ospf"
        kind = "Broadcast" if parts.get("network_type", "") == "broadcast" or numbered else "Point-To-Point"
        rows.append({"name": parts["name"], "type": kind, "state": up})
    return rows


@route("GET /nodes/{node}/sdn/vnets/{vnet}")
def index_vnet(call: Call) -> Any:
    """List what there is of a virtual network on a node."""
    check_vnet(call, "SDN.Audit")
    return [{"subdir": "mac-vrf"}]


@route("GET /nodes/{node}/sdn/vnets/{vnet}/mac-vrf")
def list_mac_routes(call: Call) -> Any:
    """List the addresses of guests on a virtual network, each with the node that it is behind."""
    check_vnet(call, "SDN.Audit")
    vnet = read_applied(call.store, "vnets").get(call.params["vnet"])
    if vnet is None:
        raise bad_parameter("vnet", "vnet does not exist")
    zone = read_applied(call.store, "zones").get(str(vnet["zone"]))
    if zone is None:
        raise bad_parameter("zone", f"zone {vnet['zone']} does not exist")
    if zone["type"] != "evpn":
        raise bad_parameter("zone", f"zone {vnet['zone']} is not an EVPN zone.")
    if not is_on(zone, call.node):
        text = f"zone {vnet['zone']} of vnet {call.params['vnet']} does not exist on node {call.node}"
        raise bad_parameter("zone", text)
    return [
        {"ip": address, "mac": mac, "nexthop": call.world.cluster.nodes()[node]["ip"]}
        for node, mac, address in _guests(call, str(call.params["vnet"]))
    ]


@route("GET /nodes/{node}/sdn/zones/{zone}/ip-vrf")
def list_ip_routes(call: Call) -> Any:
    """List the routes of an EVPN zone: its subnets, and the guests behind other nodes."""
    ident = str(call.params["zone"])
    zone = read_applied(call.store, "zones").get(ident)
    if zone is None:
        raise bad_parameter("zone", "zone does not exist")
    if zone["type"] != "evpn":
        raise bad_parameter("zone", "zone is not an EVPN zone")
    if not is_on(zone, call.node):
        raise bad_parameter("zone", f"zone does not exist on node {call.node}")
    vnets = [
        name for name, vnet in sorted(read_applied(call.store, "vnets").items()) if vnet["zone"] == ident
    ]
    rows: list[dict[str, Any]] = [
        {
            "ip": str(subnet.get("cidr") or name.partition("-")[2].replace("-", "/")),
            "metric": 0,
            "protocol": "connected",
            "nexthops": [subnet["vnet"]],
        }
        for name, subnet in sorted(read_applied(call.store, "subnets").items())
        if subnet["vnet"] in vnets
    ]
    for vnet in vnets:
        for node, _, address in _guests(call, vnet):
            if node != call.node:
                length = 128 if ":" in address else 32
                hop = call.world.cluster.nodes()[node]["ip"]
                rows.append(
                    {"ip": f"{address}/{length}", "metric": _METRIC, "protocol": "bgp", "nexthops": [hop]}
                )
    return rows


def _fabric(call: Call) -> tuple[Mapping[str, Any], Document | None, list[Document]]:
    """Return a fabric in force, the node of the call in it if it is, and the other nodes that are up."""
    ident = str(call.params["fabric"])
    fabric = read_applied(call.store, "fabrics").get(ident)
    if fabric is None:
        raise bad_parameter("fabric", f"fabric '{ident}' does not exist")
    members = [one for one in read_applied(call.store, "fabric_nodes").values() if one["fabric_id"] == ident]
    here = next((one for one in members if one["node_id"] == call.node), None)
    online = call.world.cluster.is_online
    others = [one for one in members if one["node_id"] != call.node and online(str(one["node_id"]))]
    return fabric, here, others


def _uptime(call: Call) -> str:
    started = int(call.world.cluster.nodes()[call.node]["started"])
    seconds = max(0, call.now() - started)
    return f"{seconds // _HOUR_S}h{seconds % _HOUR_S // 60:02d}m{seconds % 60:02d}s"


def _guests(call: Call, vnet: str) -> Iterator[tuple[str, str, str]]:
    """Yield the node, the MAC address and an address of each running guest on a virtual network."""
    world = call.world
    for guest in world.guests.all().values():
        if guest["status"] != "running" or not world.cluster.is_online(str(guest["node"])):
            continue
        macs = {
            mac.upper()
            for key, value in guest["config"].items()
            if key.startswith("net") and f"bridge={vnet}" in str(value).split(",")
            for mac in _macs(str(value))
        }
        for interface in addresses_of(world, guest) if macs else ():
            for one in interface.addresses if interface.mac.upper() in macs else ():
                if not one.is_link_local:
                    yield str(guest["node"]), interface.mac.upper(), one.address


def _macs(text: str) -> list[str]:
    return [part.partition("=")[2] for part in text.split(",") if part.count(":") == 5]
