"""Firewall rules and options in all scopes, and security groups."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

CLUSTER = "/cluster/firewall"
NODE = "/nodes/pve1/firewall"
VM = "/nodes/pve1/qemu/100/firewall"
CT = "/nodes/pve1/lxc/200/firewall"
GROUPS = f"{CLUSTER}/groups"
SCOPES = [f"{CLUSTER}/rules", f"{NODE}/rules", f"{VM}/rules", f"{CT}/rules", f"{GROUPS}/web"]


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def refusal(call: Awaitable[Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        await call
    return caught.value


async def comments(api: LabClient, rules: str) -> list[str]:
    return [rule["comment"] for rule in await api.get(rules)]


async def add(api: LabClient, rules: str, *names: str) -> None:
    """Add rules so that they stand in this order."""
    for name in reversed(names):
        await api.post(rules, type="in", action="ACCEPT", comment=name)


@pytest.mark.parametrize("rules", SCOPES)
async def test_rules_are_added_first_moved_changed_and_removed(rules: str) -> None:
    async with with_lab() as api:
        await api.post(GROUPS, group="web")
        assert await api.get(rules) == []
        await add(api, rules, "a", "b", "c")
        assert await comments(api, rules) == ["a", "b", "c"]
        assert [rule["pos"] for rule in await api.get(rules)] == [0, 1, 2]
        await api.put(f"{rules}/0", moveto=2)
        assert await comments(api, rules) == ["b", "a", "c"]
        await api.put(f"{rules}/0", moveto=9)
        assert await comments(api, rules) == ["a", "c", "b"]
        await api.put(f"{rules}/2", moveto=0)
        assert await comments(api, rules) == ["b", "a", "c"]
        await api.put(f"{rules}/1", enable=1, proto="tcp", dport="22,80:90", comment="ssh")
        rule = await api.get(f"{rules}/1")
        digest = rule.pop("digest")
        assert rule == {
            "pos": "1",
            "type": "in",
            "action": "ACCEPT",
            "enable": 1,
            "proto": "tcp",
            "dport": "22,80:90",
            "comment": "ssh",
        }
        await api.put(f"{rules}/1", delete="dport,proto", comment="", digest=digest)
        assert set(await api.get(f"{rules}/1")) == {"pos", "type", "action", "enable", "digest"}
        late = await refusal(api.delete(f"{rules}/1", digest=digest))
        assert late.reason.startswith("detected modified configuration")
        await api.delete(f"{rules}/1")
        assert await comments(api, rules) == ["b", "c"]
        for call in (api.get(f"{rules}/7"), api.put(f"{rules}/7", enable=1), api.delete(f"{rules}/7")):
            assert str(await refusal(call)) == "500 no rule at position 7"


async def test_a_rule_reads_back_as_its_line_in_the_file() -> None:
    async with with_lab() as api:
        rules = f"{CLUSTER}/rules"
        await api.post(rules, type="in", action="ACCEPT", macro="ssh", source="10.0.0.0/8", comment=" x \ny")
        rule = (await api.get(rules))[0]
        assert (rule["enable"], rule["macro"], rule["ipversion"], rule["comment"]) == (0, "SSH", 4, "x")
        await api.post(rules, type="group", action="web", iface="vmbr0", source="10.0.0.1", enable=5)
        rule = (await api.get(rules))[0]
        assert (rule["enable"], rule["iface"]) == (1, "vmbr0")
        assert "source" not in rule


@pytest.mark.parametrize(
    ("params", "name", "text"),
    [
        ({"dport": "22"}, "proto", "missing property - 'dport' requires this property"),
        ({"proto": "esp", "sport": "22"}, "sport", "protocol 'esp' does not support ports"),
        ({"proto": "tcp", "dport": "90:80"}, "dport", "did you mean '80:90'?"),
        ({"proto": "tcp", "dport": "70000"}, "dport", "invalid port '70000'"),
        ({"proto": "tcp", "dport": ",".join(["1"] * 16)}, "dport", "too many entries in port list"),
        ({"proto": "nope"}, "proto", "unknown protocol 'nope'"),
        ({"action": "web"}, "action", "unknown action 'web'"),
        ({"type": "forward", "action": "REJECT"}, "action", "cannot define REJECT rules on forward chain"),
        ({"macro": "Nope"}, "macro", "unknown macro 'Nope'"),
        ({"macro": "SSH", "proto": "udp"}, "proto", "already define in macro (value = 'tcp')"),
        ({"source": "10.0.0.5/24"}, "source", "Invalid prefix 00001010000000000000000000000101/24"),
        ({"source": "10.0.0.300"}, "source", "Invalid quad in IP address 10.0.0.300 - 300"),
        ({"source": "10.0.0.1,fd00::1"}, "source", "detected mixed ipv4/ipv6 addresses in address list"),
        ({"source": "10.0.0.1", "dest": "fd00::1"}, "dest", "detected mixed ipv4/ipv6 addresses in rule"),
        ({"source": "10.0.0.1,10.0.0.3-10.0.0.9"}, "source", "you can't use a range in a list"),
        ({"source": "+nope"}, "source", "no such ipset 'nope'"),
        ({"dest": "nope"}, "dest", "no such alias 'nope'"),
        ({"proto": "tcp", "icmp-type": "any"}, "proto", "'icmp-type' requires this property"),
        ({"proto": "icmp", "icmp-type": "no-route"}, "icmp-type", "invalid icmp-type 'no-route' for proto"),
        ({"log": "loud"}, "log", "does not have a value in the enumeration"),
    ],
)
async def test_a_rule_that_cannot_be_names_what_is_wrong(
    params: dict[str, str], name: str, text: str
) -> None:
    async with with_lab() as api:
        refused = await refusal(api.post(f"{CLUSTER}/rules", **{"type": "in", "action": "DROP", **params}))
        assert refused.status == 400
        assert list(refused.errors) == [name]
        assert text in refused.errors[name]
        assert await api.get(f"{CLUSTER}/rules") == []


@pytest.mark.parametrize(
    ("rules", "params", "name", "text"),
    [
        (f"{VM}/rules", {"iface": "eth0"}, "iface", "value does not match the regex pattern 'net\\d+'"),
        (f"{VM}/rules", {"type": "forward"}, "type", "invalid rule type 'forward' for rule_env 'vm'"),
        (f"{GROUPS}/web", {"iface": "net0"}, "type", "parameter -i not allowed for this rule type"),
        (f"{GROUPS}/web", {"type": "group"}, "type", "invalid rule type 'group' for rule_env 'group'"),
    ],
)
async def test_scopes_have_rules_of_their_own(
    rules: str, params: dict[str, str], name: str, text: str
) -> None:
    async with with_lab() as api:
        await api.post(GROUPS, group="web")
        refused = await refusal(api.post(rules, **{"type": "in", "action": "DROP", **params}))
        assert refused.errors == {name: text}


async def test_a_rule_whose_alias_is_gone_shows_the_error() -> None:
    async with with_lab() as api:
        await api.post(f"{CLUSTER}/aliases", name="web", cidr="10.1.0.0/16")
        await api.post(f"{VM}/rules", type="in", action="ACCEPT", source="dc/web")
        assert (await api.get(f"{VM}/rules"))[0]["ipversion"] == 4
        await api.delete(f"{CLUSTER}/aliases/web")
        assert (await api.get(f"{VM}/rules/0"))["errors"] == {"source": "no such alias 'dc/web'"}


async def test_options_that_are_not_set_are_not_told() -> None:
    async with with_lab() as api:
        for scope in (CLUSTER, NODE, VM, CT):
            assert set(await api.get(f"{scope}/options")) == {"digest"}
        await api.put(f"{CLUSTER}/options", ebtables=0, policy_in="DROP")
        await api.put(f"{NODE}/options", nf_conntrack_max=65536, nosmurfs=1, log_level_in="info")
        await api.put(f"{VM}/options", enable=1, macfilter=0)
        cluster, node, vm = [await api.get(f"{scope}/options") for scope in (CLUSTER, NODE, VM)]
        digest = vm.pop("digest")
        assert {key: cluster[key] for key in cluster if key != "digest"} == {
            "ebtables": 0,
            "policy_in": "DROP",
        }
        assert (node["nf_conntrack_max"], node["nosmurfs"], node["log_level_in"]) == (65536, 1, "info")
        assert vm == {"enable": 1, "macfilter": 0}
        await api.put(f"{VM}/options", delete="macfilter", digest=digest)
        assert set(await api.get(f"{VM}/options")) == {"enable", "digest"}
        late = await refusal(api.put(f"{VM}/options", dhcp=1, digest=digest))
        assert late.reason.startswith("detected modified configuration")
        wrong = await refusal(api.put(f"{VM}/options", delete="policy_forward"))
        assert wrong.errors == {"delete": "no such option 'policy_forward'"}


async def test_a_cluster_firewall_on_trial_switches_itself_off() -> None:
    async with with_lab() as api:
        await api.put(f"{CLUSTER}/options", enable=2)
        assert (await api.get(f"{CLUSTER}/options"))["enable"] == int(api.world.clock.now())
        await api.pass_time(61)
        assert (await api.get(f"{CLUSTER}/options"))["enable"] == 0


async def test_security_groups_come_and_go_and_are_renamed_in_the_rules_that_name_them() -> None:
    async with with_lab() as api:
        await api.post(GROUPS, group="web", comment="servers")
        again = await refusal(api.post(GROUPS, group="web"))
        assert again.errors == {"group": "Security group 'web' already exists"}
        for scope in (CLUSTER, NODE, VM):
            await api.post(f"{scope}/rules", type="group", action="web", enable=1)
        await api.post(GROUPS, group="www", rename="web")
        for scope in (CLUSTER, NODE, VM):
            assert [rule["action"] for rule in await api.get(f"{scope}/rules")] == ["www"]
        listed = await api.get(GROUPS)
        assert [(row["group"], row["comment"]) for row in listed] == [("www", "servers")]
        await api.post(GROUPS, group="www", rename="www", comment="all", digest=listed[0]["digest"])
        await add(api, f"{GROUPS}/www", "one")
        full = await refusal(api.delete(f"{GROUPS}/www"))
        assert str(full) == "500 Security group 'www' is not empty"
        await api.delete(f"{GROUPS}/www/0")
        await api.delete(f"{GROUPS}/www")
        gone = await refusal(api.get(f"{GROUPS}/www"))
        assert str(gone) == "500 no such security group 'www'"
        missing = await refusal(api.post(GROUPS, group="a1", rename="nope"))
        assert missing.errors == {"group": "Security group 'nope' does not exist"}


async def test_the_firewall_of_a_guest_goes_with_it() -> None:
    async with with_lab() as api:
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100))
        await add(api, f"{VM}/rules", "one")
        await api.put(f"{VM}/options", enable=1)
        await api.done(await api.delete("/nodes/pve1/qemu/100"))
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100))
        assert await api.get(f"{VM}/rules") == []
        assert set(await api.get(f"{VM}/options")) == {"digest"}


async def test_each_scope_asks_for_its_own_privilege() -> None:
    async with with_lab() as api:
        await api.post("/access/users", userid="bob@pve", password="secret123")
        await api.put("/access/acl", path="/vms/100", roles="PVEVMAdmin", users="bob@pve")
        bob = await api.with_password("bob@pve", "secret123")
        await add(bob, f"{VM}/rules", "mine")
        assert await comments(bob, f"{VM}/rules") == ["mine"]
        for call, text in (
            (bob.get(f"{CLUSTER}/rules"), "(/, Sys.Audit)"),
            (bob.put(f"{CLUSTER}/options", enable=1), "(/, Sys.Modify)"),
            (bob.get(f"{NODE}/options"), "(/nodes/pve1, Sys.Audit)"),
            (bob.get(f"{NODE}/log"), "(/nodes/pve1, Sys.Syslog)"),
            (bob.get(f"{CT}/rules"), "(/vms/200, VM.Audit)"),
            (bob.post(GROUPS, group="web"), "(/, Sys.Modify)"),
        ):
            assert str(await refusal(call)) == f"403 Permission check failed {text}"


async def test_nothing_changes_without_quorum() -> None:
    async with with_lab(nodes=("pve1", "pve2")) as api:
        with api.world.store.transaction(), api.world.store.edit("cluster", "state") as state:
            state["quorum"] = "lost"
        refused = await refusal(api.put(f"{NODE}/options", enable=1))
        assert refused.reason == "cfs-lock 'firewall-host-pve1' error: no quorum!"
        assert set(await api.get(f"{NODE}/options")) == {"digest"}


async def test_macros_and_an_empty_log_are_told() -> None:
    async with with_lab() as api:
        macros = {row["macro"] for row in await api.get(f"{CLUSTER}/macros")}
        assert {"SSH", "HTTPS", "Ping", "DHCPv6", "SPICEproxy"} <= macros
        assert await api.get(f"{NODE}/log") == [{"n": 1, "t": "no content"}]
        assert {"name": "rules"} in await api.get(VM)


async def test_rules_of_a_virtual_network_need_it_to_be_in_force() -> None:
    async with with_lab() as api:
        path = "/cluster/sdn/vnets/vnet1/firewall"
        assert (await refusal(api.get(f"{path}/rules"))).reason == "invalid vnet specified"
        await api.post("/cluster/sdn/zones", zone="zone1", type="simple")
        await api.post("/cluster/sdn/vnets", vnet="vnet1", zone="zone1")
        assert (await refusal(api.get(f"{path}/rules"))).reason == "invalid vnet specified"
        await api.done(await api.put("/cluster/sdn"))
        await api.post(f"{path}/rules", type="forward", action="DROP", enable=1)
        assert [rule["type"] for rule in await api.get(f"{path}/rules")] == ["forward"]
        wrong = await refusal(api.post(f"{path}/rules", type="in", action="DROP"))
        assert wrong.errors == {"type": "invalid rule type 'in' for rule_env 'vnet'"}
        await api.post(f"{CLUSTER}/rules", type="in", action="ACCEPT", source="+sdn/vnet1-gateway")
        assert "vnet1-all" in [row["name"] for row in await api.get(f"{VM}/refs")]
        await api.put(f"{path}/options", enable=1, policy_forward="DROP")
        assert (await api.get(f"{path}/options"))["policy_forward"] == "DROP"
        await api.post("/access/users", userid="bob@pve", password="secret123")
        bob = await api.with_password("bob@pve", "secret123")
        refused = await refusal(bob.get(f"{path}/rules"))
        assert str(refused) == (
            "403 Permission check failed (/sdn/zones/zone1/vnet1, SDN.Audit|SDN.Allocate)"
        )


async def test_a_digest_counts_the_properties_by_name_and_not_what_is_wrong_with_a_rule() -> None:
    def digest(text: str) -> str:
        return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    async with with_lab() as api:
        await api.put(f"{VM}/options", enable=1, dhcp=0)
        assert (await api.get(f"{VM}/options"))["digest"] == digest("dhcp:0\nenable:1\n")
        await api.post(f"{CLUSTER}/ipset", name="ours", comment="ünsere")
        assert (await api.get(f"{CLUSTER}/ipset"))[0]["digest"] == digest("comment:ünsere\nname:ours\n")
        await api.post(f"{VM}/rules", type="in", action="ACCEPT", source="+ours", enable=1)
        await api.delete(f"{CLUSTER}/ipset/ours")
        (rule,) = await api.get(f"{VM}/rules")
        assert rule["errors"] == {"source": "no such ipset 'ours'"}
        assert rule["digest"] == digest("action:ACCEPT\nenable:1\nsource:+ours\ntype:in\n")
