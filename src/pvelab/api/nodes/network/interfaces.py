"""Interfaces one by one: list, read, create, change, remove."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.access import may_see_bridge
from pvelab.api.cluster.sdn.fabric_status import fabric_interfaces
from pvelab.api.cluster.sdn.vnet_status import local_vnets
from pvelab.api.nodes.network import files
from pvelab.api.nodes.network.rules import check_gateway, check_ipv6, check_ports
from pvelab.server.params.texts import split_list
from pvelab.server.problems import bad_parameter
from pvelab.server.routing import route
from pvelab.world.bridges import LOCAL_ZONE

if TYPE_CHECKING:
    from pvelab.api.nodes.network.read import Interface, Interfaces
    from pvelab.server.call import Call

__all__ = ["create_interface", "delete_interface", "list_interfaces", "read_interface", "update_interface"]

_BRIDGES = ("bridge", "OVSBridge")
_OVS_GUEST_PORTS = ("OVSIntPort", "OVSBond")


@route("GET /nodes/{node}/network")
def list_interfaces(call: Call) -> Any:
    """List the interfaces of a node, pending changes made; bridges only to who may use them."""
    call.changes = files.pending_changes(call.world, call.node)
    found = files.load(call.world, call.node).by_name
    found.pop("lo", None)
    wanted = call.params.get("type")
    if wanted is not None:
        found = _filter(call, found, wanted)
    return [
        {"iface": name, **interface}
        for name, interface in found.items()
        if interface["type"] not in _BRIDGES or may_see_bridge(call, LOCAL_ZONE, name)
    ]


@route("GET /nodes/{node}/network/{iface}")
def read_interface(call: Call) -> Any:
    """Read one interface, pending changes made."""
    return _require(files.load(call.world, call.node), call.params["iface"])


@route("POST /nodes/{node}/network")
def create_interface(call: Call) -> Any:
    """Add an interface to the pending file."""
    interfaces = files.load(call.world, call.node)
    given = {key: value for key, value in call.params.items() if key not in ("node", "iface")}
    name = call.params["iface"]
    if name in interfaces.by_name:
        raise bad_parameter("iface", "interface already exists")
    _check_neighbours(interfaces, name, given)
    _split_cidr(given)
    _complete(given)
    if given["type"] in _OVS_GUEST_PORTS:
        _plug_in(interfaces, name, given)
    interfaces.by_name[name] = given
    files.save(call.world, call.node, interfaces)


@route("PUT /nodes/{node}/network/{iface}")
def update_interface(call: Call) -> Any:
    """Change an interface in the pending file."""
    interfaces = files.load(call.world, call.node)
    given = {key: value for key, value in call.params.items() if key not in ("node", "iface", "delete")}
    name = call.params["iface"]
    interface = _require(interfaces, name)
    for key in split_list(call.params.get("delete", "")):
        interface.pop(key, None)
        if key in ("cidr", "cidr6"):
            interface.pop(key.replace("cidr", "netmask"), None)
            interface.pop(key.replace("cidr", "address"), None)
    _split_cidr(given)
    _check_neighbours(interfaces, name, given)
    _complete(given)
    interface.update(given)
    files.save(call.world, call.node, interfaces)


@route("DELETE /nodes/{node}/network/{iface}")
def delete_interface(call: Call) -> Any:
    """Remove an interface from the pending file."""
    interfaces = files.load(call.world, call.node)
    name = call.params["iface"]
    interface = _require(interfaces, name)
    bridge = interfaces.by_name.get(str(interface.get("ovs_bridge")))
    if interface["type"] in _OVS_GUEST_PORTS and bridge is not None and bridge.get("ovs_ports"):
        bridge["ovs_ports"] = " ".join(port for port in bridge["ovs_ports"].split() if port != name)
    del interfaces.by_name[name]
    files.save(call.world, call.node, interfaces)


def _require(interfaces: Interfaces, name: str) -> Interface:
    found = interfaces.by_name.get(name)
    if found is None:
        raise bad_parameter("iface", "interface does not exist")
    return found


def _filter(call: Call, found: dict[str, Interface], wanted: str) -> dict[str, Interface]:
    chosen = {
        name: interface
        for name, interface in found.items()
        if wanted in ("include_sdn", interface["type"])
        or (wanted in ("any_bridge", "any_local_bridge") and interface["type"] in _BRIDGES)
    }
    if wanted in ("any_bridge", "include_sdn", "vnet"):
        chosen |= local_vnets(call)
    if wanted in ("include_sdn", "fabric"):
        chosen |= fabric_interfaces(call)
    return chosen


def _check_neighbours(interfaces: Interfaces, name: str, given: Interface) -> None:
    for key in ("gateway", "gateway6"):
        if given.get(key):
            check_gateway(interfaces, name, key)
    check_ports(interfaces, name, given)


def _split_cidr(given: Interface) -> None:
    for suffix in ("", "6"):
        cidr = given.pop(f"cidr{suffix}", None)
        if not cidr:
            continue
        for key in (f"address{suffix}", f"netmask{suffix}"):
            if given.get(key):
                raise bad_parameter(key, f"{key} conflicts with cidr{suffix}")
        given[f"address{suffix}"], _, given[f"netmask{suffix}"] = str(cidr).rpartition("/")


def _complete(given: Interface) -> None:
    """Add what follows from the given settings alone; Proxmox does not look at addresses that stay."""
    if given.get("address6"):
        check_ipv6(str(given["address6"]), int(given.get("netmask6", 0)))
    families = [family for family in ("inet", "inet6") if given.get(f"address{family.removeprefix('inet')}")]
    given["families"] = families or ["inet"]
    given["method"] = "static" if given.get("address") else "manual"
    given["method6"] = "static" if given.get("address6") else "manual"
    if given.get("bridge_vids"):
        listed = split_list(str(given["bridge_vids"]))
        if not listed:
            raise bad_parameter("bridge_vids", "VLAN list items are empty")
        # Other separators than blanks mean something else in the file.
        given["bridge_vids"] = " ".join(listed)
    for key in ("bridge_ports", "slaves", "ovs_ports", "ovs_bonds"):
        if given.get(key):
            given[key] = re.sub(r"[;,\s]+", " ", str(given[key])).strip()


def _plug_in(interfaces: Interfaces, name: str, given: Interface) -> None:
    bridge_name = given.get("ovs_bridge")
    if not bridge_name:
        raise bad_parameter("ovs_bridge", "parameter is required")
    bridge = interfaces.by_name.get(str(bridge_name))
    if bridge is None:
        raise bad_parameter("ovs_bridge", f"bridge '{bridge_name}' does not exist")
    if bridge["type"] != "OVSBridge":
        raise bad_parameter("ovs_bridge", f"interface '{bridge_name}' is no OVS bridge")
    ports = str(bridge.get("ovs_ports") or "").split()
    if name not in ports:
        bridge["ovs_ports"] = " ".join([*ports, name])
