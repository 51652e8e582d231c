"""Whether a node can be reached over the interfaces that are up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pvelab.api.nodes.network.read import Interface, Interfaces

__all__ = ["is_reached", "list_parents"]

_LOWER = ("bridge_ports", "slaves", "ovs_ports", "ovs_bonds", "vlan-raw-device")


def list_parents(name: str, interface: Interface) -> list[str]:
    """Return the interfaces that one stands on."""
    listed = split_list(" ".join(str(interface[key]) for key in _LOWER if interface.get(key)))
    return [*listed, *(re.split(r"[.:]", port)[0] for port in (name, *listed))]


def is_reached(interfaces: Interfaces, live: Iterable[str], links: Iterable[str], address: Any) -> bool:
    """Return whether an interface that is up has an address, and stands on a network card."""
    up, cards = set(live), set(links)
    for name in up:
        interface = interfaces.by_name.get(name, {})
        own = {str(interface.get(key) or "").partition("/")[0] for key in ("address", "address6", "cidr")}
        if str(address) in own and _stands_on_card(interfaces, name, cards):
            return True
    return False


def _stands_on_card(interfaces: Interfaces, name: str, cards: set[str]) -> bool:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one in cards:
            return True
        if one not in seen:
            seen.add(one)
            waiting += list_parents(one, interfaces.by_name.get(one, {}))
    return False
