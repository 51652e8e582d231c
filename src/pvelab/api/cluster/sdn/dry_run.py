"""What applying the SDN configuration would change on a node: `/cluster/sdn/dry-run`.

Both files of a node are written from the configuration, once from what is in force and once from what is
written; the answer is how they differ.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.applied import PARTS, is_on, read_applied
from pvelab.server.routing import route

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document, Store

__all__ = ["dry_run"]

_FRR, _INTERFACES = "/etc/frr/frr.conf", "/etc/network/interfaces.d/sdn"


@route("GET /cluster/sdn/dry-run")
def dry_run(call: Call) -> Any:
    """Answer the differences in the two files; what would stay as it is is not there."""
    node = str(call.params["node"])
    call.world.cluster.require_node(node)
    before = {part: read_applied(call.store, part) for part in PARTS}
    after = {part: call.store.items(collection) for part, collection in PARTS.items()}
    answer = {
        "frr-diff": _diff(_FRR, _frr(call.store, before, node), _frr(call.store, after, node)),
        "interfaces-diff": _diff(
            _INTERFACES, list(_interfaces(before, node)), list(_interfaces(after, node))
        ),
    }
    return {key: text for key, text in answer.items() if text}


def _diff(name: str, before: list[str], after: list[str]) -> str:
    return "\n".join(difflib.unified_diff(before, after, name, f"{name}.new", lineterm=""))


def _interfaces(parts: Mapping[str, Mapping[str, Document]], node: str) -> Iterator[str]:
    """Yield the lines of a node's file of virtual networks."""
    for name, vnet in sorted(parts["vnets"].items()):
        zone = parts["zones"].get(str(vnet["zone"]))
        if zone is None or not is_on(zone, node):
            continue
        yield from (f"auto {name}", f"iface {name}")
        subnets = [one for one in parts["subnets"].values() if one.get("vnet") == name and one.get("gateway")]
        for subnet in sorted(subnets, key=lambda one: str(one["gateway"])):
            yield f"\taddress {subnet['gateway']}/{str(subnet.get('cidr', '')).partition('/')[2] or 24}"
        yield from (f"\tbridge_ports {_ports(name, vnet, zone)}", "\tbridge_stp off", "\tbridge_fd 0")
        if vnet.get("vlanaware"):
            yield from ("\tbridge-vlan-aware yes", "\tbridge-vids 2-4094")
        if zone.get("mtu"):
            yield f"\tmtu {zone['mtu']}"
        if vnet.get("alias"):
            yield f"\talias {vnet['alias']}"
        yield ""


def _ports(name: str, vnet: Document, zone: Document) -> str:
    match zone["type"]:
        case "vlan":
            return f"{zone['bridge']}.{vnet.get('tag', 1)}"
        case "qinq":
            return f"z_{vnet['zone']}.{vnet.get('tag', 1)}"
        case "vxlan" | "evpn":
            return f"vxlan_{name}"
        case _:
            return "none"


def _frr(store: Store, parts: Mapping[str, Mapping[str, Document]], node: str) -> list[str]:
    """Return the lines of a node's routing configuration; none without controllers and fabrics."""
    lines = [*_controllers(parts, node), *_fabrics(parts, node)]
    if not lines:
        return []
    head = ["frr version 10.4.1", "frr defaults datacenter", f"hostname {node}", "log syslog informational"]
    known = store.get("nodes", node) or {}
    return [*head, f"! {known.get('ip', node)}", *lines, "line vty"]


def _controllers(parts: Mapping[str, Mapping[str, Document]], node: str) -> Iterator[str]:
    for controller in (found for _, found in sorted(parts["controllers"].items())):
        if controller["type"] not in ("evpn", "bgp") or controller.get("node", node) != node:
            continue
        yield f"router bgp {controller['asn']}"
        yield " no bgp default ipv4-unicast"
        for peer in filter(None, str(controller.get("peers", "")).split(",")):
            yield f" neighbor {peer.strip()} remote-as {controller['asn']}"
        for key in ("in", "out"):
            if controller.get(f"route-map-{key}"):
                yield f" neighbor VTEP route-map {controller[f'route-map-{key}']} {key}"
        yield "exit"


def _fabrics(parts: Mapping[str, Mapping[str, Document]], node: str) -> Iterator[str]:
    for member in (found for _, found in sorted(parts["fabric_nodes"].items())):
        fabric = parts["fabrics"].get(str(member["fabric_id"]))
        if fabric is None or member["node_id"] != node:
            continue
        protocol = str(fabric["protocol"])
        names = [text.partition(",")[0].partition("=")[2] for text in member.get("interfaces", ())]
        yield f"router {protocol}" + (f" {member['fabric_id']}" if protocol == "openfabric" else "")
        if "ip" in member:
            yield f" router-id {member['ip']}"
        yield "exit"
        for name in (f"dummy_{member['fabric_id']}", *names):
            area = f"area {fabric['area']}" if protocol == "ospf" else f"{member['fabric_id']}"
            verb = "ospf" if protocol == "ospf" else "router openfabric"
            yield from (f"interface {name}", f" ip {verb} {area}", "exit")
