"""What a state knows of guests that its input does not say: ids, nodes, addresses, cards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import usable_address
from stackyard.state.guests import read_guests
from stackyard.state.inside import EncryptedStateError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.state.guests import StateGuest

__all__ = ["Fact", "list_static_addresses", "read_facts"]

_CONTAINER = "container"
_MODULE = "module."
_MAC = re.compile(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A guest as the state has it.

    Attributes:
        vm_id: Its id.
        node: Where it runs.
        addresses: What it is reached by, the most useful first.
        declared: Those of them that the input gives to it.
        mac: The hardware address of its first card.
    """

    vm_id: int
    node: str
    addresses: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    mac: str | None = None


def read_facts(state: bytes | None, *, in_modules: bool = False) -> Mapping[str, Fact]:
    """Return the guests of a state, by the address of their resource; none where there is no state yet.

    Args:
        state: The state.
        in_modules: Whether guests in modules are wanted too. In the state of an env those are of the user's
            own code: no input describes them.
    """
    if not state:
        return {}
    try:
        guests = read_guests(state)
    except EncryptedStateError:
        # The input alone has to do.
        return {}
    own = [guest for guest in guests if in_modules or not guest.address.startswith(_MODULE)]
    return {guest.address: _fact(guest) for guest in own if guest.is_reliable}


def _fact(guest: StateGuest) -> Fact:
    kind, attributes = guest.kind, guest.attributes
    reported = list(_addresses(kind, attributes))
    # What the input says of an address holds, even where it is one of this machine: no guest decides that.
    # It is the most useful one, too: others, as a virtual address, wander from guest to guest.
    declared = [address for address in list_static_addresses(guest) if address in reported]
    known = [*declared, *(address for text in reported if (address := usable_address(text)))]
    macs = (
        [card.get("mac_address") for card in attributes.get("network_interface") or ()]
        if kind == _CONTAINER
        else [card.get("mac_address") for card in attributes.get("network_device") or ()]
    )
    return Fact(
        vm_id=guest.vm_id or 0,
        node=guest.node,
        addresses=tuple(dict.fromkeys(known)),
        declared=tuple(declared),
        mac=next((mac for mac in macs if isinstance(mac, str) and _MAC.fullmatch(mac)), None),
    )


def _addresses(kind: str, attributes: Mapping[str, Any]) -> Iterator[str]:
    for version in (4, 6):
        if kind == _CONTAINER:
            yield from (attributes.get(f"ipv{version}") or {}).values()
        else:
            for of_card in attributes.get(f"ipv{version}_addresses") or ():
                yield from of_card


def list_static_addresses(guest: StateGuest) -> Iterator[str]:
    """Yield the addresses that the input gives to a guest, without their prefix lengths."""
    for init in guest.attributes.get("initialization") or ():
        for config in init.get("ip_config") or ():
            for version in ("ipv4", "ipv6"):
                for one in config.get(version) or ():
                    yield str(one.get("address") or "").partition("/")[0]
