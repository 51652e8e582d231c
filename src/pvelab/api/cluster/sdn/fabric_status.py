"""The fabrics that a node is part of, as its list of networks shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.applied import read_applied

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["fabric_interfaces"]


def fabric_interfaces(call: Call) -> dict[str, dict[str, Any]]:
    """Return the fabrics in force on the node of a call, by name, that the caller may use."""
    here = {
        node["fabric_id"]
        for node in read_applied(call.store, "fabric_nodes").values()
        if node["node_id"] == call.node
    }
    found: dict[str, dict[str, Any]] = {}
    for ident, fabric in read_applied(call.store, "fabrics").items():
        path = f"/sdn/fabrics/{ident}"
        if ident in here and call.may(path, "SDN.Audit", "SDN.Use", "SDN.Allocate", any_of=True):
            prefixes = {
                key: fabric[name]
                for key, name in (("cidr", "ip_prefix"), ("cidr6", "ip6_prefix"))
                if name in fabric
            }
            found[ident] = {"iface": ident, "type": "fabric", "active": True, **prefixes}
    return found
