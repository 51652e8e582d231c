"""Formats of addresses, names and other network values."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from pvelab.server.params.texts import Checker, FormatError, make_pattern_checker

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NETWORK_FORMATS", "is_ip"]

_DNS_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?"
_DNS_NAME = re.compile(rf"(?:{_DNS_LABEL}\.)*{_DNS_LABEL}")
# IPv6 networks shorter than a /8 and IPv4 networks shorter than a /8 are refused by Proxmox.
_SHORTEST_PREFIX = 8


def is_ip(value: str, version: int | None = None) -> bool:
    """Return whether a value is an IP address (of one version), without a zone or a prefix."""
    if "%" in value:
        return False
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False
    return version is None or address.version == version


def _is_cidr(value: str, version: int, shortest: int = _SHORTEST_PREFIX) -> bool:
    address, slash, prefix = value.partition("/")
    if not slash or not re.fullmatch(r"\d{1,9}", prefix) or not is_ip(address, version):
        return False
    return shortest <= int(prefix) <= (32 if version == 4 else 128)


def _ip(value: str) -> None:
    if not is_ip(value):
        raise FormatError("value does not look like a valid IP address")


def _ipv4(value: str) -> None:
    if not is_ip(value, 4):
        raise FormatError("value does not look like a valid IPv4 address")


def _ipv6(value: str) -> None:
    if not is_ip(value, 6):
        raise FormatError("value does not look like a valid IPv6 address")


def _cidr(value: str) -> None:
    if not (_is_cidr(value, 4) or _is_cidr(value, 6)):
        raise FormatError("value does not look like a valid CIDR network")


def _full_range_cidr(value: str) -> None:
    if not (_is_cidr(value, 4, 0) or _is_cidr(value, 6, 0)):
        raise FormatError("value does not look like a valid CIDR network")


def _cidrv4(value: str) -> None:
    if not _is_cidr(value, 4):
        raise FormatError("value does not look like a valid IPv4 CIDR network")


def _cidrv6(value: str) -> None:
    if not _is_cidr(value, 6):
        raise FormatError("value does not look like a valid IPv6 CIDR network")


def _ipv4_config(value: str) -> None:
    if value not in ("dhcp", "manual") and not _is_cidr(value, 4):
        raise FormatError("value does not look like a valid ipv4 network configuration")


def _ipv6_config(value: str) -> None:
    if value not in ("auto", "dhcp", "manual") and not _is_cidr(value, 6):
        raise FormatError("value does not look like a valid ipv6 network configuration")


def _netmask(value: str) -> None:
    if is_ip(value, 4):
        bits = f"{int(ipaddress.IPv4Address(value)):032b}"
        if "01" not in bits:
            return
    raise FormatError("value does not look like a valid IP netmask")


def _dns_name(value: str) -> None:
    if not _DNS_NAME.fullmatch(value):
        raise FormatError("value does not look like a valid DNS name")


def _address(value: str) -> None:
    if not is_ip(value) and not _DNS_NAME.fullmatch(value):
        raise FormatError(f"value does not look like a valid address: {value}")


def _storage_server(value: str) -> None:
    if not is_ip(value) and not _DNS_NAME.fullmatch(value):
        raise FormatError("value does not look like a valid server name or IP address")


def _portal(value: str) -> None:
    host, _, port = (
        value.rpartition(":") if value.count(":") == 1 or value.startswith("[") else (value, "", "")
    )
    host = host.strip("[]")
    if not (is_ip(host) or _DNS_NAME.fullmatch(host)) or (port and not port.isdecimal()):
        raise FormatError("value does not look like a valid portal address")


def _vlan_range(value: str) -> None:
    found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", value)
    if not found:
        raise FormatError(f"invalid VLAN configuration '{value}'")
    tags = [int(tag) for tag in found.groups() if tag is not None]
    for tag in tags:
        if not 2 <= tag <= 4094:
            raise FormatError(f"invalid VLAN tag '{tag}'")
    if len(tags) == 2 and tags[0] >= tags[1]:
        raise FormatError(f"VLAN range must go from lower to higher tag '{value}'")


def _ip_with_zone(value: str) -> None:
    address, percent, interface = value.partition("%")
    if percent and address.startswith("fe80:") and re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]{1,20}", interface):
        value = address
    _ip(value)


def _subnet_id(value: str) -> None:
    cidr = value
    if "/" not in value:
        parts = value.split("-")
        cidr = "/".join(parts[1:3])
    if not (_is_cidr(cidr, 4) or _is_cidr(cidr, 6)):
        raise FormatError("value does not look like a valid CIDR network")


NETWORK_FORMATS: Mapping[str, Checker] = {
    "ip": _ip,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "ipv4mask": _netmask,
    "CIDR": _cidr,
    "FullRangeCIDR": _full_range_cidr,
    "CIDRv4": _cidrv4,
    "CIDRv6": _cidrv6,
    "pve-ipv4-config": _ipv4_config,
    "pve-ipv6-config": _ipv6_config,
    "dns-name": _dns_name,
    "address": _address,
    "mac-addr": make_pattern_checker(
        r"[a-f0-9][02468ace](?::[a-f0-9]{2}){5}",
        "value does not look like a valid unicast MAC address",
        re.IGNORECASE,
    ),
    "mac-prefix": make_pattern_checker(
        r"[a-f0-9][02468ace](?::[a-f0-9]{2}){0,2}(?::[a-f0-9]?)?",
        "value is not a valid unicast MAC address prefix",
        re.IGNORECASE,
    ),
    "pve-iface": make_pattern_checker(
        r"[a-z][a-z0-9_]{1,20}([:.]\d+)?", "invalid network interface name '{}'", re.IGNORECASE
    ),
    "pve-bridge-id": make_pattern_checker(r"[-_.\w\d]+", "invalid bridge ID '{}'", re.ASCII),
    "pve-vlan-id-or-range": _vlan_range,
    "pve-storage-server": _storage_server,
    "pve-storage-portal-dns": _portal,
    "lxc-ip-with-ll-iface": _ip_with_zone,
    "pve-sdn-subnet-id": _subnet_id,
    "pve-sdn-isis-net": make_pattern_checker(
        r"[a-fA-F0-9]{2}(\.[a-fA-F0-9]{4}){3,9}\.[a-fA-F0-9]{2}", "value does not look like a valid isis net"
    ),
    "pve-sdn-bgp-rt": make_pattern_checker(r"\d+:\d+", "value does not look like a valid bgp route-target"),
    "pve-sdn-fabric-id": make_pattern_checker(
        r"[a-zA-Z0-9][a-zA-Z0-9-]{0,6}[a-zA-Z0-9]?", "Fabric ID '{}' contains illegal characters"
    ),
}
