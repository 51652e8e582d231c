"""Network cards of a VM, and the addresses that its agent reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import list_numbered, parse
from stackyard.fields.vm import CARD
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.clients.proxmox import GuestInterface
    from stackyard.provider.values import Object

__all__ = [
    "NO_ADDRESSES",
    "complete_card",
    "keep_addresses",
    "network_params",
    "read_addresses",
    "read_network",
]

# What the original takes for an attribute that is left out; an address is found out.
_CARD = {**CARD.defaults(), "enabled": True, "mac_address": UNKNOWN}
_PROPERTIES = frozenset(row.property_name for row in CARD)
NO_ADDRESSES: Object = {"ipv4_addresses": [], "ipv6_addresses": [], "network_interface_names": []}


def complete_card(card: Object, before: Object | None) -> Object:
    """Return a card as it is planned: with defaults, and with the address that it had."""
    whole_card = {name: default if card.get(name) is None else card[name] for name, default in _CARD.items()}
    had = (before or {}).get("mac_address")
    if whole_card["mac_address"] in (UNKNOWN, "") and had:
        whole_card["mac_address"] = had
    return whole_card


def keep_addresses(planned: Object, config: Mapping[str, Any]) -> Object:
    """Return a plan whose cards have the addresses that the VM has, where the plan leaves them open.

    A card that is set without an address gets another one, which a guest that has booted does not expect.
    """
    cards = planned.get("network_device")
    if not isinstance(cards, list):
        return planned
    before = read_network(config)["network_device"]
    kept = [
        complete_card(card, before[number] if number < len(before) else None)
        if isinstance(card, dict)
        else card
        for number, card in enumerate(cards)
    ]
    return {**planned, "network_device": kept}


def network_params(state: Object) -> dict[str, str]:
    """Return the cards by their key; one that is not enabled is left out."""
    cards = state.get("network_device")
    if not isinstance(cards, list):
        return {}
    return {f"net{number}": _card_text(card) for number, card in enumerate(cards) if _is_enabled(card)}


def _is_enabled(card: Object | None) -> bool:
    return isinstance(card, dict) and card.get("enabled") is not False


def _card_text(card: Object) -> str:
    address = card.get("mac_address")
    return CARD.write_text({**card, "mac_address": address if isinstance(address, str) else None})


def read_network(config: Mapping[str, Any]) -> Object:
    """Return the cards and their addresses."""
    found = {number: _read_card(str(value)) for number, value in list_numbered(config, "net")}
    cards = [found.get(number) for number in range(max(found, default=-1) + 1)]
    missing = dict.fromkeys(_CARD)
    return {
        "network_device": [missing if card is None else card for card in cards],
        "mac_addresses": ["" if card is None else card["mac_address"] for card in cards],
    }


def _read_card(value: str) -> Object:
    found = parse(value, "model")
    # A card is written `virtio=BC:24:11:..`, the model being the name of the address.
    model = next((name for name in found if name not in _PROPERTIES), None)
    card = CARD.read({"macaddr": found[model] if model else None, **found})
    return {**card, "model": found.get("model") or model or "", "enabled": True}


def read_addresses(interfaces: Iterable[GuestInterface]) -> Object:
    """Return what the agent reported, interface by interface."""
    listed = list(interfaces)
    return {
        "ipv4_addresses": [interface.of_version(4) for interface in listed],
        "ipv6_addresses": [interface.of_version(6) for interface in listed],
        "mac_addresses": [interface.mac for interface in listed],
        "network_interface_names": [interface.name for interface in listed],
    }
