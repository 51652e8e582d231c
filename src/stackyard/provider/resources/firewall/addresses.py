"""Addresses and networks as Proxmox keeps them in aliases and IP sets."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

__all__ = ["is_address_or_network", "is_set_entry", "plain_entry", "same_address", "same_entry"]

_ALIAS = re.compile(r"(dc/|guest/)?[A-Za-z][A-Za-z0-9_-]+")


def _parse(value: Any) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface | None:
    text = str(value)
    if "%" in text or not re.fullmatch(r"[0-9A-Fa-f:.]+(/[0-9]{1,3})?", text):
        return None
    try:
        return ipaddress.ip_interface(text)
    except ValueError:
        return None


def is_address_or_network(value: Any) -> str | None:
    """Check the address of an alias."""
    return None if _parse(value) else "must be an address or a network, such as 10.0.0.1 or 10.0.0.0/24"


def is_set_entry(value: Any) -> str | None:
    """Check an entry of an IP set."""
    if _ALIAS.fullmatch(str(value)):
        return None
    parsed = _parse(value)
    if parsed is None:
        return "must be an address, a network or an alias, such as 10.0.0.0/24 or dc/office"
    return "must not have a prefix of length 0: Proxmox takes none in IP sets" if _is_all(parsed) else None


def _is_all(parsed: ipaddress.IPv4Interface | ipaddress.IPv6Interface) -> bool:
    return parsed.network.prefixlen == 0


def same_address(prior: Any, config: Any) -> bool:
    """Tell whether Proxmox keeps the same for two addresses of aliases."""
    return _without_full_prefix(prior) == _without_full_prefix(config)


def _without_full_prefix(value: Any) -> str:
    text = str(value)
    return text.removesuffix("/128" if ":" in text else "/32")


def plain_entry(value: Any) -> str:
    """Return an entry of an IP set as Proxmox keeps it: a network without the bits of an address in it."""
    text = str(value)
    parsed = _parse(text)
    if parsed is None or "/" not in text:
        return text
    length = text.rpartition("/")[2]
    return _without_full_prefix(f"{parsed.network.network_address}/{length}")


def same_entry(prior: Any, config: Any) -> bool:
    """Tell whether Proxmox keeps the same for two entries of IP sets."""
    return plain_entry(prior) == plain_entry(config)
