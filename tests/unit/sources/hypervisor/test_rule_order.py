"""Rules that never take effect: networks, ports and groups are compared, and not only their texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.hypervisors import SITE
from tests.support.site import findings, write_site

from pvelab.api.firewall.macros import MACROS
from stackyard.desired.firewall_ports import MACRO_PORTS

ORDER, REPEATED = "E-HYPERVISOR-RULE-ORDER", "W-HYPERVISOR-RULE-REPEATED"
HEAD = """\
firewall:
  aliases: {gw: 10.1.0.1, lan: 10.0.0.0/8, six: "2001:db8::/32"}
  ipsets:
    trusted: [10.0.0.0/9, 10.128.0.0/9]
    but: [10.0.0.0/8, {name: 10.1.0.0/16, nomatch: true}]
  groups:
    none: [{type: in, action: DROP}]
    ssh: [{type: in, action: ACCEPT, macro: SSH}, {type: in, action: ACCEPT, proto: tcp, dport: "80"}]
  rules:
"""


def find(folder: Path, *rules: str) -> list[tuple[str, int | None]]:
    """Return the codes about the order of rules, with the rule of the list that each is about."""
    text = HEAD + "".join(f"    - {{{rule}}}\n" for rule in rules)
    write_site(folder, {**SITE, "hypervisors/home.yaml": f"api: pve1\n{text}"})
    first = text.count("\n") - len(rules) + 2
    found = [one for one in findings(folder) if one.kind.code in (ORDER, REPEATED)]
    return [
        (one.kind.code, one.where.line - first if one.where and one.where.line else None) for one in found
    ]


def drop(conditions: str) -> str:
    return f"type: in, action: DROP, {conditions}"


def accept(conditions: str) -> str:
    return f"type: in, action: ACCEPT, {conditions}"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("source: 10.0.0.0/8", "source: 10.1.0.0/16"),
        ("source: 10.0.0.0/8", "source: '10.1.0.0/16,10.2.0.1'"),
        ("source: 10.0.0.0/8", "source: 10.1.0.1-10.1.0.9, proto: tcp, dport: '22'"),
        ("source: '10.0.0.0/9,10.128.0.0/9'", "source: 10.0.0.0/8"),
        ("source: lan", "source: dc/gw"),
        ("source: +trusted", "source: lan"),
        ("source: +dc/trusted", "source: +but"),
        ("dest: six", "dest: '2001:db8:1::/48'"),
        ("proto: tcp, dport: '20:30'", "proto: tcp, dport: '22'"),
        ("proto: tcp, dport: '20:30'", "proto: '6', dport: ssh"),
        ("proto: tcp, dport: '20:30'", "macro: SSH"),
        ("proto: tcp", "macro: Web"),
        ("proto: tcp, dport: '80,443'", "macro: web"),
        ("macro: DNS", "proto: udp, dport: domain"),
        ("proto: tcp, dport: '20:21,22:30'", "proto: tcp, dport: '21:25', sport: '1024:65535'"),
        ("macro: Ping", "macro: Ping, source: 10.0.0.1"),
    ],
)
def test_a_rule_whose_traffic_an_earlier_one_takes_is_reported(
    first: str, second: str, tmp_path: Path
) -> None:
    assert find(tmp_path / "a", drop(first), accept(second)) == [(ORDER, 1)]
    assert find(tmp_path / "b", accept(first), accept(second)) == [(REPEATED, 1)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("source: 10.1.0.0/16", "source: 10.0.0.0/8"),
        ("source: 0.0.0.0/0", "proto: tcp"),
        ("source: 10.0.0.0/8", "source: six"),
        ("source: 10.0.0.0/8", "dest: 10.1.0.0/16"),
        ("source: +but", "source: 10.1.0.1"),
        ("source: +unknown", "source: 10.1.0.1"),
        ("source: 10.0.0.0/8", "source: +unknown"),
        ("iface: vmbr0", "iface: vmbr1"),
        ("proto: tcp, dport: '20:30'", "proto: udp, dport: '22'"),
        ("proto: tcp, dport: '20:30'", "proto: tcp, dport: '22,80'"),
        ("proto: tcp, dport: '22', sport: '1024:65535'", "macro: SSH"),
        ("proto: tcp, dport: '53'", "macro: DNS"),
        ("proto: udp, dport: '33434:33524'", "macro: Trcrt"),
        ("proto: tcp, dport: '1:65535'", "proto: tcp, dport: a-service-of-ours"),
        ("proto: icmp, dport: echo-request", "proto: icmp, dport: echo-reply"),
    ],
)
def test_a_rule_that_may_still_match_is_not_reported(first: str, second: str, tmp_path: Path) -> None:
    assert find(tmp_path, drop(first), accept(second)) == []


def test_groups_count_where_they_are_included(tmp_path: Path) -> None:
    last = accept("macro: HTTP")
    assert find(tmp_path / "a", "security_group: none", last) == [(ORDER, 1)]
    assert find(tmp_path / "b", "security_group: none, enabled: false", last) == []
    assert find(tmp_path / "c", "security_group: none, iface: vmbr1", last) == []
    assert find(tmp_path / "d", drop("proto: tcp"), "security_group: ssh") == [(ORDER, 1)]
    # One of its rules still takes effect.
    assert find(tmp_path / "e", drop("macro: SSH"), "security_group: ssh") == []
    assert find(tmp_path / "f", accept("proto: tcp"), "security_group: ssh") == [(REPEATED, 1)]


def test_the_ports_of_macros_are_those_that_the_firewall_gives_them() -> None:
    for name, parts in MACRO_PORTS.items():
        (macro,) = (one for spelled, one in MACROS.items() if spelled.lower() == name)
        said = tuple(
            tuple(match[key] for key in ("proto", "dport", "sport") if key in match)
            for match in macro.matches
        )
        assert (name, said) == (name, parts)
