"""Formats of firewall rules: addresses, ports, protocols, ICMP types.

The rule handlers read values with the same functions after the schema let them pass, since what is allowed
also depends on the other values of a rule.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import TYPE_CHECKING

from pvelab.server.params.texts import Checker, FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ALIAS",
    "FIREWALL_FORMATS",
    "ICMPV6_TYPES",
    "ICMP_TYPES",
    "clean_cidr",
    "ip_version",
    "parse_addresses",
    "parse_ports",
    "strip_full_prefix",
]

ALIAS = re.compile(r"(dc/|guest/)?([A-Za-z][A-Za-z0-9\-_]+)")
_LONGEST_NAME = 64
_LAST_PORT = 65535
_MOST_PORTS = 15
_RANGE = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")
_HELPERS = frozenset(("amanda", "ftp", "irc", "netbios-ns", "pptp", "sane", "sip", "snmp", "tftp"))
# Names that every Debian knows; the machine that runs the lab may have a shorter list.
_SERVICES = frozenset(
    (
        *("bgp", "bootpc", "bootps", "dhcpv6-client", "dhcpv6-server", "domain", "finger", "ftp", "ftp-data"),
        *("git", "http", "http-alt", "https", "imap2", "imaps", "ipp", "irc", "isakmp", "kerberos", "ldap"),
        *("ldaps", "mdns", "microsoft-ds", "ms-sql-s", "ms-wbt-server", "munin", "mysql", "netbios-dgm"),
        *(
            "netbios-ns",
            "netbios-ssn",
            "nfs",
            "nntp",
            "ntp",
            "openvpn",
            "pop3",
            "pop3s",
            "postgresql",
            "puppet",
        ),
        *("puppet", "radius", "rsync", "sip", "sip-tls", "smtp", "snmp", "snmp-trap", "snmptrap", "ssh"),
        *(
            "submission",
            "submissions",
            "sunrpc",
            "syslog",
            "syslog-tls",
            "telnet",
            "tftp",
            "whois",
            "xmpp-client",
        ),
        *("xmpp-server", "zabbix-agent", "zabbix-trapper"),
    )
)
_PROTOCOLS = frozenset(
    (
        *(
            "ah",
            "dccp",
            "egp",
            "eigrp",
            "encap",
            "esp",
            "etherip",
            "ggp",
            "gre",
            "hip",
            "hopopt",
            "icmp",
            "idrp",
        ),
        *("idrp", "igmp", "igp", "ip", "ipcomp", "ipencap", "ipip", "ipv6", "ipv6-frag", "ipv6-icmp"),
        *(
            "ipv6-opts",
            "ipv6-route",
            "isis",
            "l2tp",
            "manet",
            "mobility-header",
            "ospf",
            "pim",
            "rdp",
            "rsvp",
        ),
        *("rdp", "rsvp", "sctp", "shim6", "st", "tcp", "udp", "udplite", "vrrp", "icmpv6"),
    )
)
ICMP_TYPES = frozenset(
    (
        *("any", "echo-reply", "destination-unreachable", "network-unreachable", "host-unreachable"),
        *("protocol-unreachable", "port-unreachable", "fragmentation-needed", "source-route-failed"),
        *("network-unknown", "host-unknown", "network-prohibited", "host-prohibited"),
        *("TOS-network-unreachable", "TOS-host-unreachable", "communication-prohibited"),
        *("host-precedence-violation", "precedence-cutoff", "source-quench", "redirect", "network-redirect"),
        *("host-redirect", "TOS-network-redirect", "TOS-host-redirect", "echo-request"),
        *("router-advertisement", "router-solicitation", "time-exceeded", "ttl-zero-during-transit"),
        *("ttl-zero-during-reassembly", "parameter-problem", "ip-header-bad", "required-option-missing"),
        *("timestamp-request", "timestamp-reply", "address-mask-request", "address-mask-reply"),
    )
)
ICMPV6_TYPES = frozenset(
    (
        *("destination-unreachable", "no-route", "communication-prohibited", "beyond-scope"),
        *("address-unreachable", "port-unreachable", "failed-policy", "reject-route", "packet-too-big"),
        *("time-exceeded", "ttl-zero-during-transit", "ttl-zero-during-reassembly", "parameter-problem"),
        *("bad-header", "unknown-header-type", "unknown-option", "echo-request", "echo-reply"),
        *("router-solicitation", "router-advertisement", "neighbor-solicitation", "neighbour-solicitation"),
        *("neighbor-advertisement", "neighbour-advertisement", "redirect"),
    )
)


def ip_version(text: str) -> int:
    """Return 4 or 6 for an address or a network that is known to be one."""
    return 6 if ":" in text else 4


def clean_cidr(text: str) -> str:
    """Return a network with the bits behind its prefix made zero; an address as it is."""
    if "/" not in text:
        return text
    network = ipaddress.ip_network(text, strict=False)
    return f"{network.network_address}/{text.rpartition('/')[2]}"


def strip_full_prefix(text: str) -> str:
    """Return an address without the prefix that says that it is one: `/32`, `/128`."""
    return text.removesuffix("/32" if ip_version(text) == 4 else "/128")


def parse_addresses(text: str) -> int | None:
    """Check the source or destination of a rule.

    Returns:
        The IP version of the addresses; None for an IP set, an alias, or nothing.

    Raises:
        FormatError: It is none, or addresses that do not go together.
    """
    if not text:
        return None
    if re.fullmatch(r"\+\S+", text):
        if len(text) > _LONGEST_NAME + 1:
            raise FormatError("ipset name too long")
        return None
    if ALIAS.fullmatch(text):
        if len(text) > _LONGEST_NAME:
            raise FormatError("alias name too long")
        return None
    parts = text.split(",")
    if not parts[-1]:
        raise FormatError("extraneous commas in list")
    versions = {_check_address(part) for part in parts}
    if len(versions) > 1:
        raise FormatError(f"detected mixed ipv4/ipv6 addresses in address list '{text}'")
    if len(parts) > 1 and any("-" in part for part in parts):
        raise FormatError("you can't use a range in a list")
    return versions.pop()


def _check_address(part: str) -> int:
    first, dash, last = part.partition("-")
    if dash:
        ends = [ipaddress.ip_address(end) for end in (first, last) if _is_address(end)]
        if len(ends) == 2 and ends[0].version == ends[1].version and int(ends[0]) <= int(ends[1]):
            return ends[0].version
        raise FormatError(f"invalid IP address: Invalid range {part}")
    address, slash, prefix = part.partition("/")
    if not _is_address(address):
        raise FormatError(f"invalid IP address: {_address_problem(address)}")
    parsed = ipaddress.ip_address(address)
    if slash:
        _check_prefix(parsed, prefix)
    return parsed.version


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _address_problem(text: str) -> str:
    if not re.fullmatch(r"[\d.]+", text):
        return f"Invalid chars in IP {text}"
    wrong = [quad for quad in text.split(".") if not re.fullmatch(r"[0-9]{1,9}", quad) or int(quad) > 255]
    return f"Invalid quad in IP address {text} - {wrong[0]}" if wrong else f"Invalid IP address {text}"


def _check_prefix(address: ipaddress.IPv4Address | ipaddress.IPv6Address, prefix: str) -> None:
    bits = f"{int(address):0{address.max_prefixlen}b}"
    if not re.fullmatch(r"[0-9]{1,9}", prefix):
        raise FormatError(f"invalid IP address: Invalid prefix length /{prefix}")
    if int(prefix) > len(bits):
        problem = f"Prefix length {prefix} is longer than IP address ({len(bits)})"
        raise FormatError(f"invalid IP address: {problem}")
    if "1" in bits[int(prefix) :]:
        raise FormatError(f"invalid IP address: Invalid prefix {bits}/{prefix}")


def parse_ports(text: str, *, icmp: bool) -> None:
    """Check the ports of a rule.

    Args:
        text: Numbers, names and ranges.
        icmp: Whether it may be an ICMP type, which old clients send as destination port.

    Raises:
        FormatError: It is none.
    """
    parts = text.split(",") if text else ["0"]
    if not parts[-1]:
        raise FormatError("extraneous commas in list")
    count, types = 0, 0
    for part in parts:
        if found := _RANGE.fullmatch(part):
            count += 2
            _check_range(found[1], found[2])
        elif re.fullmatch(r"[0-9]{1,9}", part):
            count += 1
            _check_port(part)
        elif icmp and part in ICMP_TYPES | ICMPV6_TYPES:
            types += 1
        elif not _is_service(part):
            raise FormatError(f"invalid port '{part}'")
    if types and count:
        raise FormatError("ICMP ports not allowed in port range")
    if count > _MOST_PORTS:
        raise FormatError("too many entries in port list (> 15 numbers)")


def _check_port(port: str) -> None:
    if int(port) > _LAST_PORT:
        raise FormatError(f"invalid port '{port}'")


def _check_range(first: str, last: str) -> None:
    _check_port(first)
    _check_port(last)
    if int(first) > int(last):
        raise FormatError(f"backwards range '{first}:{last}' not allowed, did you mean '{last}:{first}'?")


def _is_service(name: str) -> bool:
    if name in _SERVICES:
        return True
    try:
        socket.getservbyname(name)
    except (OSError, ValueError):
        return False
    return True


def _check_protocol(value: str) -> None:
    if not value or value in _PROTOCOLS or (re.fullmatch(r"[0-9]{1,9}", value) and int(value) < 256):
        return
    try:
        socket.getprotobyname(value)
    except (OSError, ValueError) as err:
        raise FormatError(f"unknown protocol '{value}'") from err


def _check_icmp_type(value: str) -> None:
    if value and value not in ICMP_TYPES | ICMPV6_TYPES:
        raise FormatError(f"invalid icmp-type value '{value}'")


def _check_helpers(value: str) -> None:
    helpers = value.split(",")
    if not helpers[-1]:
        raise FormatError("extraneous commas in list")
    for helper in helpers:
        if helper not in _HELPERS:
            raise FormatError(f"unknown helper {helper}")


def _check_ip_or_cidr(value: str) -> None:
    address, slash, prefix = value.partition("/")
    fits = _is_address(address) and (not slash or bool(re.fullmatch(r"[0-9]{1,9}", prefix)))
    if fits and slash:
        fits = int(prefix) <= (32 if ip_version(address) == 4 else 128)
    if not fits:
        raise FormatError("value does not look like a valid IP address or CIDR network")


def _check_ip_or_cidr_or_alias(value: str) -> None:
    if not ALIAS.fullmatch(value):
        _check_ip_or_cidr(value)


FIREWALL_FORMATS: Mapping[str, Checker] = {
    "IPorCIDR": _check_ip_or_cidr,
    "IPorCIDRorAlias": _check_ip_or_cidr_or_alias,
    "pve-fw-addr-spec": parse_addresses,
    "pve-fw-dport-spec": lambda value: parse_ports(value, icmp=True),
    "pve-fw-sport-spec": lambda value: parse_ports(value, icmp=False),
    "pve-fw-protocol-spec": _check_protocol,
    "pve-fw-icmp-type-spec": _check_icmp_type,
    "pve-fw-conntrack-helper": _check_helpers,
}
