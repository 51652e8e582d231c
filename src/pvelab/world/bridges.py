"""The bridges that guests are plugged into: those of a node's own network and the virtual networks of SDN.

Documents: `interfaces/<node>` has the text of `/etc/network/interfaces` (`text`, and `new` while changes are
pending, each with the time of its writing), the names of the network cards (`links`), and `live`, the
interfaces that are up by name, with their `type`, `vlan_aware` and `mtu`. `sdn_local/<node>` has the
`version` of the SDN configuration that the node has taken over, and the virtual networks (`vnets`) that it
made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Store

__all__ = [
    "INTERFACES",
    "LOCAL_ZONE",
    "SDN_LOCAL",
    "VNETS",
    "exists",
    "links_up",
    "zone_of",
]

INTERFACES = "interfaces"
SDN_LOCAL = "sdn_local"
VNETS = "sdn_vnets"
# The zone that plain bridges are in, for permissions.
LOCAL_ZONE = "localnetwork"

_BRIDGES = frozenset(("bridge", "OVSBridge"))


def links_up(store: Store, node: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the interfaces of a node that are up, virtual networks not among them."""
    found: Mapping[str, Mapping[str, Any]] = (store.get(INTERFACES, node) or {}).get("live", {})
    return found


def exists(store: Store, node: str, bridge: str) -> bool:
    """Return whether a guest on a node can be plugged into a bridge or virtual network now."""
    if links_up(store, node).get(bridge, {}).get("type") in _BRIDGES:
        return True
    return bridge in (store.get(SDN_LOCAL, node) or {}).get("vnets", {})


def zone_of(store: Store, bridge: str) -> str:
    """Return the zone under which the permissions of a bridge are: `/sdn/zones/<zone>/<bridge>`."""
    vnet = store.get(VNETS, bridge)
    return str(vnet["zone"]) if vnet is not None else LOCAL_ZONE
