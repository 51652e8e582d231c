"""How far a node has come with the SDN configuration in force, and what of it the list of resources shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.applied import is_on, read_applied, read_applied_version
from pvelab.world.bridges import LOCAL_ZONE, SDN_LOCAL, links_up

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Store

__all__ = ["network_rows", "vnet_status", "zone_statuses"]

_NOT_MADE = "vnet is not generated. Please check the 'reload network' task log."


def zone_statuses(store: Store, node: str) -> dict[str, str]:
    """Return the zones in force on a node, each `available`, `pending` (a reload is due) or `error`."""
    return {
        zone: _zone_status(store, node, zone)
        for zone, section in sorted(read_applied(store, "zones").items())
        if is_on(section, node)
    }


def vnet_status(store: Store, node: str, vnet: str) -> dict[str, Any]:
    """Return whether a node has made a virtual network in force, and if not, why."""
    problem = _problem(store, node)
    if problem is not None:
        return {"status": "pending", "statusmsg": problem}
    if vnet in (store.get(SDN_LOCAL, node) or {}).get("vnets", {}):
        return {"status": "available", "statusmsg": None}
    bridge = read_applied(store, "zones")[read_applied(store, "vnets")[vnet]["zone"]].get("bridge")
    missing = bridge is not None and bridge not in links_up(store, node)
    return {"status": "error", "statusmsg": f"missing {bridge}" if missing else _NOT_MADE}


def network_rows(call: Call) -> list[dict[str, Any]]:
    """Return the zones and fabrics of all nodes as the list of resources shows them."""
    rows = []
    cluster = call.world.cluster
    for node in cluster.nodes():
        rows.append(_row(node, "zone", LOCAL_ZONE, status="ok"))
        if not cluster.is_online(node):
            continue
        for zone, status in zone_statuses(call.store, node).items():
            kind = read_applied(call.store, "zones")[zone]["type"]
            rows.append(_row(node, "zone", zone, **{"zone-type": kind, "status": status}))
        for member in read_applied(call.store, "fabric_nodes").values():
            if member["node_id"] == node:
                fabric = member["fabric_id"]
                rows.append(_row(node, "fabric", fabric, protocol=member["protocol"], status="ok"))
    return [row for row in rows if _may_see(call, row)]


def _row(node: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"network/{node}/{kind}/{name}",
        "type": "network",
        "network-type": kind,
        "network": name,
        "node": node,
        **more,
    }


def _may_see(call: Call, row: dict[str, Any]) -> bool:
    folder = "zones" if row["network-type"] == "zone" else "fabrics"
    return call.may(f"/sdn/{folder}/{row['network']}", "SDN.Audit")


def _problem(store: Store, node: str) -> str | None:
    """Return why a node has not taken over the configuration in force, None if it has."""
    local = store.get(SDN_LOCAL, node)
    if local is None:
        return "local sdn network configuration is not yet generated, please reload"
    if local["version"] < read_applied_version(store):
        return "local sdn network configuration is too old, please reload"
    return None


def _zone_status(store: Store, node: str, zone: str) -> str:
    if _problem(store, node) is not None:
        return "pending"
    vnets = (vnet for vnet, section in read_applied(store, "vnets").items() if section["zone"] == zone)
    broken = any(vnet_status(store, node, vnet)["status"] == "error" for vnet in vnets)
    return "error" if broken else "available"
