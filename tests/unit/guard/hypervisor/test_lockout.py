"""The firewall lets in who runs this, decided as Proxmox does; what cannot be decided is refused."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import AsyncIterator

import pytest
from tests.support.hypervisor_guard import created, judge, removed, updated
from tests.support.lab import LabClient, lab_client

from stackyard.engine.changes import Change
from stackyard.guard.facts import Operator
from stackyard.guard.hypervisor.firewall import Connection, Firewall, NodeFirewall, Rule, admits

NODE = NodeFirewall(address="10.0.0.2", network=ipaddress.ip_network("10.0.0.0/24"))
FAR = "192.0.2.9"
OFF = {"enabled": False, "input_policy": "DROP"}


@pytest.mark.parametrize(
    ("rules", "source", "port", "is_in"),
    [
        ((), "10.0.0.7", 8006, True),
        ((), FAR, 8006, False),
        ((), "127.0.0.1", 8006, True),
        ((), "", 8006, None),
        # Rules come before what Proxmox accepts by itself.
        ((Rule(action="DROP", dport="8006", proto="tcp"),), "10.0.0.7", 8006, False),
        ((Rule(action="DROP", dport="8006", proto="tcp"),), "10.0.0.7", 22, True),
        ((Rule(action="ACCEPT", source=f"{FAR}/32"),), FAR, 8006, True),
        ((Rule(action="ACCEPT", source=f"{FAR}/32", is_enabled=False),), FAR, 8006, False),
        ((Rule(action="ACCEPT", source="192.0.2.1-192.0.2.20", dport="22,8000:8010"),), FAR, 8006, True),
        ((Rule(action="ACCEPT", source="+dc/admins"),), FAR, 8006, True),
        ((Rule(action="ACCEPT", source="+admins"),), "192.0.2.200", 8006, False),
        ((Rule(action="ACCEPT", source="office"),), "198.51.100.4", 22, True),
        ((Rule(action="ACCEPT", macro="SSH"),), FAR, 22, True),
        ((Rule(action="ACCEPT", macro="SSH"),), FAR, 8006, False),
        ((Rule(action="ACCEPT", proto="udp"),), FAR, 22, False),
        ((Rule(action="ACCEPT", direction="out"),), FAR, 22, False),
        ((Rule(action="ACCEPT", dest="10.0.0.3"),), FAR, 22, False),
        ((Rule(group="web"),), FAR, 8006, True),
        ((Rule(action="REJECT"), Rule(action="ACCEPT")), FAR, 8006, False),
        # Nobody can tell over which interface it comes.
        ((Rule(action="ACCEPT", iface="vmbr0"),), FAR, 8006, None),
        ((Rule(action="DROP", iface="vmbr0"),), "10.0.0.7", 8006, None),
        ((Rule(action="DROP", iface="vmbr0"), Rule(action="ACCEPT")), FAR, 8006, None),
        ((Rule(action="ACCEPT", iface="vmbr0"), Rule(action="ACCEPT")), FAR, 8006, True),
    ],
)
def test_rules_decide_in_their_order(
    rules: tuple[Rule, ...], source: str, port: int, is_in: bool | None
) -> None:
    firewall = Firewall(
        is_enabled=True,
        rules=rules,
        groups={"web": (Rule(action="ACCEPT", dport="8006"),)},
        sets={"admins": ("192.0.2.0/24", "!192.0.2.200")},
        aliases={"office": "198.51.100.0/24"},
    )
    assert admits(firewall, NODE, Connection(source=source, port=port)) is is_in


def test_a_firewall_that_is_off_lets_everybody_in() -> None:
    somebody = Connection(source=FAR, port=22)
    assert admits(Firewall(), NODE, somebody) is True
    off = NodeFirewall(address="10.0.0.2", is_enabled=False)
    assert admits(Firewall(is_enabled=True), off, somebody) is True
    assert admits(Firewall(is_enabled=True, policy="ACCEPT"), NODE, somebody) is True
    assert admits(Firewall(is_enabled=True, rules=None), NODE, somebody) is None


PARTS: tuple[Change, ...] = (
    updated(
        "virtual_environment_firewall_alias",
        {"name": "home", "cidr": "192.0.2.0/24"},
        cidr="198.51.100.0/24",
    ),
    removed("virtual_environment_firewall_ipset", name="admins", cidr=[{"name": "home"}]),
    updated("virtual_environment_firewall_ipset", {"name": "admins", "cidr": [{"name": "home"}]}, cidr=[]),
    removed("virtual_environment_cluster_firewall_security_group", name="panel", rule=[]),
    removed("virtual_environment_firewall_rules", rule=[{"security_group": "panel", "type": "group"}]),
    created("virtual_environment_firewall_rules", rule=[{"type": "in", "action": "DROP", "enabled": True}]),
    created(
        "virtual_environment_firewall_rules",
        node_name="pve1",
        rule=[{"type": "in", "action": "DROP", "proto": "tcp", "dport": "22,8006", "enabled": True}],
    ),
)


@contextlib.asynccontextmanager
async def with_rules() -> AsyncIterator[LabClient]:
    """Have a lab whose rules accept 192.0.2.0/24: an alias in a set in a group."""
    async with lab_client() as api:
        await api.post("/cluster/firewall/aliases", name="home", cidr="192.0.2.0/24")
        await api.post("/cluster/firewall/ipset", name="admins")
        await api.post("/cluster/firewall/ipset/admins", cidr="home")
        await api.post("/cluster/firewall/groups", group="panel")
        rule = {"type": "in", "action": "ACCEPT", "enable": 1, "proto": "tcp", "source": "+admins"}
        for port in ("8006", "22"):
            await api.post("/cluster/firewall/groups/panel", dport=port, **rule)
        await api.post("/cluster/firewall/rules", type="group", action="panel", enable=1)
        yield api


async def found(api: LabClient, source: str, *changes: Change) -> list[tuple[str, str]]:
    operator = Operator(api=source, ssh=source)
    rows = await judge(api.running, *changes, operator=operator)
    return [(one.detail, str(one.permit)) for one in rows if one.kind.code == "E-GUARD-SHUTS-OUT"]


async def test_a_firewall_that_shuts_this_machine_out_is_refused() -> None:
    on = updated("virtual_environment_cluster_firewall", OFF, enabled=True)
    async with with_rules() as api:
        assert await found(api, FAR, on) == []
        assert await found(api, "10.31.7.7", on) == []
        assert await found(api, "203.0.113.5", on) == [
            (
                f"On pve1, {what} (port {port}) from 203.0.113.5 would not be accepted any more.",
                "--allow-lockout pve1",
            )
            for what, port in (("API", 8006), ("SSH", 22))
        ]
        assert len(await found(api, "", on)) == 2


async def test_each_part_of_a_firewall_that_is_on_counts() -> None:
    async with with_rules() as api:
        await api.put("/cluster/firewall/options", enable=1)
        for change in PARTS:
            assert len(await found(api, FAR, change)) == 2, change
