"""Firewalls and replications of guests: what is wrong with them is said of each field, and all at once."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from stackyard.desired import Desired, Firewall, FirewallRule, Vm, problems
from stackyard.desired.schedule import check_schedule

ACCEPT = {"type": "in", "action": "ACCEPT"}


def vm(**fields: Any) -> Vm:
    nics = [{"firewall": True, "ipv4": "192.0.2.10/24"}]
    return Vm.model_validate({"key": "web", "name": "web", "node": "pve1", "nics": nics, **fields})


def texts(**fields: Any) -> list[str]:
    return [problem.text for problem in problems(Desired(vms=(vm(**fields),)))]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({**ACCEPT, "macro": "htpp"}, "no macro `htpp`; it may be `HTTP`"),
        ({**ACCEPT, "proto": "tpc"}, "no protocol `tpc`; it may be `tcp`"),
        ({**ACCEPT, "proto": "300"}, "no protocol"),
        ({**ACCEPT, "proto": "tcp", "dport": "8000-8100"}, "a range has a colon"),
        ({**ACCEPT, "proto": "tcp", "dport": "90:80"}, "it may be 80:90"),
        ({**ACCEPT, "proto": "tcp", "dport": 70000}, "no port: 0 to 65535"),
        ({**ACCEPT, "proto": "tcp", "dport": "1,2,3,4,5,6,7,8,9,10,11,12,13:14,15:16"}, "at most 15"),
        ({**ACCEPT, "dport": "22"}, "`dport` needs a `proto`"),
        ({**ACCEPT, "proto": "gre", "dport": "22"}, "gre has no ports"),
        ({**ACCEPT, "macro": "SSH", "proto": "tcp"}, "says protocol and port itself"),
        ({**ACCEPT, "source": "10.0.0.300"}, "is no address, network, range, alias or IP set"),
        ({**ACCEPT, "source": "10.0.0.1/8"}, "its network is 10.0.0.0/8"),
        ({**ACCEPT, "source": "10.0.0.9-10.0.0.1"}, "backwards"),
        ({**ACCEPT, "source": "10.0.0.0/8,fd00::/8"}, "IPv4 and IPv6 cannot be in one rule"),
        ({**ACCEPT, "dest": "+no set"}, "is no IP set"),
        ({**ACCEPT, "action": "ALLOW"}, "'ACCEPT', 'DROP' or 'REJECT'"),
        ({**ACCEPT, "iface": "eth0"}, "pattern"),
        ({"action": "DROP"}, "a rule needs `type`"),
        ({"security_group": "web", "dport": "80"}, "rules of its own: remove `dport`"),
        ({"security_group": "Web"}, "pattern"),
    ],
)
def test_a_rule_that_proxmox_would_refuse_is_refused(rule: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        FirewallRule.model_validate(rule)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "rule",
    [
        {**ACCEPT, "macro": "ssh", "sport": "1024:65535"},
        {**ACCEPT, "proto": "tcp", "dport": "22,https,8000:8100"},
        {**ACCEPT, "proto": "icmp", "dport": "echo-request"},
        {**ACCEPT, "source": "10.0.0.1-10.0.0.9", "dest": "fd00::/8"},
        {**ACCEPT, "source": "dc/office", "dest": "+guest/peers"},
        {"security_group": "web", "iface": "net0"},
    ],
)
def test_a_rule_that_proxmox_takes_is_taken(rule: dict[str, Any]) -> None:
    assert FirewallRule.model_validate(rule).enabled


def test_short_forms_are_the_long_ones() -> None:
    short = {"aliases": {"office": "10.0.0.0/8"}, "ipsets": {"peers": ["10.1.0.1", "guest/office"]}}
    long = {
        "aliases": {"office": {"cidr": "10.0.0.0/8"}},
        "ipsets": {"peers": {"entries": [{"name": "10.1.0.1"}, {"name": "guest/office"}]}},
    }
    assert Firewall.model_validate(short) == Firewall.model_validate(long)
    assert hash(Firewall.model_validate(short)) == hash(Firewall.model_validate(long))
    assert (
        vm(replication="pve2") == vm(replication={"target": "pve2"}) == vm(replication=[{"target": "pve2"}])
    )


def test_two_spellings_of_an_alias_are_one_name() -> None:
    with pytest.raises(ValidationError, match="are one to Proxmox"):
        Firewall.model_validate({"aliases": {"office": "10.0.0.1", "Office": "10.0.0.2"}})


def test_replications_go_to_other_nodes_once_each() -> None:
    jobs = ["pve1", "pve2", {"target": "pve3", "number": 1}, "pve2"]
    assert texts(replication=jobs) == [
        "web replicates to pve1, which is its own node.",
        "web has two replications with the number 1. To pve2 and pve3.",
        "web replicates to pve2 twice.",
    ]


def test_rules_name_cards_and_addresses_that_the_guest_has() -> None:
    rules = [
        {**ACCEPT, "iface": "net1"},
        {**ACCEPT, "source": "guest/office", "dest": "+guest/peers"},
        {**ACCEPT, "source": "dc/office", "dest": "+peers"},
    ]
    assert texts(firewall={"rules": rules}) == [
        "web has no card net1 for a rule: it has 1.",
        "The firewall of web has no alias `office`.",
        "The firewall of web has no IP set `peers`.",
    ]
    own = {"rules": rules[1:], "aliases": {"Office": "10.0.0.1"}, "ipsets": {"peers": []}}
    assert texts(firewall=own) == []


@pytest.mark.parametrize(
    "text",
    ["*/15", "daily", "22:30", "mon..fri 22:30", "sat *-1..7 04:00", "*-02-29", "2028-2-29 1:00", "30 UTC"],
)
def test_schedules_of_proxmox_are_taken(text: str) -> None:
    assert check_schedule(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "event is empty"),
        ("dayly", "weekday 'dayly'"),
        ("fri..mon 1:00", "range 'fri..mon'"),
        ("25:00", "out of range"),
        ("*:60", "out of range"),
        ("*/0", "out of range"),
        ("*-02-30", "a day that never comes"),
        ("2027-02-29", "a day that never comes"),
        ("04,06-31", "a day that never comes"),
        ("1-2-3-4", "unable to parse date"),
        ("1:2:3:4", "unable to parse"),
        ("daily 1:00", "weekday 'daily'"),
        ("mon 1:00 2:00", "unable to parse"),
    ],
)
def test_schedules_that_never_run_or_are_none_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_schedule(text)
