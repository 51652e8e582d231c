"""The network interfaces of a container and their addresses, as Proxmox describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.container import INTERFACE
from stackyard.fields.guest import ADDRESSES
from stackyard.fields.properties import list_numbered, parse
from stackyard.provider.guests.addresses import read_ip_config
from stackyard.provider.resources.container.blocks import block

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.provider.values import Object

__all__ = ["addresses", "expects_address", "interfaces"]


def interfaces(config: Mapping[str, Any], state: Object) -> list[Object]:
    """Return the interfaces; one that the user turned off is not there and keeps its place."""
    found, off = dict(list_numbered(config, "net")), _list_disabled(config, state)
    known: Sequence[Object] = state.get("network_interface") or ()
    return [_interface(found[i]) if i in found else known[i] for i in sorted({*found, *off})]


def _list_disabled(config: Mapping[str, Any], state: Object) -> set[int]:
    known: Sequence[Object] = state.get("network_interface") or ()
    return {i for i, one in enumerate(known) if one.get("enabled") is False and f"net{i}" not in config}


def _interface(text: str) -> Object:
    found = INTERFACE.read_text(text)
    return {**{name: value for name, value in found.items() if name not in ADDRESSES}, "enabled": True}


def addresses(config: Mapping[str, Any], state: Object) -> list[Object]:
    """Return the addresses, one block an interface that has any.

    The blocks are counted; an empty one that somebody wrote for an interface without addresses stays, and so
    does that of an interface which is turned off.
    """
    known: Sequence[Object] = block(state, "initialization").get("ip_config") or ()
    off = _list_disabled(config, state)
    texts = dict(list_numbered(config, "net"))
    found: list[Object] = []
    for index in sorted({*texts, *off}):
        parts = parse(texts.get(index, ""), "name")
        one = read_ip_config(parts)
        was_empty = index < len(known) and not any(_addresses_in(known[index]))
        if index in off and index < len(known):
            found.append(known[index])
        elif any(one.values()) or was_empty:
            found.append(one)
    return found


def _addresses_in(one: Any) -> list[Any]:
    families = (one or {}).get("ipv4") or [], (one or {}).get("ipv6") or []
    return [value for family in families for values in family for value in (values or {}).values() if value]


def expects_address(config: Mapping[str, Any]) -> bool:
    """Tell whether any interface is going to have an address."""
    parts = (parse(text, "name") for _, text in list_numbered(config, "net"))
    return any(one.get(name, "manual") != "manual" for one in parts for name in ("ip", "ip6"))
