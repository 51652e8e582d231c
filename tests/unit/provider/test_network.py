"""Bridges, bonds and VLANs of a node, through their lives."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.provider import lab_api
from tests.support.provider_bench import Bench, Failed, bench

from stackyard import lab
from stackyard.clients import proxmox

BOND = "proxmox_network_linux_bond"
BRIDGE = "proxmox_network_linux_bridge"
VLAN = "proxmox_network_linux_vlan"
PLACE = {"node_name": "pve1", "name": "vmbr9"}


@contextlib.asynccontextmanager
async def run() -> AsyncIterator[tuple[Bench, lab.Running]]:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        yield (it, running)


async def interface(it: Bench, name: str) -> dict[str, Any]:
    listed = await it.session.client.get("/nodes/pve1/network")
    return next(one for one in listed if one["iface"] == name)


async def test_a_bridge_is_changed_in_place_and_what_is_left_out_is_unset() -> None:
    async with run() as (it, _running):
        full = {"address": "10.9.0.1/24", "mtu": 1400, "comment": "nine", "ports": ["eno3", "eno2"]}
        await it.apply(BRIDGE, **PLACE, **full)
        found = await interface(it, "vmbr9")
        assert (found["cidr"], found["mtu"], found["bridge_ports"]) == ("10.9.0.1/24", "1400", "eno2 eno3")
        assert await it.is_settled(BRIDGE, **PLACE, **full)
        await it.apply(BRIDGE, **PLACE, comment="bare", autostart=False)
        found = await interface(it, "vmbr9")
        assert "cidr" not in found
        assert "mtu" not in found
        assert found["comments"].strip() == "bare"
        assert await it.is_settled(BRIDGE, **PLACE, comment="bare", autostart=False)


async def test_vlan_ids_follow_the_awareness_of_vlans() -> None:
    async with run() as (it, _running):
        await it.apply(BRIDGE, **PLACE, vlan_aware=True)
        assert it.states[BRIDGE]["vids"] == "2-4094"
        await it.apply(BRIDGE, **PLACE, vlan_aware=True, vids="7 20-30")
        assert (await interface(it, "vmbr9"))["bridge_vids"] == "7 20-30"
        await it.apply(BRIDGE, **PLACE, vlan_aware=False)
        assert it.states[BRIDGE]["vids"] is None
        assert await it.is_settled(BRIDGE, **PLACE, vlan_aware=False)


async def test_drift_is_seen_and_corrected() -> None:
    async with run() as (it, _running):
        await it.apply(BRIDGE, **PLACE, comment="ours")
        path = "/nodes/pve1/network/vmbr9"
        await it.session.client.put(path, {"type": "bridge", "comments": "theirs", "mtu": 9000})
        assert not await it.is_settled(BRIDGE, **PLACE, comment="ours")
        await it.apply(BRIDGE, **PLACE, comment="ours")
        found = await interface(it, "vmbr9")
        assert found["comments"].strip() == "ours"
        assert "mtu" not in found


async def test_another_name_or_node_is_another_bridge() -> None:
    async with run() as (it, _running):
        await it.apply(BRIDGE, **PLACE)
        assert it.plan(BRIDGE, node_name="pve1", name="vmbr8").replace == [("name",)]
        assert it.plan(BRIDGE, node_name="pve2", name="vmbr9").replace == [("node_name",)]


async def test_a_bridge_that_is_gone_needs_no_removal() -> None:
    async with run() as (it, _running):
        await it.apply(BRIDGE, **PLACE)
        await it.session.client.delete("/nodes/pve1/network/vmbr9")
        await it.remove(BRIDGE)
        assert BRIDGE not in it.states


async def test_a_reload_that_fails_leaves_the_bridge_in_the_state() -> None:
    async with run() as (it, running):
        running.add_fault("task", text="ifreload failed", task="srvreload", times=1)
        with pytest.raises(Failed, match="ifreload failed"):
            await it.apply(BRIDGE, **PLACE)
        assert it.states[BRIDGE]["id"] == "pve1:vmbr9"
        await it.apply(BRIDGE, **PLACE)
        assert await it.is_settled(BRIDGE, **PLACE)


async def test_ten_bridges_at_once_are_reloaded_together() -> None:
    async with run() as (it, running):
        benches = [Bench(it.session) for _ in range(10)]
        await asyncio.gather(
            *(one.apply(BRIDGE, node_name="pve1", name=f"vmbr{n + 20}") for n, one in enumerate(benches))
        )
        journal = running.world.journal.entries()
        reloads = [one for one in journal if (one.method, one.path) == ("PUT", "/nodes/pve1/network")]
        assert 1 <= len(reloads) < 10
        names = {one["iface"] for one in await it.session.client.get("/nodes/pve1/network")}
        assert {f"vmbr{n + 20}" for n in range(10)} <= names


async def test_a_vlan_by_its_name_or_by_its_parts_reads_back_both() -> None:
    async with run() as (it, _running):
        await it.apply(VLAN, node_name="pve1", name="eno1.40")
        assert (it.states[VLAN]["interface"], it.states[VLAN]["vlan"]) == ("eno1", 40)
        await it.apply(VLAN, node_name="pve1", name="eno1.40", comment="forty")
        assert (it.states[VLAN]["vlan"], it.states[VLAN]["comment"]) == (40, "forty")
        await it.apply(VLAN, node_name="pve1", name="lab_vlan", interface="eno1", vlan=41)
        assert (await interface(it, "lab_vlan"))["vlan-raw-device"] == "eno1"


async def test_a_bond_keeps_the_order_of_its_cards_and_the_mode_that_proxmox_gave_it() -> None:
    async with run() as (it, _running):
        bond: dict[str, Any] = {"node_name": "pve1", "name": "bond9", "slaves": ["eno3", "eno2"]}
        await it.apply(BOND, **bond)
        assert (it.states[BOND]["slaves"], it.states[BOND]["bond_mode"]) == (["eno3", "eno2"], "balance-rr")
        assert await it.is_settled(BOND, **bond)
        await it.apply(BOND, **bond, bond_mode="active-backup", bond_primary="eno3")
        assert (await interface(it, "bond9"))["bond-primary"] == "eno3"
        # A mode that is not written any more stays; what belongs to it alone goes.
        await it.apply(BOND, **bond)
        assert it.states[BOND]["bond_mode"] == "active-backup"
        assert "bond-primary" not in await interface(it, "bond9")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"name": "bond_9"}, "letters and digits"),
        ({"bond_mode": "fastest"}, "must be one of balance-rr"),
        ({"bond_xmit_hash_policy": "layer4"}, "must be one of layer2"),
        ({"timeout_reload": 1}, "at least 5"),
    ],
)
async def test_a_bond_that_cannot_be_is_refused_before_any_call(config: dict[str, Any], said: str) -> None:
    async with run() as (it, _running):
        with pytest.raises(Failed, match=said):
            it.plan(BOND, **{"node_name": "pve1", "name": "bond9", "slaves": ["eno2"], **config})


async def test_a_bridge_that_the_list_hides_is_there_and_one_that_is_gone_is_gone() -> None:
    login = proxmox.Login(username="weak@pve", password="weak-password")
    async with run() as (it, running):
        await it.apply(BRIDGE, **PLACE)
        states = it.states
        async with lab_api(running) as api:
            await api.post("/access/users", {"userid": login.username, "password": login.password})
            await api.put("/access/acl", {"path": "/nodes", "roles": "PVEAuditor", "users": login.username})
            async with bench(running, credentials=login) as weak:
                weak.states = dict(states)
                assert await weak.session.client.get("/nodes/pve1/network", {"type": "bridge"}) == []
                assert await weak.refresh(BRIDGE) is not None
            await api.delete("/nodes/pve1/network/vmbr9")
            async with bench(running, credentials=login) as weak:
                weak.states = dict(states)
                assert await weak.refresh(BRIDGE) is None
            await api.put(
                "/access/acl", {"path": "/nodes", "roles": "PVEAuditor", "users": login.username, "delete": 1}
            )
            async with bench(running, credentials=login) as weak:
                weak.states = dict(states)
                with pytest.raises(Failed, match="Permission check failed"):
                    await weak.refresh(BRIDGE)
