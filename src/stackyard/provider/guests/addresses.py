"""The addresses of a guest: those in its configuration, and those that it reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import is_usable
from stackyard.fields.guest import ADDRESSES
from stackyard.provider.values import known_block

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.clients.proxmox import GuestInterface
    from stackyard.provider.values import Object

__all__ = ["has_address", "read_ip_config", "write_ip_config"]


def write_ip_config(ip_config: Object) -> dict[str, Any]:
    """Return the properties (`ip`, `gw`, `ip6`, `gw6`) of a block; None for what it leaves out."""
    return {
        name: (known_block(ip_config, family) or {}).get(part) for name, (family, part) in ADDRESSES.items()
    }


def read_ip_config(properties: Mapping[str, str]) -> Object:
    """Return the block that properties say; a family of which they say nothing is empty."""
    found: Object = {family: [] for family, _ in ADDRESSES.values()}
    for name, (family, part) in ADDRESSES.items():
        if name in properties:
            found[family] = found[family] or [{"address": "", "gateway": ""}]
            found[family][0][part] = properties[name]
    return found


def has_address(interfaces: Iterable[GuestInterface], wanted: set[str]) -> bool:
    """Tell whether a guest reports addresses that others can reach.

    Args:
        interfaces: What it reported.
        wanted: `ipv4`, `ipv6` or both; with neither, any will do.
    """
    found = {
        f"ipv{address.version}"
        for interface in interfaces
        if interface.name != "lo"
        for address in interface.addresses
        if is_usable(address)
    }
    return found >= wanted if wanted else bool(found)
