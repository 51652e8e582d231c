"""The one door for IP addresses: a text from outside is parsed here, and printed from what was parsed.

A guest, a cluster and a file can all write `2001:db8::1%anything` where an address is expected: what follows
the percent sign is the name of an interface on one machine, and may be any text. It means nothing on another
machine, so that such an address is refused.
"""

from __future__ import annotations

import ipaddress

__all__ = [
    "Address",
    "Interface",
    "is_loopback",
    "is_usable",
    "parse_address",
    "parse_interface",
    "usable_address",
]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface

# The longest address of IPv6 with its prefix length has 49 characters.
_LONGEST = 64


def parse_address(text: object) -> Address:
    """Return an address.

    Raises:
        ValueError: It is none, or names an interface of one machine after `%`.
    """
    return ipaddress.ip_address(_check_address(text))


def parse_interface(text: object) -> Interface:
    """Return an address with its prefix length, or without one.

    Raises:
        ValueError: It is none, or names an interface of one machine after `%`.
    """
    return ipaddress.ip_interface(_check_address(text))


def is_loopback(host: str) -> bool:
    """Return whether a host, by its name or address, is certainly this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_usable(address: Address) -> bool:
    """Return whether another machine can use an address: it belongs to one host, and to one alone."""
    # 127.0.0.1 is written ::ffff:127.0.0.1 too; no card of a guest has an address of this form.
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return False
    return not (
        address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified
    )


def usable_address(text: object) -> str | None:
    """Return an address as it is written to others, with or without a prefix length; None for no use.

    Args:
        text: What someone reported: it may be of any type.
    """
    try:
        address = parse_interface(text).ip
    except ValueError:
        return None
    return str(address) if is_usable(address) else None


def _check_address(text: object) -> str:
    # A number would be taken for an address, too.
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise ValueError("this is not an IP address")
    if "%" in text:
        raise ValueError(
            "an address must not name an interface after `%`, which means something on one machine only"
        )
    return text
