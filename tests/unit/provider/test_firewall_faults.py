"""Rules, groups, sets and aliases of firewalls: no lost answer or killed run leads to a second copy."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.provider import lab_api
from tests.support.provider_bench import Failed, bench

from stackyard import lab
from stackyard.clients import proxmox

RULES = "proxmox_virtual_environment_firewall_rules"
GROUP = "proxmox_virtual_environment_cluster_firewall_security_group"
IPSET = "proxmox_virtual_environment_firewall_ipset"
ALIAS = "proxmox_virtual_environment_firewall_alias"


def rule(port: int, **more: Any) -> dict[str, Any]:
    return {"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": str(port), **more}


VM = {"node_name": "pve1", "vm_id": 100}
AT_VM = "/nodes/pve1/qemu/100/firewall"
# What is made, and what it is changed to.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "rules": (
        RULES,
        {**VM, "rule": [rule(1), rule(2, comment="two"), rule(3), rule(4)]},
        {**VM, "rule": [rule(4), rule(1), rule(7), rule(2, enabled=False)]},
    ),
    "group": (
        GROUP,
        {"name": "web", "comment": "old", "rule": [rule(1), rule(2)]},
        {"name": "app", "comment": "new", "rule": [rule(2), rule(3), rule(1)]},
    ),
    "ipset": (
        IPSET,
        {"name": "ours", "comment": "old", "cidr": [{"name": "10.0.0.0/8"}, {"name": "10.9.9.9"}]},
        {"name": "theirs", "cidr": [{"name": "10.9.9.9", "comment": "c"}, {"name": "fd00::/8"}]},
    ),
    "alias": (
        ALIAS,
        {**VM, "name": "here", "cidr": "10.0.0.1"},
        {**VM, "name": "there", "cidr": "10.0.0.2", "comment": "moved"},
    ),
}
FAULTS: list[dict[str, Any]] = [
    {"kind": "drop", "when": "before"},
    {"kind": "drop", "when": "after"},
    {"kind": "answer", "when": "after", "status": 500, "reason": "got bored"},
    {"kind": "answer", "when": "after", "status": 596, "reason": "Broken pipe"},
]
MOST_CALLS = 60


async def everything(api: proxmox.Client) -> list[Any]:
    """Return all of these objects that there are."""
    paths = ("/cluster/firewall/groups", "/cluster/firewall/ipset", f"{AT_VM}/rules", f"{AT_VM}/aliases")
    return [one for path in paths for one in await api.get(path)]


# Rules have places, which is the most that can go wrong; of the others, one fault of each stays in every run.
SWEPT = [
    pytest.param(
        name,
        fault,
        id="-".join([name, *map(str, fault.values())]),
        marks=() if name == "rules" or fault == {"kind": "drop", "when": "after"} else pytest.mark.soak,
    )
    for name in CASES
    for fault in FAULTS
]


@pytest.mark.parametrize(("name", "fault"), SWEPT)
def test_the_next_apply_ends_well_whatever_call_fails(
    name: str, fault: dict[str, Any], tmp_path: Path
) -> None:
    type_name, config, change = CASES[name]

    async def scenario() -> None:
        async with lab.start(nodes=("pve1",)) as running, lab_api(running) as api:
            for nth in range(1, MOST_CALLS):
                struck = await strike(running, tmp_path, fault | {"nth": nth}, (type_name, config, change))
                assert await everything(api) == []
                if not struck:
                    break
            assert 3 < nth < MOST_CALLS

    asyncio.run(scenario())


async def strike(
    running: lab.Running,
    journal: Path,
    fault: dict[str, Any],
    case: tuple[str, dict[str, Any], dict[str, Any]],
) -> bool:
    """Make, change and remove something with a fault at one call; return whether there was such a call."""
    type_name, config, change = case
    async with bench(running, journal) as it:
        name = running.add_fault(**fault)
        for wanted in (config, change):
            with contextlib.suppress(Failed):
                await it.apply(type_name, **wanted)
        _, _, strikes = running.world.faults.rules()[name]
        running.remove_fault(name)
        states, tainted = it.states, it.tainted
    # Another process, with the same state and the same journal.
    async with bench(running, journal) as it:
        it.states, it.tainted = states, tainted
        await it.apply(type_name, **change)
        assert await it.is_settled(type_name, **change)
        await it.remove(type_name)
    return strikes > 0


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("calls", [2, 3, 4, 5, 7])
def test_what_a_killed_run_made_is_taken_over(name: str, calls: int, tmp_path: Path) -> None:
    """The run ends after some calls, and neither its state nor anything else but the journal is left."""
    type_name, config, _ = CASES[name]

    async def scenario() -> None:
        async with lab.start(nodes=("pve1",)) as running, lab_api(running) as api:
            async with bench(running, tmp_path) as it:
                fault = running.add_fault(kind="drop", when="before", nth=calls, times=1000)
                with contextlib.suppress(Failed):
                    await it.apply(type_name, **config)
                running.remove_fault(fault)
            async with bench(running, tmp_path) as it:
                await it.apply(type_name, **config)
                assert await it.is_settled(type_name, **config)
                assert it.session.journal.entries == ()
                await it.remove(type_name)
            assert await everything(api) == []

    asyncio.run(scenario())


@pytest.mark.parametrize("name", CASES)
def test_what_a_killed_run_changed_is_known_by_its_new_name(name: str, tmp_path: Path) -> None:
    type_name, config, change = CASES[name]

    async def scenario() -> None:
        async with lab.start(nodes=("pve1",)) as running, lab_api(running) as api:
            async with bench(running, tmp_path) as it:
                await it.apply(type_name, **config)
                before = it.states[type_name]
                await it.apply(type_name, **change)
            # The state of the change was never written.
            async with bench(running, tmp_path) as it:
                it.states[type_name] = before
                await it.apply(type_name, **change)
                assert await it.is_settled(type_name, **change)
                assert it.session.journal.entries == ()
                await it.remove(type_name)
            assert await everything(api) == []

    asyncio.run(scenario())


@pytest.mark.parametrize("name", CASES)
async def test_what_somebody_else_made_is_refused_and_stays(name: str) -> None:
    type_name, config, change = CASES[name]
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        await it.apply(type_name, **config)
        async with bench(running) as other:
            with pytest.raises(Failed, match="E-PROVIDER-EXISTS"):
                await other.apply(
                    type_name, **{**change, **{key: config[key] for key in ("name",) if key in config}}
                )
            assert other.states == {}
        assert await it.is_settled(type_name, **config)


@pytest.mark.parametrize("name", ["group", "ipset"])
async def test_what_is_there_already_as_it_is_configured_is_adopted_with_a_warning(name: str) -> None:
    type_name, config, _ = CASES[name]
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it, bench(running) as other:
        await it.apply(type_name, **config)
        await other.apply(type_name, **config)
        assert ["existed already" in one.detail for one in other.last.problems] == [True]
        assert await other.is_settled(type_name, **config)


async def test_rules_that_somebody_adds_meanwhile_are_not_mistaken_for_ours() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it, lab_api(running) as api:
        await it.apply(RULES, **CASES["rules"][1])
        sent, client = 0, it.session.client
        put = client.put

        async def slow_put(path: str, *args: Any, **more: Any) -> Any:
            nonlocal sent
            if sent < 2:
                sent += 1
                await api.post(f"{AT_VM}/rules", {"type": "out", "action": "DROP", "comment": "by hand"})
            return await put(path, *args, **more)

        client.put = slow_put  # type: ignore[method-assign]
        await it.apply(RULES, **CASES["rules"][2])
        assert sent == 2
        # A resource has the list for itself.
        assert await it.is_settled(RULES, **CASES["rules"][2])


async def test_a_rule_that_somebody_adds_before_the_rules_go_stays() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it, lab_api(running) as api:
        await it.apply(RULES, **CASES["rules"][1])
        await api.post(f"{AT_VM}/rules", {"type": "out", "action": "DROP", "comment": "by hand"})
        state = it.states[RULES]
        result = await it.operations.apply(it.known(RULES), RULES, state, None)
        assert [one.is_error for one in result.problems] == [False]
        assert [row["comment"] for row in await api.get(f"{AT_VM}/rules")] == ["by hand"]


async def test_two_resources_that_change_one_list_do_not_mix_up_its_positions() -> None:
    """Both make and change the rules of the same list, which leaves the rules of one of them, whole."""
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it, lab_api(running) as api:
        await it.apply(GROUP, name="web", rule=[rule(port) for port in range(1, 7)])
        lists = [[rule(port) for port in ports] for ports in ((6, 5, 4, 3), (2, 9, 4, 8, 1))]
        known, state = it.known(GROUP), it.states[GROUP]
        plans = [it.plan(GROUP, name="web", rule=rules).state for rules in lists]
        results = await asyncio.gather(*(it.operations.apply(known, GROUP, state, plan) for plan in plans))
        assert [result.problems for result in results] == [[], []]
        ports = [row["dport"] for row in await api.get("/cluster/firewall/groups/web")]
        assert ports in (["6", "5", "4", "3"], ["2", "9", "4", "8", "1"])


async def test_of_two_resources_for_one_new_list_only_one_gets_it() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it, lab_api(running) as api:
        plans = [it.plan(RULES, **VM, rule=[rule(port), rule(9)]).state for port in (1, 2)]
        results = await asyncio.gather(
            *(it.operations.apply(it.known(RULES), RULES, None, plan) for plan in plans)
        )
        assert sorted(len(result.problems) for result in results) == [0, 1]
        made = next(result.state for result in results if result.state is not None)
        rows = await api.get(f"{AT_VM}/rules")
        assert [row["dport"] for row in rows] == [one["dport"] for one in made["rule"]]


rules = st.builds(
    rule,
    st.integers(1, 5),
    enabled=st.booleans(),
    comment=st.sampled_from(["", "a"]),
    type=st.sampled_from(["in", "out"]),
    log=st.sampled_from(["", "info"]),
)
edits = st.lists(
    st.one_of(
        st.tuples(st.just("apply"), st.lists(rules, max_size=5)),
        st.tuples(st.just("move"), st.tuples(st.integers(0, 4), st.integers(0, 6))),
        st.tuples(st.just("remove"), st.integers(0, 4)),
        st.tuples(st.just("add"), rules),
        st.tuples(st.just("change"), st.tuples(st.integers(0, 4), rules)),
    ),
    min_size=1,
    max_size=6,
)


async def edit(api: proxmox.Client, what: str, how: Any) -> None:
    """Do by hand what the position allows."""
    path = f"{AT_VM}/rules"
    with contextlib.suppress(proxmox.RefusedError):
        if what == "move":
            await api.put(f"{path}/{how[0]}", {"moveto": how[1]})
        elif what == "remove":
            await api.delete(f"{path}/{how}")
        elif what == "add":
            await api.post(path, {**how, "enable": int(how["enabled"]), "enabled": None})
        else:
            await api.put(f"{path}/{how[0]}", {**how[1], "enable": int(how[1]["enabled"]), "enabled": None})


def test_any_edits_by_hand_and_by_configuration_converge() -> None:
    with lab.running(nodes=("pve1",)) as running:

        @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
        @given(edits, st.lists(rules, max_size=5))
        def converge(some: list[tuple[str, Any]], last: list[dict[str, Any]]) -> None:
            asyncio.run(scenario(some, last))

        async def scenario(some: list[tuple[str, Any]], last: list[dict[str, Any]]) -> None:
            async with bench(running) as it, lab_api(running) as api:
                await it.apply(RULES, **VM, rule=[])
                for what, how in some:
                    if what == "apply":
                        await it.apply(RULES, **VM, rule=how)
                    else:
                        await edit(api, what, how)
                        # As every command of an engine does it.
                        it.session.client.expire_reads()
                await it.apply(RULES, **VM, rule=last)
                assert await it.is_settled(RULES, **VM, rule=last)
                rows = await api.get(f"{AT_VM}/rules")
                assert [row["dport"] for row in rows] == [one["dport"] for one in last]
                await it.remove(RULES)
                assert await api.get(f"{AT_VM}/rules") == []

        converge()
