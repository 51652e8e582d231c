"""Firewall kinds: what they refuse, spellings of Proxmox's own, and what bpg cannot do."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.provider import lab_api
from tests.support.provider_bench import Bench, Failed, bench

from stackyard import lab
from stackyard.provider.problems import ImportIdError
from stackyard.provider.session import Session
from stackyard.provider.values import UNKNOWN

PREFIX = "proxmox_virtual_environment_"
ALIAS, IPSET, OPTIONS, RULES = (f"{PREFIX}firewall_{kind}" for kind in ("alias", "ipset", "options", "rules"))
GROUP, CLUSTER = f"{PREFIX}cluster_firewall_security_group", f"{PREFIX}cluster_firewall"
NODE = "proxmox_node_firewall"
VM = {"node_name": "pve1", "vm_id": 100}
AT_VM = "/nodes/pve1/qemu/100/firewall"
ACCEPT = {"type": "in", "action": "ACCEPT"}


def offline() -> Bench:
    """Return a provider that only plans and validates."""
    return Bench(Session())


@pytest.mark.parametrize(
    ("type_name", "given", "found"),
    [
        (RULES, "cluster", {}),
        (RULES, "node/pve1", {"node_name": "pve1"}),
        (RULES, "vm/pve1/100", VM),
        (RULES, "container/pve1/200", {"node_name": "pve1", "container_id": 200}),
        (OPTIONS, "vm/pve1/100", VM),
        (OPTIONS, "container/pve1/200", {"node_name": "pve1", "container_id": 200}),
        (IPSET, "cluster/web", {"name": "web"}),
        (IPSET, "vm/pve1/100/web", {**VM, "name": "web"}),
        (ALIAS, "container/pve1/200/Web", {"node_name": "pve1", "container_id": 200, "name": "Web"}),
        (GROUP, "web", {"name": "web"}),
        (NODE, "pve1", {"node_name": "pve1"}),
    ],
)
def test_the_id_of_an_import_names_the_firewall(type_name: str, given: str, found: dict[str, Any]) -> None:
    named = offline().known(type_name).kind.identify(given)
    assert {name: value for name, value in named.items() if name != "id"} == found


@pytest.mark.parametrize(
    ("type_name", "given"),
    [
        *((RULES, given) for given in ("", "node/", "pve1", "vm/pve1", "vm/pve1/x", "vm//1", "cluster/a")),
        *((OPTIONS, given) for given in ("cluster", "node/pve1", "vm/pve1/1/2")),
        *((IPSET, given) for given in ("web", "cluster/", "node/pve1/web", "vm/pve1/web", "vm/pve1/x/web")),
        (ALIAS, "web"),
    ],
)
def test_the_id_of_no_firewall_is_refused(type_name: str, given: str) -> None:
    with pytest.raises(ImportIdError, match="The id has the form"):
        offline().known(type_name).kind.identify(given)


@pytest.mark.parametrize(
    ("type_name", "config", "said"),
    [
        (RULES, {"rule": [{"type": "in"}]}, "needs `action`, or else `security_group`"),
        (RULES, {"rule": [{**ACCEPT, "action": "accept"}]}, "must be one of ACCEPT"),
        (RULES, {"rule": [{**ACCEPT, "type": "IN"}]}, "must be one of in, out, forward"),
        (RULES, {"rule": [{**ACCEPT, "log": "loud"}]}, "must be one of emerg"),
        (RULES, {"rule": [{"type": "forward", "action": "REJECT"}]}, "use DROP"),
        (RULES, {"rule": [{"security_group": "web", "log": "info"}]}, "security group has no `log`"),
        (RULES, {"vm_id": 100}, "`node_name` is needed too"),
        (RULES, {**VM, "container_id": 200}, "Only one of vm_id, container_id"),
        (RULES, {**VM, "vm_id": 99}, "must be 100 to 999999999"),
        (GROUP, {"name": "web", "rule": [{"security_group": "other"}]}, "cannot contain another one"),
        (GROUP, {"name": "Web"}, "keeps this name in small letters"),
        (GROUP, {"name": "a" * 19}, "must be 2 to 18 small letters"),
        (IPSET, {"name": "Web"}, "keeps this name in small letters"),
        (IPSET, {"name": "web", "node_name": "pve1"}, "has no aliases and IP sets of its own"),
        (IPSET, {"name": "web", "cidr": [{"name": "10.0.0.0/33"}]}, "an address, a network or an alias"),
        (IPSET, {"name": "web", "cidr": [{"name": "0.0.0.0/0"}]}, "must not have a prefix of length 0"),
        (IPSET, {"name": "web", "cidr": [{"name": "10.0.0.1"}, {"name": "10.0.0.1/32"}]}, "in the set"),
        (ALIAS, {"name": "web", "cidr": "somewhere"}, "must be an address or a network"),
        (ALIAS, {"name": "1", "cidr": "10.0.0.1"}, "must be 2 to 64 letters"),
        (OPTIONS, {"node_name": "pve1"}, "One of vm_id, container_id must be set"),
        (CLUSTER, {"log_ratelimit": [{"rate": "often"}]}, "such as 10/minute"),
        (CLUSTER, {"forward_policy": "REJECT"}, "must be one of ACCEPT, DROP"),
        (NODE, {"node_name": "pve1", "nf_conntrack_max": 1}, "must be at least 32768"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_changed(
    type_name: str, config: dict[str, Any], said: str
) -> None:
    with pytest.raises(Failed, match=said):
        offline().plan(type_name, **config)


def test_what_is_not_known_yet_is_left_alone() -> None:
    it = offline()
    unknown = {"security_group": UNKNOWN, "action": UNKNOWN}
    # None of these is a finding, which a plan would raise.
    it.plan(RULES, node_name=UNKNOWN, vm_id=UNKNOWN, rule=[unknown, {**ACCEPT, "type": UNKNOWN}])
    it.plan(RULES, rule=UNKNOWN)
    it.plan(IPSET, name="web", cidr=[{"name": UNKNOWN}, {"name": UNKNOWN}])


async def test_a_selector_of_a_security_group_has_no_effect_and_says_so() -> None:
    it = offline()
    whole = it.known(GROUP).schema.block.complete({"name": "web", "node_name": "pve1"})
    found = it.operations.validate(it.known(GROUP), GROUP, whole)
    assert [(one.path, one.is_error) for one in found] == [(("node_name",), False)]


async def test_rules_that_name_a_group_follow_it_to_its_new_name() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        await it.apply(GROUP, name="web", rule=[{**ACCEPT, "macro": "HTTP"}])
        await it.apply(RULES, **VM, rule=[{"security_group": "web", "iface": "net0"}])
        state = await it.apply(GROUP, name="app", comment="renamed", rule=[{**ACCEPT, "macro": "HTTP"}])
        assert (state["id"], state["name"]) == ("app", "app")
        assert await it.is_settled(RULES, **VM, rule=[{"security_group": "app", "iface": "net0"}])


async def test_spellings_that_proxmox_changes_are_the_same() -> None:
    configs: list[tuple[str, dict[str, Any]]] = [
        (RULES, {**VM, "rule": [{**ACCEPT, "macro": "ssh", "comment": "  from here "}]}),
        (ALIAS, {"name": "Host", "cidr": "10.0.0.1/32", "comment": "first\nsecond"}),
        (
            IPSET,
            {
                "name": "web",
                "cidr": [{"name": "10.0.0.9/24"}, {"name": "10.0.0.1/32"}, {"name": "fd00:0::1/64"}],
            },
        ),
    ]
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        for type_name, config in configs:
            await it.apply(type_name, **config)
            assert await it.is_settled(type_name, **config), type_name
        # So are they where only Proxmox's own spelling and order is known.
        await it.adopt(IPSET, "cluster/web")
        assert await it.is_settled(IPSET, **configs[2][1])


async def test_letters_of_an_alias_can_change_their_case() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        await it.apply(ALIAS, name="Office", cidr="10.0.0.1")
        assert (await it.apply(ALIAS, name="OFFICE", cidr="10.0.0.1"))["name"] == "OFFICE"
        assert await it.is_settled(ALIAS, name="OFFICE", cidr="10.0.0.1")


async def test_an_ip_set_changes_in_place_and_keeps_what_stays() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it, lab_api(running) as api:
        await it.apply(IPSET, name="web", cidr=[{"name": "10.0.0.0/24"}, {"name": "10.0.1.0/24"}])
        wanted = [{"name": "10.0.1.0/24", "nomatch": True}, {"name": "10.0.2.0/24"}]
        assert it.plan(IPSET, name="web", cidr=wanted).replace == []
        await it.apply(IPSET, name="web", cidr=wanted)
        found = await api.get("/cluster/firewall/ipset/web")
        assert [(one["cidr"], one.get("nomatch")) for one in found] == [
            ("10.0.1.0/24", 1),
            ("10.0.2.0/24", None),
        ]


async def test_a_guest_that_moves_keeps_its_firewall_and_another_guest_has_its_own() -> None:
    async with lab.start(nodes=("pve1", "pve2")) as running, bench(running) as it, lab_api(running) as api:
        await it.apply(RULES, **VM, rule=[ACCEPT])
        assert it.plan(RULES, node_name="pve2", vm_id=100, rule=[ACCEPT]).replace == []
        await it.apply(RULES, node_name="pve2", vm_id=100, rule=[ACCEPT])
        assert len(await api.get(f"{AT_VM}/rules")) == 1
        for other in (101, UNKNOWN):
            planned = it.plan(RULES, node_name="pve2", vm_id=other, rule=[ACCEPT])
            assert planned.replace == [("vm_id",)]
        await it.apply(RULES, node_name="pve2", vm_id=101, rule=[ACCEPT])
        assert await api.get(f"{AT_VM}/rules") == []


async def test_an_icmp_type_that_somebody_added_stays_with_its_rule_and_no_other() -> None:
    ping = {**ACCEPT, "proto": "icmp"}
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it, lab_api(running) as api:
        await it.apply(RULES, **VM, rule=[ping, {**ACCEPT, "proto": "tcp"}])
        await api.put(f"{AT_VM}/rules/0", {"icmp-type": "echo-request"})
        it.session.client.expire_reads()
        await it.apply(RULES, **VM, rule=[{**ping, "comment": "new"}, {**ACCEPT, "proto": "tcp"}])
        assert (await api.get(f"{AT_VM}/rules"))[0]["icmp-type"] == "echo-request"
        await it.apply(RULES, **VM, rule=[{**ping, "source": "10.0.0.1"}, {**ACCEPT, "proto": "tcp"}])
        assert "icmp-type" not in (await api.get(f"{AT_VM}/rules"))[0]


async def test_a_refused_rule_is_reported_as_proxmox_says_it_and_the_others_are_known() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        bad = {**ACCEPT, "macro": "Nonsense"}
        with pytest.raises(Failed, match="unknown macro 'Nonsense'"):
            await it.apply(RULES, **VM, rule=[bad, ACCEPT])
        assert len(it.states[RULES]["rule"]) == 1
        await it.apply(RULES, **VM, rule=[ACCEPT])
        with pytest.raises(Failed, match="unknown macro 'Nonsense'"):
            await it.apply(RULES, **VM, rule=[{**ACCEPT, "proto": "tcp"}, ACCEPT, bad])
        assert await it.is_settled(RULES, **VM, rule=it.states[RULES]["rule"])
        with pytest.raises(Failed, match="no such alias 'nowhere'"):
            await it.apply(IPSET, name="web", cidr=[{"name": "nowhere"}])
        await it.apply(IPSET, name="web", cidr=[{"name": "10.0.0.1"}])


async def test_options_that_somebody_unsets_are_what_proxmox_does_without_them() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it, lab_api(running) as api:
        wanted = {"enabled": True, "input_policy": "ACCEPT", "log_ratelimit": [{"burst": 9}]}
        await it.apply(CLUSTER, **wanted)
        # A flag that is left out is off, for Proxmox too.
        assert (await api.get("/cluster/firewall/options"))["ebtables"] == 0
        await api.put("/cluster/firewall/options", {"delete": "enable,policy_in,log_ratelimit,ebtables"})
        # As every command of an engine does it.
        it.session.client.expire_reads()
        found = await it.refresh(CLUSTER)
        assert found is not None
        assert (found["enabled"], found["ebtables"], found["input_policy"]) == (False, True, "DROP")
        assert found["log_ratelimit"] == [{"enabled": True, "burst": 5, "rate": "1/second"}]
        await it.apply(CLUSTER, **wanted)
        await api.put("/cluster/firewall/options", {"log_ratelimit": "0,rate=2/hour"})
        it.session.client.expire_reads()
        found = await it.refresh(CLUSTER)
        assert found is not None
        assert found["log_ratelimit"] == [{"enabled": False, "burst": 5, "rate": "2/hour"}]
        # Without the block it is unset.
        await it.apply(CLUSTER, enabled=True)
        assert "log_ratelimit" not in await api.get("/cluster/firewall/options")
        await it.remove(CLUSTER)
        assert (await api.get("/cluster/firewall/options"))["enable"] == 1
