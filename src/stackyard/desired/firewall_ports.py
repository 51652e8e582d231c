"""The ports behind the macros and the names of services that firewall rules have."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MACRO_PORTS", "SERVICES"]

# Macros of TCP and UDP alone; each part has a protocol, ports, and source ports where those count.
_MACROS = """
    Amanda udp 10080 + tcp 10080
    Auth tcp 113
    BGP tcp 179
    BitTorrent tcp 6881:6889 + udp 6881
    BitTorrent32 tcp 6881:6999 + udp 6881
    CVS tcp 2401
    Ceph tcp 6789 + tcp 3300 + tcp 6800:7300
    Citrix tcp 1494 + udp 1604 + tcp 2598
    DAAP tcp 3689 + udp 3689
    DCC tcp 6277
    DHCPfwd udp 67:68 67:68
    DNS udp 53 + tcp 53
    Distcc tcp 3632
    FTP tcp 21
    Finger tcp 79
    GNUnet tcp 2086 + udp 2086 + tcp 1080 + udp 1080
    Git tcp 9418
    HKP tcp 11371
    HTTP tcp 80
    HTTPS tcp 443
    ICPV2 udp 3130
    ICQ tcp 5190
    IMAP tcp 143
    IMAPS tcp 993
    IRC tcp 6667
    Jetdirect tcp 9100
    L2TP udp 1701
    LDAP tcp 389
    LDAPS tcp 636
    MDNS udp 5353
    MSNP tcp 1863
    MSSQL tcp 1433
    Mail tcp 25 + tcp 465 + tcp 587
    Munin tcp 4949
    MySQL tcp 3306
    NNTP tcp 119
    NNTPS tcp 563
    NTP udp 123
    OpenVPN udp 1194
    PCA udp 5632 + tcp 5631
    PMG tcp 8006
    POP3 tcp 110
    POP3S tcp 995
    PostgreSQL tcp 5432
    Printer tcp 515
    RDP tcp 3389
    RIP udp 520
    RNDC tcp 953
    Razor tcp 2703
    Rdate tcp 37
    Rsync tcp 873
    SANE tcp 6566
    SMB udp 135,445 + udp 137:139 + udp 1024:65535 137 + tcp 135,139,445
    SMBswat tcp 901
    SMTP tcp 25
    SMTPS tcp 465
    SNMP udp 161:162 + tcp 161
    SPAMD tcp 783
    SPICEproxy tcp 3128
    SSH tcp 22
    SVN tcp 3690
    Squid tcp 3128
    Submission tcp 587
    Syslog udp 514 + tcp 514
    TFTP udp 69
    Telnet tcp 23
    Telnets tcp 992
    Time tcp 37
    VNC tcp 5900:5999
    VNCL tcp 5500
    Web tcp 80 + tcp 443
    Webcache tcp 8080
    Webmin tcp 10000
    Whois tcp 43
"""


def _read_macros() -> dict[str, tuple[tuple[str, ...], ...]]:
    lines = (line.split(maxsplit=1) for line in _MACROS.strip().splitlines())
    return {name.lower(): tuple(tuple(part.split()) for part in text.split("+")) for name, text in lines}


# By the name in small letters: protocol, ports, and source ports of each part.
MACRO_PORTS: Mapping[str, tuple[tuple[str, ...], ...]] = _read_macros()
# The services that rules usually name, as every Debian has them in /etc/services.
SERVICES: Mapping[str, int] = {
    "domain": 53,
    "ftp": 21,
    "http": 80,
    "https": 443,
    "imap2": 143,
    "imaps": 993,
    "ldap": 389,
    "ldaps": 636,
    "nfs": 2049,
    "ntp": 123,
    "pop3": 110,
    "pop3s": 995,
    "smtp": 25,
    "ssh": 22,
    "submission": 587,
    "syslog": 514,
    "telnet": 23,
}
