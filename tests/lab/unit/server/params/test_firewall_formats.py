"""Which addresses, ports and protocols a firewall rule can have."""

from __future__ import annotations

import pytest

from pvelab.server.params.firewall_formats import (
    FIREWALL_FORMATS,
    clean_cidr,
    parse_addresses,
    strip_full_prefix,
)
from pvelab.server.params.texts import FormatError


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("10.0.0.1", 4),
        ("10.0.0.0/8,192.168.0.1", 4),
        ("10.0.0.1-10.0.0.9", 4),
        ("fd00::/64", 6),
        ("+dc/blue", None),
        ("guest/web", None),
        ("", None),
    ],
)
def test_addresses_tell_their_ip_version(text: str, version: int | None) -> None:
    assert parse_addresses(text) == version


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("10.0.0.1,", "extraneous commas in list"),
        ("10.0.0.9-10.0.0.1", "Invalid range 10.0.0.9-10.0.0.1"),
        ("10.0.0.1-fd00::1", "Invalid range 10.0.0.1-fd00::1"),
        ("10.0.0.0/40", "Prefix length 40 is longer than IP address (32)"),
        ("10.0.0.0/x", "Invalid prefix length /x"),
        ("10.0.0", "Invalid IP address 10.0.0"),
        ("1a.2", "Invalid chars in IP 1a.2"),
        (f"+{'x' * 65}", "ipset name too long"),
        ("x" * 65, "alias name too long"),
    ],
)
def test_what_is_wrong_with_addresses_is_said(text: str, problem: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_addresses(text)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [
        (
            "pve-fw-dport-spec",
            ["22", "ssh,80:90", "echo-request", ""],
            ["0:70000", "echo-request,5", "a b", "\0"],
        ),
        ("pve-fw-sport-spec", ["1024:65535"], ["echo-request", "80,"]),
        ("pve-fw-protocol-spec", ["tcp", "icmpv6", "50", ""], ["300", "tcpudp", "\0"]),
        ("pve-fw-icmp-type-spec", ["echo-request", "no-route", ""], ["8"]),
        ("pve-fw-conntrack-helper", ["ftp,sip"], ["ftp,", "http"]),
        ("IPorCIDR", ["10.0.0.7/24", "fd00::"], ["10.0.0.0/33", "10.0.0.0/-1", "web"]),
        ("IPorCIDRorAlias", ["dc/web", "10.0.0.1"], ["+web", "1web"]),
    ],
)
def test_formats_accept_and_refuse(name: str, accepted: list[str], refused: list[str]) -> None:
    for text in accepted:
        FIREWALL_FORMATS[name](text)
    for text in refused:
        with pytest.raises(FormatError):
            FIREWALL_FORMATS[name](text)


def test_networks_are_kept_in_plain_form() -> None:
    assert clean_cidr("10.1.2.3/16") == "10.1.0.0/16"
    assert clean_cidr("10.1.2.3") == "10.1.2.3"
    assert strip_full_prefix("10.0.0.1/32") == "10.0.0.1"
    assert strip_full_prefix("fd00::1/128") == "fd00::1"
    assert strip_full_prefix("fd00::/32") == "fd00::/32"
