"""The macros of the firewall: names for the protocols and ports of well-known services."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import bad_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MACROS", "Macro", "check_macro", "macro_name"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Macro:
    """A macro.

    Attributes:
        description: What it is for.
        matches: What its rules match, each with `proto` and perhaps `dport` and `sport`.
        matches6: What they match in IPv6 instead.
        only: The IP version that it is for, None for both.
    """

    description: str
    matches: tuple[Mapping[str, str], ...]
    matches6: tuple[Mapping[str, str], ...] | None = None
    only: int | None = None

    def in_version(self, version: int | None) -> tuple[Mapping[str, str], ...]:
        """Return what the macro matches in an IP version, nothing if it is for the other one."""
        if version and self.only and version != self.only:
            return ()
        return self.matches6 if version == 6 and self.matches6 is not None else self.matches


def _matches(*texts: str) -> tuple[Mapping[str, str], ...]:
    keys = ("proto", "dport", "sport")
    return tuple(dict(zip(keys, text.split(), strict=False)) for text in texts)


def _macro(description: str, *matches: str) -> Macro:
    return Macro(description=description, matches=_matches(*matches))


MACROS: Mapping[str, Macro] = {
    "Amanda": _macro("Backups with Amanda", "udp 10080", "tcp 10080"),
    "Auth": _macro("identd", "tcp 113"),
    "BGP": _macro("BGP routing", "tcp 179"),
    "BitTorrent": _macro("BitTorrent up to release 3.1", "tcp 6881:6889", "udp 6881"),
    "BitTorrent32": _macro("BitTorrent from release 3.2 on", "tcp 6881:6999", "udp 6881"),
    "CVS": _macro("CVS pserver", "tcp 2401"),
    "Ceph": _macro("Ceph monitors, OSDs and metadata servers", "tcp 6789", "tcp 3300", "tcp 6800:7300"),
    "Citrix": _macro("Citrix ICA, its browser and CGP", "tcp 1494", "udp 1604", "tcp 2598"),
    "DAAP": _macro("Shared music (DAAP)", "tcp 3689", "udp 3689"),
    "DCC": _macro("DCC spam checksums", "tcp 6277"),
    "DHCPfwd": _macro("DHCP through a relay", "udp 67:68 67:68"),
    "DHCPv6": Macro(description="DHCP in IPv6", matches=_matches("udp 546:547 546:547"), only=6),
    "DNS": _macro("DNS over UDP and TCP", "udp 53", "tcp 53"),
    "Distcc": _macro("Distributed compiling", "tcp 3632"),
    "FTP": _macro("FTP control connections", "tcp 21"),
    "Finger": _macro("Finger", "tcp 79"),
    "GNUnet": _macro("GNUnet peers", "tcp 2086", "udp 2086", "tcp 1080", "udp 1080"),
    "GRE": _macro("GRE tunnels", "47"),
    "Git": _macro("The git protocol", "tcp 9418"),
    "HKP": _macro("OpenPGP key servers", "tcp 11371"),
    "HTTP": _macro("HTTP", "tcp 80"),
    "HTTPS": _macro("HTTP over TLS", "tcp 443"),
    "ICPV2": _macro("Caches that ask each other (ICP)", "udp 3130"),
    "ICQ": _macro("ICQ and AIM", "tcp 5190"),
    "IMAP": _macro("IMAP", "tcp 143"),
    "IMAPS": _macro("IMAP over TLS", "tcp 993"),
    "IPIP": _macro("IP in IP tunnels", "94"),
    "IPsec": _macro("IPsec with ESP", "udp 500 500", "50"),
    "IPsecah": _macro("IPsec with AH", "udp 500 500", "51"),
    "IPsecnat": _macro("IPsec through NAT", "udp 500", "udp 4500", "50"),
    "IRC": _macro("IRC", "tcp 6667"),
    "Jetdirect": _macro("Printing to JetDirect ports", "tcp 9100"),
    "L2TP": _macro("L2TP tunnels", "udp 1701"),
    "LDAP": _macro("LDAP", "tcp 389"),
    "LDAPS": _macro("LDAP over TLS", "tcp 636"),
    "MDNS": _macro("DNS by multicast", "udp 5353"),
    "MSNP": _macro("MSN messenger", "tcp 1863"),
    "MSSQL": _macro("Microsoft SQL Server", "tcp 1433"),
    "Mail": _macro("Mail between servers and from clients", "tcp 25", "tcp 465", "tcp 587"),
    "Munin": _macro("Munin nodes", "tcp 4949"),
    "MySQL": _macro("MySQL and MariaDB", "tcp 3306"),
    "NNTP": _macro("Usenet news", "tcp 119"),
    "NNTPS": _macro("Usenet news over TLS", "tcp 563"),
    "NTP": _macro("NTP", "udp 123"),
    "NeighborDiscovery": Macro(
        description="Neighbours and routers of IPv6",
        matches=_matches(
            "icmpv6 router-solicitation",
            "icmpv6 router-advertisement",
            "icmpv6 neighbor-solicitation",
            "icmpv6 neighbor-advertisement",
        ),
        only=6,
    ),
    "OSPF": _macro("OSPF routing", "89"),
    "OpenVPN": _macro("OpenVPN", "udp 1194"),
    "PCA": _macro("pcAnywhere", "udp 5632", "tcp 5631"),
    "PMG": _macro("Web pages of Proxmox Mail Gateway", "tcp 8006"),
    "POP3": _macro("POP3", "tcp 110"),
    "POP3S": _macro("POP3 over TLS", "tcp 995"),
    "PPtP": _macro("PPTP tunnels", "47", "tcp 1723"),
    "Ping": Macro(
        description="Ping",
        matches=_matches("icmp echo-request"),
        matches6=_matches("icmpv6 echo-request"),
    ),
    "PostgreSQL": _macro("PostgreSQL", "tcp 5432"),
    "Printer": _macro("Printing to LPD", "tcp 515"),
    "RDP": _macro("Remote desktops (RDP)", "tcp 3389"),
    "RIP": _macro("RIP routing", "udp 520"),
    "RNDC": _macro("Control of BIND", "tcp 953"),
    "Razor": _macro("Razor against spam", "tcp 2703"),
    "Rdate": _macro("rdate", "tcp 37"),
    "Rsync": _macro("The rsync daemon", "tcp 873"),
    "SANE": _macro("Scanners in the network (SANE)", "tcp 6566"),
    "SMB": _macro("Windows shares", "udp 135,445", "udp 137:139", "udp 1024:65535 137", "tcp 135,139,445"),
    "SMBswat": _macro("Web pages of Samba", "tcp 901"),
    "SMTP": _macro("Mail between servers", "tcp 25"),
    "SMTPS": _macro("Mail over TLS", "tcp 465"),
    "SNMP": _macro("SNMP", "udp 161:162", "tcp 161"),
    "SPAMD": _macro("The SpamAssassin daemon", "tcp 783"),
    "SPICEproxy": _macro("Consoles of Proxmox VE by SPICE", "tcp 3128"),
    "SSH": _macro("SSH", "tcp 22"),
    "SVN": _macro("svnserve", "tcp 3690"),
    "SixXS": _macro("SixXS tunnels", "tcp 3874", "udp 3740", "41", "udp 5072,8374"),
    "Squid": _macro("Squid", "tcp 3128"),
    "Submission": _macro("Mail from clients", "tcp 587"),
    "Syslog": _macro("syslog", "udp 514", "tcp 514"),
    "TFTP": _macro("TFTP", "udp 69"),
    "Telnet": _macro("Telnet", "tcp 23"),
    "Telnets": _macro("Telnet over TLS", "tcp 992"),
    "Time": _macro("The time protocol of RFC 868", "tcp 37"),
    "Trcrt": Macro(
        description="traceroute",
        matches=_matches("udp 33434:33524", "icmp echo-request"),
        matches6=_matches("udp 33434:33524", "icmpv6 echo-request"),
    ),
    "VNC": _macro("The first hundred displays of VNC", "tcp 5900:5999"),
    "VNCL": _macro("VNC viewers that listen", "tcp 5500"),
    "Web": _macro("HTTP, plain and over TLS", "tcp 80", "tcp 443"),
    "Webcache": _macro("Web caches on port 8080", "tcp 8080"),
    "Webmin": _macro("Webmin", "tcp 10000"),
    "Whois": _macro("whois", "tcp 43"),
}

_BY_SMALL_NAME = {name.lower(): name for name in MACROS}


def macro_name(name: str) -> str | None:
    """Return a macro's name as it is spelt, for any mix of letters; None if there is no such macro."""
    return _BY_SMALL_NAME.get(name.lower())


def check_macro(rule: Mapping[str, Any], version: int | None) -> None:
    """Refuse a rule that says otherwise than its macro.

    Raises:
        PveError: 400, naming the property.
    """
    for match in MACROS[rule["macro"]].in_version(version):
        for key, value in match.items():
            if key in rule and str(rule[key]) != value:
                raise bad_parameter(key, f"parameter '{key}' already define in macro (value = '{value}')")
