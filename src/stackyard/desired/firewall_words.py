"""The words of the firewall: what a rule may say of protocols, ports and addresses.

Each function returns a value as Proxmox keeps it, and raises a `ValueError` that says what is wrong.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.suggestions import closest

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ACTIONS",
    "ICMP",
    "MACROS",
    "WITH_PORTS",
    "FirewallName",
    "check_action",
    "check_addresses",
    "check_alias_address",
    "check_macro",
    "check_ports",
    "check_protocol",
    "check_set_entry",
    "name_in",
]

ACTIONS = ("ACCEPT", "DROP", "REJECT")
MACROS = tuple(
    """
    Amanda Auth BGP BitTorrent BitTorrent32 CVS Ceph Citrix DAAP DCC DHCPfwd DHCPv6 DNS Distcc FTP Finger
    GNUnet GRE Git HKP HTTP HTTPS ICPV2 ICQ IMAP IMAPS IPIP IPsec IPsecah IPsecnat IRC Jetdirect L2TP LDAP
    LDAPS MDNS MSNP MSSQL Mail Munin MySQL NNTP NNTPS NTP NeighborDiscovery OSPF OpenVPN PCA PMG POP3 POP3S
    PPtP Ping PostgreSQL Printer RDP RIP RNDC Razor Rdate Rsync SANE SMB SMBswat SMTP SMTPS SNMP SPAMD
    SPICEproxy SSH SVN SixXS Squid Submission Syslog TFTP Telnet Telnets Time Trcrt VNC VNCL Web Webcache
    Webmin Whois
    """.split()
)
# Those of /etc/protocols that every Debian knows; this machine may have a shorter list.
_PROTOCOLS = frozenset(
    """
    ah dccp egp eigrp encap esp etherip ggp gre hip hopopt icmp icmpv6 idrp igmp igp ip ipcomp ipencap ipip
    ipv6 ipv6-frag ipv6-icmp ipv6-nonxt ipv6-opts ipv6-route isis l2tp manet mobility-header ospf pim rdp rspf
    rsvp sctp shim6 skip st tcp udp udplite vmtp vrrp wesp xtp
    """.split()
)
# Protocols with ports, and those whose type may stand in the place of a port.
WITH_PORTS = frozenset("tcp 6 udp 17 udplite 136 dccp 33 sctp 132".split())
ICMP = frozenset(("icmp", "icmpv6", "ipv6-icmp"))
# Which names are services is the node's to know; each has a letter.
_SERVICE = re.compile(r"(?=.*[a-z])[a-z0-9][a-z0-9+._-]*", re.IGNORECASE)
_USUAL = ("tcp", "udp", "icmp", "ipv6-icmp", "sctp", "gre", "esp")
_NAME = r"[A-Za-z][A-Za-z0-9_-]+"
_REFERENCE = re.compile(rf"(\+?)(?:(dc|guest|sdn)/)?({_NAME})")
_ALIAS = re.compile(rf"(?:(?:dc|guest)/)?{_NAME}")
_LAST_PORT = 65535
_MOST_PORTS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class FirewallName:
    """A name in a rule.

    Attributes:
        name: The name.
        scope: `guest` or `dc` where it says whose it is, else empty: the guest's own, then the cluster's.
        is_set: Whether it is that of an IP set, and not of an alias.
    """

    name: str
    scope: str
    is_set: bool

    def __str__(self) -> str:
        return f"{'IP set' if self.is_set else 'alias'} `{self.name}`"


def name_in(text: str) -> FirewallName | None:
    """Return the alias or IP set that an address stands for; None where it is no name."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        return None
    return FirewallName(name=found[3], scope=found[2] or "", is_set=bool(found[1]))


def check_action(text: str) -> str:
    """Return what a rule does."""
    if text not in ACTIONS:
        raise ValueError(f"there is no action `{text}`{_suggest(text, ACTIONS)}")
    return text


