"""What a node has made of the zones: `/nodes/{node}/sdn`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.bridges import LOCAL_ZONE, SDN_LOCAL, links_up
from stackyard.lab.problems import bad_parameter
from stackyard.lab.resources.network.files import load
from stackyard.lab.resources.sdn.running import is_on, running, running_version
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.call import Call

__all__ = ["index_status", "index_zone", "list_bridges", "list_content", "list_zone_status"]


@route("GET /nodes/{node}/sdn")
def index_status(_call: Call) -> Any:
    """List what there is of SDN on a node."""
    return [{"name": name} for name in ("fabrics", "vnets", "zones")]


@route("GET /nodes/{node}/sdn/zones")
def list_zone_status(call: Call) -> Any:
    """List the zones in force on a node, and whether the node has made them."""
    return [{"zone": zone, "status": _zone_status(call, zone)} for zone in _zones(call)]


@route("GET /nodes/{node}/sdn/zones/{zone}")
def index_zone(_call: Call) -> Any:
    """List what there is of a zone on a node."""
    return [{"subdir": name} for name in ("content", "bridges", "ip-vrf")]


@route("GET /nodes/{node}/sdn/zones/{zone}/content")
def list_content(call: Call) -> Any:
    """List the virtual networks of a zone, and whether the node has made them."""
    return [
        {"vnet": vnet, **_vnet_status(call, vnet)}
        for vnet, section in sorted(running(call.store, "vnets").items())
        if section["zone"] == call.params["zone"] and call.params["zone"] in _zones(call)
    ]


@route("GET /nodes/{node}/sdn/zones/{zone}/bridges")
def list_bridges(call: Call) -> Any:
    """List the bridges of a zone on a node, with the guests that are plugged in."""
    zone = call.params["zone"]
    if zone == LOCAL_ZONE:
        up = links_up(call.store, call.node)
        found = {
            name: (interface, int(up.get(name, {}).get("vlan_aware", 0)))
            for name, interface in load(call.world, call.node).by_name.items()
            if interface["type"] == "bridge"
        }
        cards = {
            name: str(interface.get("bridge_ports") or "").split() for name, (interface, _) in found.items()
        }
        aware = {name: flag for name, (_, flag) in found.items()}
    elif zone not in running(call.store, "zones"):
        raise bad_parameter("zone", "zone does not exist")
    else:
        made = (call.store.get(SDN_LOCAL, call.node) or {}).get("vnets", {})
        aware = {name: int(vnet["vlan_aware"]) for name, vnet in made.items() if vnet["zone"] == zone}
        cards = {}
    return [
        {"name": name, "vlan_filtering": flag, "ports": _ports(call, name, cards.get(name, []))}
        for name, flag in aware.items()
        if call.may(f"/sdn/zones/{zone}/{name}", "SDN.Audit", "SDN.Allocate", any_of=True)
    ]


def _zones(call: Call) -> list[str]:
    return [
        zone for zone, section in sorted(running(call.store, "zones").items()) if is_on(section, call.node)
    ]


def _problem(call: Call) -> str | None:
    """Return why the node has not taken over the configuration in force, None if it has."""
    local = call.store.get(SDN_LOCAL, call.node)
    if local is None:
        return "local sdn network configuration is not yet generated, please reload"
    if local["version"] < running_version(call.store):
        return "local sdn network configuration is too old, please reload"
    return None


def _vnet_status(call: Call, vnet: str) -> dict[str, Any]:
    problem = _problem(call)
    if problem is not None:
        return {"status": "pending", "statusmsg": problem}
    if vnet in (call.store.get(SDN_LOCAL, call.node) or {}).get("vnets", {}):
        return {"status": "available", "statusmsg": None}
    zone = running(call.store, "zones")[running(call.store, "vnets")[vnet]["zone"]]
    if zone.get("bridge") and zone["bridge"] not in links_up(call.store, call.node):
        return {"status": "error", "statusmsg": f"missing {zone['bridge']}"}
    return {
        "status": "error",
        "statusmsg": "vnet is not generated. Please check the 'reload network' task log.",
    }


def _zone_status(call: Call, zone: str) -> str:
    if _problem(call) is not None:
        return "pending"
    vnets = (vnet for vnet, section in running(call.store, "vnets").items() if section["zone"] == zone)
    broken = any(_vnet_status(call, vnet)["status"] == "error" for vnet in vnets)
    return "error" if broken else "available"


def _ports(call: Call, bridge: str, cards: list[str]) -> list[dict[str, Any]]:
    ports: list[dict[str, Any]] = [{"name": card} for card in cards]
    for guest in call.world.guests.on_node(call.node):
        if guest["status"] == "running":
            prefix = "tap" if guest["type"] == "qemu" else "veth"
            ports += [
                {"name": f"{prefix}{guest['vmid']}i{key[3:]}", "vmid": str(guest["vmid"]), "index": key}
                for key in _plugged_into(guest["config"], bridge)
            ]
    return ports


def _plugged_into(config: Mapping[str, Any], bridge: str) -> list[str]:
    return [
        key
        for key, value in config.items()
        if key.startswith("net") and key[3:].isdigit() and f"bridge={bridge}" in str(value).split(",")
    ]
