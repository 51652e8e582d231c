"""The virtual networks that a node has, as its list of networks shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.access import may_see_bridge
from pvelab.api.cluster.sdn.applied import is_on, read_applied

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["local_vnets"]


def local_vnets(call: Call) -> dict[str, dict[str, Any]]:
    """Return the virtual networks in force on the node of a call, by name, that the caller may use."""
    zones = read_applied(call.store, "zones")
    found: dict[str, dict[str, Any]] = {}
    for ident, vnet in sorted(read_applied(call.store, "vnets").items()):
        zone = zones.get(vnet["zone"], {})
        if may_see_bridge(call, vnet["zone"], ident) and is_on(zone, call.node):
            found[ident] = {
                "type": "vnet",
                "active": "1",
                "ipam": int(bool(zone.get("ipam"))),
                "vlanaware": int(bool(vnet.get("vlanaware"))),
                "comments": vnet.get("alias"),
            }
    return found