def check_macro(text: str) -> str:
    """Return a macro in Proxmox's spelling."""
    spelled = {macro.lower(): macro for macro in MACROS}.get(text.lower())
    if spelled is None:
        raise ValueError(f"there is no macro `{text}`{_suggest(text, MACROS)}")
    return spelled


def _suggest(text: str, known: Iterable[str]) -> str:
    spelled = {name.lower(): name for name in known}
    near = closest(text.lower(), spelled)
    return "" if near is None else f"; it may be `{spelled[near]}`"


def check_protocol(text: str) -> str:
    """Return a protocol: a name of /etc/protocols, or a number."""
    if text in _PROTOCOLS or (text.isascii() and text.isdecimal() and int(text) < 256):
        return text
    try:
        socket.getprotobyname(text)
    except (OSError, ValueError):
        raise ValueError(f"there is no protocol `{text}`{_suggest(text, _USUAL)}") from None
    return text


def check_ports(text: str) -> str:
    """Return ports: numbers, ranges as 8000:8100 and names of services, with commas between them."""
    count = 0
    for part in text.split(","):
        first, colon, last = part.partition(":")
        if colon:
            if _port(first) > _port(last):
                raise ValueError(f"the range {part} is backwards; it may be {last}:{first}")
            count += 2
        elif part.isascii() and part.isdecimal():
            _port(part)
            count += 1
        elif not _SERVICE.fullmatch(part):
            hint = " (a range has a colon: 8000:8100)" if re.fullmatch(r"\d+-\d+", part) else ""
            raise ValueError(f"`{part}` is no port{hint}")
    if count > _MOST_PORTS:
        raise ValueError(f"a rule has at most {_MOST_PORTS} ports, a range counts as two; these are {count}")
    return text


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) > _LAST_PORT:
        raise ValueError(f"`{text}` is no port: 0 to {_LAST_PORT}")
    return int(text)


def check_addresses(text: str) -> str:
    """Return a source or destination: addresses, networks, a range, an alias, or an IP set as `+name`."""
    if name_in(text) is not None:
        return text
    if text.startswith("+"):
        raise ValueError(f"`{text}` is no IP set: `+name`, `+guest/name` or `+dc/name`")
    parts = text.split(",")
    if len(parts) > 1 and any("-" in part for part in parts):
        raise ValueError("a range cannot be in a list of addresses: make an IP set, or one rule for each")
    versions = {_address_version(part) for part in parts}
    if len(versions) > 1:
        raise ValueError("IPv4 and IPv6 cannot be in one rule: make one for each")
    return text


def _address_version(part: str) -> int:
    first, dash, last = part.partition("-")
    try:
        if dash:
            ends = ipaddress.ip_address(first), ipaddress.ip_address(last)
            if ends[0].version != ends[1].version or int(ends[0]) > int(ends[1]):
                raise ValueError(f"the range {part} is backwards, or of two versions of IP")
            return ends[0].version
        found = ipaddress.ip_interface(part)
    except ValueError as err:
        if str(err).startswith("the range"):
            raise
        raise ValueError(f"`{part}` is no address, network, range, alias or IP set (+name)") from None
    if "%" in part:
        raise ValueError(f"`{part}` has a zone, which no rule can have")
    if found.ip != found.network.network_address and "/" in part:
        raise ValueError(f"`{part}` is the address of a host; its network is {found.network}")
    return found.version


def check_alias_address(text: str) -> str:
    """Return the address or network of an alias."""
    _address_version(text)
    if "-" in text:
        raise ValueError(f"`{text}` is a range; an alias is an address or a network")
    return text


def check_set_entry(text: str) -> str:
    """Return an entry of an IP set: an address, a network or an alias."""
    if _ALIAS.fullmatch(text):
        return text
    check_alias_address(text)
    if text.endswith("/0"):
        raise ValueError("an IP set has no networks of length 0: leave the address out of the rule instead")
    return text
