"""Who is in a network with whom: bridges and VLANs, the bridges of nested nodes, and routers between them.

The main bridge of a nested node depends on the first NIC of its guest, so both are in one network. Networks
with a router (every one in which DHCP answers, and every one for which a guest was given a gateway) reach
one another; a guest without a gateway reaches its own networks only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.world.guests.addresses import MAIN, addresses_of, network_of

if TYPE_CHECKING:
    from pvelab.nested.network_location import NetworkLocation
    from pvelab.world.guests.addresses import Interface
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["gateway_of", "gateways_of", "may_talk"]

Lan = tuple[int, str, int]


def may_talk(one: NetworkLocation, other: NetworkLocation) -> bool:
    """Return whether two can reach each other."""
    if one.guest is not None and other.guest is not None and one.guest is other.guest:
        return True
    return bool(_lans(one) & _lans(other)) or (_is_routed(one) and _is_routed(other))


def gateways_of(world: World, guest: Document) -> list[str]:
    """Return the routers of a guest: those that it was given, and those that DHCP tells it."""
    found = (gateway_of(world, guest, interface) for interface in addresses_of(world, guest))
    return [router for router in found if router is not None]


def gateway_of(world: World, guest: Document, interface: Interface) -> str | None:
    """Return the router of one interface of a guest, None if it has none."""
    key = f"ipconfig{interface.key[3:]}" if guest["type"] == "qemu" else interface.key
    text = str(guest["config"].get(key, "ip=dhcp"))
    given = dict(part.partition("=")[::2] for part in text.split(",") if part)
    if given.get("gw"):
        return given["gw"]
    if given.get("ip") != "dhcp" or not interface.bridge:
        return None
    with world.store.transaction():
        network = network_of(world, interface.bridge, interface.tag)
    return None if network is None else str(network.range[1])


def _lans(place: NetworkLocation) -> set[Lan]:
    if place.guest is None:
        return {_lan(place.world, *MAIN)}
    found = addresses_of(place.world, place.guest)
    return {_lan(place.world, interface.bridge, interface.tag) for interface in found if interface.bridge}


def _lan(world: World, bridge: str, tag: int) -> Lan:
    """Return what distinguishes a network from all others, whichever nested node it is seen from."""
    while (bridge, tag) == MAIN and world.uplink is not None and world.uplink.guest is not None:
        outer = next(iter(addresses_of(world.uplink.world, world.uplink.guest)), None)
        if outer is None:
            break
        world, bridge, tag = world.uplink.world, outer.bridge, outer.tag
    return id(world), bridge, tag


def _is_routed(place: NetworkLocation) -> bool:
    return place.guest is None or bool(gateways_of(place.world, place.guest))
