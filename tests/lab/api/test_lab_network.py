"""The network of a node: interfaces, pending changes, reload and revert."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

from pvelab.faults.faults import FaultRule, Point, Strike

NETWORK = "/nodes/pve1/network"


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def interfaces(api: LabClient, **params: Any) -> dict[str, dict[str, Any]]:
    return {row["iface"]: row for row in await api.get(NETWORK, **params)}


async def changes(api: LabClient) -> str | None:
    found: str | None = (await api.raw("GET", NETWORK)).json.get("changes")
    return found


async def reload(api: LabClient) -> str:
    return await api.done(await api.put(NETWORK))


async def user(api: LabClient, name: str, path: str, role: str) -> LabClient:
    """Return a client of a new user with one role on one path."""
    userid = f"{name}@pve"
    await api.post("/access/users", userid=userid, password="secret-123")
    await api.put("/access/acl", path=path, users=userid, roles=role)
    return await api.with_password(userid, "secret-123")


async def test_a_fresh_node_has_its_cards_and_one_bridge_with_an_address() -> None:
    async with with_lab() as api:
        found = await interfaces(api)
        assert list(found) == ["eno1", "eno2", "eno3", "eno4", "vmbr0"]
        bridge = found["vmbr0"]
        assert bridge["type"] == "bridge"
        assert (bridge["cidr"], bridge["address"], bridge["netmask"]) == ("10.31.0.11/16", "10.31.0.11", "16")
        assert (bridge["bridge_ports"], bridge["bridge_fd"], bridge["bridge_stp"]) == ("eno1", "0", "off")
        assert (bridge["autostart"], bridge["active"], bridge["method"]) == (1, 1, "static")
        assert isinstance(bridge["priority"], int)
        assert (found["eno1"]["type"], found["eno1"]["exists"], found["eno1"]["active"]) == ("eth", 1, 1)
        assert "active" not in found["eno2"]
        assert await changes(api) is None


async def test_a_bridge_is_pending_until_the_reload_and_reads_back_as_from_the_file() -> None:
    async with with_lab() as api:
        await api.post(
            NETWORK,
            iface="vmbr7",
            type="bridge",
            cidr="192.0.2.1/24",
            comments="for tests",
            autostart=1,
            mtu=1400,
            bridge_ports="eno2",
            bridge_vlan_aware=1,
        )
        bridge = (await interfaces(api))["vmbr7"]
        assert bridge["comments"] == "for tests\n"
        assert bridge["mtu"] == "1400"
        assert bridge["bridge_vids"] == "2-4094"
        assert bridge["bridge_vlan_aware"] == 1
        assert (bridge["address"], bridge["netmask"], bridge["cidr"]) == ("192.0.2.1", "24", "192.0.2.1/24")
        assert (bridge["method"], bridge["method6"], bridge["families"]) == ("static", "manual", ["inet"])
        assert "active" not in bridge
        assert "+iface vmbr7 inet static" in (await changes(api) or "")
        upid = await api.put(NETWORK)
        assert upid.split(":")[5:7] == ["srvreload", "networking"]
        assert await api.done(upid) == "OK"
        assert await changes(api) is None
        found = await interfaces(api)
        assert (found["vmbr7"]["active"], found["eno2"]["active"]) == (1, 1)


async def test_a_revert_drops_everything_that_is_pending() -> None:
    async with with_lab() as api:
        await api.post(NETWORK, iface="vmbr7", type="bridge", autostart=1)
        await api.delete(f"{NETWORK}/vmbr0")
        assert "-iface vmbr0 inet static" in (await changes(api) or "")
        await api.delete(NETWORK)
        assert await changes(api) is None
        assert list(await interfaces(api)) == ["eno1", "eno2", "eno3", "eno4", "vmbr0"]


async def test_a_bond_without_a_mode_reads_back_balance_rr_and_takes_its_slaves_up() -> None:
    async with with_lab() as api:
        await api.post(NETWORK, iface="bond0", type="bond", slaves="eno3 eno4", autostart=1)
        assert await reload(api) == "OK"
        found = await interfaces(api)
        assert (found["bond0"]["bond_mode"], found["bond0"]["slaves"]) == ("balance-rr", "eno3 eno4")
        assert (found["eno3"]["autostart"], found["eno3"]["active"], found["eno4"]["active"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("name", "more", "parent", "tag"),
    [
        ("vmbr0.10", {}, "vmbr0", "10"),
        ("vlan20", {"vlan__raw__device": "eno2"}, "eno2", "20"),
        ("storage", {"vlan__raw__device": "eno2", "vlan__id": 30}, "eno2", "30"),
    ],
)
async def test_a_vlan_knows_its_parent_and_tag_by_name_or_by_setting(
    name: str, more: dict[str, Any], parent: str, tag: str
) -> None:
    async with with_lab() as api:
        await api.post(NETWORK, iface=name, type="vlan", autostart=1, **more)
        vlan = await api.get(f"{NETWORK}/{name}")
        assert vlan["type"] == "vlan"
        assert (vlan["vlan-raw-device"], vlan["vlan-id"]) == (parent, tag)


async def test_an_ovs_bridge_takes_its_ports_over_and_gives_them_back() -> None:
    async with with_lab() as api:
        await api.post(NETWORK, iface="vmbr9", type="OVSBridge", ovs_ports="eno2", autostart=1)
        await api.post(NETWORK, iface="mgmt", type="OVSIntPort", ovs_bridge="vmbr9", ovs_tag=5)
        found = await interfaces(api)
        assert found["vmbr9"]["ovs_ports"] == "eno2 mgmt"
        assert (found["eno2"]["type"], found["eno2"]["ovs_bridge"]) == ("OVSPort", "vmbr9")
        assert (found["mgmt"]["type"], found["mgmt"]["ovs_tag"]) == ("OVSIntPort", "5")
        await api.delete(f"{NETWORK}/mgmt")
        await api.put(f"{NETWORK}/vmbr9", type="OVSBridge", delete="ovs_ports")
        found = await interfaces(api)
        assert "mgmt" not in found
        assert found["eno2"]["type"] == "eth"


async def test_an_update_sets_and_removes_settings() -> None:
    async with with_lab() as api:
        both = {"cidr": "192.0.2.1/24", "cidr6": "fd00::1/64"}
        await api.post(NETWORK, iface="vmbr7", type="bridge", comments="a", mtu=1400, **both)
        assert (await interfaces(api))["vmbr7"]["families"] == ["inet", "inet6"]
        await api.put(f"{NETWORK}/vmbr7", type="bridge", comments="b", delete="mtu,cidr,cidr6", autostart=0)
        bridge = (await interfaces(api))["vmbr7"]
        assert bridge["comments"] == "b\n"
        assert not {"mtu", "cidr", "address", "netmask", "cidr6", "address6", "autostart"} & set(bridge)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"iface": "vmbr0", "type": "bridge"}, "interface already exists"),
        (
            {"iface": "vmbr7", "type": "bridge", "cidr": "192.0.2.1/24", "gateway": "192.0.2.254"},
            r"Default gateway already exists on interface 'vmbr0'\.",
        ),
        (
            {"iface": "vmbr7", "type": "bridge", "bridge_ports": "eno1"},
            r"eno1 is already used on interface 'vmbr0'\.",
        ),
        (
            {"iface": "vmbr7", "type": "bridge", "bridge_ports": "eno9"},
            "500 bridge 'vmbr7' - unable to find bridge port 'eno9'",
        ),
        (
            {"iface": "bond0", "type": "bond", "slaves": "eno9"},
            "500 bond 'bond0' - unable to find slave 'eno9'",
        ),
        (
            {"iface": "bond0", "type": "bond", "slaves": "eno2 vmbr0"},
            r"500 bond 'bond0' - wrong interface type on slave 'vmbr0' \('bridge' != 'eth or bond'\)",
        ),
        ({"iface": "eno9.5", "type": "vlan"}, "500 vlan 'eno9.5' - unable to find parent 'eno9'"),
        ({"iface": "eno2.5000", "type": "vlan"}, "500 vlan 'eno2.5000' - vlan-id 5000 should be <= 4094"),
        ({"iface": "vlan7", "type": "vlan"}, "500 missing vlan-raw-device option"),
        (
            {"iface": "eno2.5", "type": "vlan", "mtu": 9000},
            "500 interface 'eno2' - mtu 1500 is lower than 'eno2.5' - mtu 9000",
        ),
        (
            {
                "iface": "vmbr7",
                "type": "bridge",
                "cidr": "192.0.2.1/24",
                "address": "192.0.2.1",
                "netmask": "255.0.0.0",
            },
            "address conflicts with cidr",
        ),
        (
            {"iface": "vmbr7", "type": "bridge", "cidr6": "ff02::1/64"},
            "ff02::1 with type 'MULTICAST', cannot be used as host IPv6 address",
        ),
        ({"iface": "p1", "type": "OVSIntPort"}, "parameter is required"),
        ({"iface": "p1", "type": "OVSIntPort", "ovs_bridge": "vmbr0"}, "interface 'vmbr0' is no OVS bridge"),
    ],
)
async def test_interfaces_that_do_not_fit_are_refused_in_proxmox_words(
    given: dict[str, Any], text: str
) -> None:
    async with with_lab() as api:
        with pytest.raises(Refused, match=text):
            await api.post(NETWORK, **given)
        assert await changes(api) is None


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_an_interface_that_is_not_there_is_a_wrong_parameter(method: str) -> None:
    async with with_lab() as api:
        with pytest.raises(Refused) as refused:
            await api.call(method, f"{NETWORK}/vmbr9", {"type": "bridge"} if method == "PUT" else {})
        assert refused.value.status == 400
        assert refused.value.errors == {"iface": "interface does not exist"}


async def test_a_reload_that_fails_leaves_the_new_file_in_force_and_the_interfaces_as_they_were() -> None:
    async with with_lab() as api:
        await api.post(NETWORK, iface="vmbr7", type="bridge", autostart=1)
        strike = Strike(reason="command 'ifreload -a' failed: exit code 89")
        api.world.faults.add(
            "reload", FaultRule(point=Point.TASK, strike=strike, method="srvreload", times=1)
        )
        assert await reload(api) == "command 'ifreload -a' failed: exit code 89"
        assert await changes(api) is None
        assert "active" not in (await interfaces(api))["vmbr7"]
        assert await reload(api) == "OK"
        assert (await interfaces(api))["vmbr7"]["active"] == 1


async def test_the_list_can_be_narrowed_to_a_type() -> None:
    async with with_lab() as api:
        assert list(await interfaces(api, type="bridge")) == ["vmbr0"]
        assert list(await interfaces(api, type="any_bridge")) == ["vmbr0"]
        assert list(await interfaces(api, type="bond")) == []
        assert len(await interfaces(api, type="eth")) == 4


async def test_bridges_are_listed_only_to_who_may_use_them() -> None:
    async with with_lab() as api:
        await api.post(NETWORK, iface="vmbr7", type="bridge", autostart=1)
        guest_admin = await user(api, "bridges", "/sdn/zones/localnetwork/vmbr7", "PVESDNUser")
        assert list(await interfaces(guest_admin, type="any_bridge")) == ["vmbr7"]
        with pytest.raises(Refused, match="403"):
            await guest_admin.post(NETWORK, iface="vmbr8", type="bridge")


async def test_pending_changes_survive_a_restart(tmp_path: Path) -> None:
    async def change(api: LabClient) -> None:
        await api.post(NETWORK, iface="vmbr7", type="bridge", autostart=1)

    async def look(api: LabClient) -> None:
        assert "+auto vmbr7" in (await changes(api) or "")

    async with with_lab(data=tmp_path) as api:
        await change(api)
    async with with_lab(data=tmp_path) as api:
        await look(api)


async def test_a_vm_on_a_bridge_that_is_only_pending_does_not_start() -> None:
    async with with_lab() as api:
        await api.post(NETWORK, iface="vmbr7", type="bridge", autostart=1)
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100, net0="virtio,bridge=vmbr7"))
        start = await api.post("/nodes/pve1/qemu/100/status/start")
        assert await api.done(start) == "start failed: QEMU exited with code 1"
        assert "bridge 'vmbr7' does not exist" in await api.log(start)
        assert await reload(api) == "OK"
        assert await api.done(await api.post("/nodes/pve1/qemu/100/status/start")) == "OK"
