"""Routing policies of SDN, what an apply would change, and what the routing of nodes tells."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

S = "/cluster/sdn"
LISTS, MAPS = f"{S}/prefix-lists", f"{S}/route-maps"


def run(test: Callable[[LabClient], Awaitable[None]]) -> None:
    async def main() -> None:
        async with lab_client(nodes=("pve1", "pve2")) as api:
            await test(api)

    asyncio.run(main())


async def apply(api: LabClient) -> None:
    assert await api.done(await api.put(S)) == "OK"


def test_a_prefix_list_numbers_its_entries_and_waits_for_the_apply() -> None:
    async def test(api: LabClient) -> None:
        entries = ["action=permit,prefix=192.0.2.0/24,ge=25,le=26", "prefix=10.0.0.0/8,action=deny,seq=20"]
        await api.post(LISTS, id="mine", entries=entries)
        shown = await api.get(f"{LISTS}/mine")
        assert shown["entries"] == [
            "action=permit,prefix=192.0.2.0/24,le=26,ge=25,seq=5",
            "action=deny,prefix=10.0.0.0/8,seq=20",
        ]
        await api.post(f"{LISTS}/mine/entries", action="permit", prefix="2001:db8::/32")
        rows = await api.get(f"{LISTS}/mine/entries")
        assert rows[2] == {"action": "permit", "prefix": "2001:db8::/32", "seq": 25}
        await api.put(f"{LISTS}/mine/entries/5", seq=7, delete=["ge"])
        assert await api.get(f"{LISTS}/mine/entries/7") == {
            "action": "permit",
            "prefix": "192.0.2.0/24",
            "le": 26,
            "seq": 7,
        }
        await api.delete(f"{LISTS}/mine/entries/20")
        assert await api.get(LISTS, running=1) == []
        (row,) = await api.get(LISTS, pending=1)
        assert (row["id"], row["state"]) == ("mine", "new")
        await apply(api)
        (row,) = await api.get(LISTS, running=1, verbose=1)
        assert len(row["entries"]) == 2
        await api.put(f"{LISTS}/mine", delete=["entries"])
        assert "entries" not in await api.get(f"{LISTS}/mine")
        await api.post(f"{S}/rollback")
        assert len((await api.get(f"{LISTS}/mine"))["entries"]) == 2
        await api.delete(f"{LISTS}/mine")
        with pytest.raises(Refused, match="prefix list 'mine' does not exist"):
            await api.get(f"{LISTS}/mine")

    run(test)


@pytest.mark.parametrize(
    ("method", "path", "params", "text"),
    [
        ("POST", LISTS, {"id": "mine"}, "prefix list 'mine' already exists"),
        ("POST", f"{LISTS}/mine/entries", {"action": "permit", "prefix": "x"}, "400 Parameter verification"),
        ("POST", f"{LISTS}/mine/entries", {"prefix": "10.0.0.0/8"}, "400 Parameter verification failed"),
        (
            "POST",
            f"{LISTS}/mine/entries",
            {"action": "permit", "prefix": "10.0.0.0/8", "seq": 5},
            "entry with sequence number 5 already exists!",
        ),
        (
            "POST",
            f"{LISTS}/mine/entries",
            {"action": "permit", "prefix": "10.0.0.0/8", "le": 4},
            "Prefix <= must not be less than 8",
        ),
        (
            "POST",
            f"{LISTS}/mine/entries",
            {"action": "permit", "prefix": "10.0.0.0/8", "ge": 33},
            "Prefix >= must not be greater than 32",
        ),
        (
            "PUT",
            f"{LISTS}/mine/entries/5",
            {"ge": 30, "le": 20},
            r"Prefix >= \(30\) must not be greater than Prefix <= \(20\)",
        ),
        ("DELETE", f"{LISTS}/mine/entries/6", {}, "entry with sequence number 6 does not exist!"),
        ("GET", f"{LISTS}/mine/entries/x", {}, "400 Parameter verification failed"),
        ("PUT", f"{LISTS}/mine", {"digest": "0" * 40}, "detected modified configuration"),
        ("DELETE", f"{LISTS}/none", {}, "prefix list 'none' does not exist"),
    ],
)
def test_wrong_prefix_lists_are_refused(method: str, path: str, params: dict[str, Any], text: str) -> None:
    async def test(api: LabClient) -> None:
        await api.post(LISTS, id="mine", entries=["action=permit,prefix=10.0.0.0/8"])
        with pytest.raises(Refused, match=text):
            await api.call(method, path, params)
        assert len(await api.get(f"{LISTS}/mine/entries")) == 1

    run(test)


def test_a_route_map_is_made_of_its_entries() -> None:
    async def test(api: LabClient) -> None:
        entry = {
            "route-map-id": "in_map",
            "order": 10,
            "action": "permit",
            "match": ["key=vni,value=100", "key=ip-next-hop-address,value=192.0.2.1"],
            "set": ["key=ip-next-hop-unchanged", "key=local-preference,value=200"],
            "exit-action": "key=on-match-goto,value=30",
        }
        await api.post(f"{MAPS}/entries", **entry)
        await api.post(f"{MAPS}/entries", **{"route-map-id": "in_map", "order": 9, "action": "deny"})
        await api.post(
            f"{MAPS}/entries", **{"route-map-id": "out", "order": 1, "action": "deny", "call": "in_map"}
        )
        assert await api.get(MAPS) == [{"id": "in_map"}, {"id": "out"}]
        rows = await api.get(f"{MAPS}/entries/in_map")
        assert [row["order"] for row in rows] == [9, 10]
        assert len(await api.get(f"{MAPS}/entries")) == 3
        path = f"{MAPS}/entries/in_map/entry/10"
        shown = await api.get(path)
        digest = shown.pop("digest")
        assert shown == entry
        await api.put(path, action="deny", delete=["set", "exit-action"], digest=digest)
        shown = await api.get(path)
        assert (shown["action"], "set" in shown, len(shown["match"])) == ("deny", False, 2)
        await apply(api)
        await api.delete(path)
        (changed,) = [row for row in await api.get(f"{MAPS}/entries", pending=1) if row.get("state")]
        assert (changed["route-map-id"], changed["order"], changed["state"]) == ("in_map", 10, "deleted")
        assert len(await api.get(f"{MAPS}/entries", running=1)) == 3

    run(test)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"match": ["key=vni,value=x"]}, "invalid value 'x' for `vni`"),
        ({"match": ["key=vni"]}, "missing field `value` for `vni`"),
        ({"set": ["key=ip-next-hop,value=2001:db8::1"]}, "invalid value '2001:db8::1' for `ip-next-hop`"),
        ({"set": ["key=ip-next-hop-unchanged,value=1"]}, "unexpected value for `ip-next-hop-unchanged`"),
        ({"set": ["key=colour,value=1"]}, "400 Parameter verification failed"),
        ({"order": 65536}, "400 Parameter verification failed"),
        ({"route-map-id": "not good"}, "400 Parameter verification failed"),
        ({"action": "maybe"}, "400 Parameter verification failed"),
    ],
)
def test_wrong_route_maps_are_refused(params: dict[str, Any], text: str) -> None:
    async def test(api: LabClient) -> None:
        entry = {"route-map-id": "mine", "order": 10, "action": "permit"}
        with pytest.raises(Refused, match=text):
            await api.post(f"{MAPS}/entries", **{**entry, **params})
        assert await api.get(MAPS) == []
        await api.post(f"{MAPS}/entries", **entry)
        with pytest.raises(Refused, match="route map entry 'mine_10' already exists"):
            await api.post(f"{MAPS}/entries", **entry)

    run(test)


def test_policies_are_for_who_may_see_and_change_them() -> None:
    async def test(api: LabClient) -> None:
        await api.post(LISTS, id="mine")
        await api.post(f"{MAPS}/entries", **{"route-map-id": "mine", "order": 1, "action": "deny"})
        await api.post("/access/users", userid="bob@pve", password="secret123")
        bob = await api.with_password("bob@pve", "secret123")
        assert await bob.get(LISTS) == await bob.get(MAPS) == await bob.get(f"{MAPS}/entries") == []
        with pytest.raises(Refused, match="403"):
            await bob.post(LISTS, id="other")
        with pytest.raises(Refused, match="403"):
            await bob.delete(f"{MAPS}/entries/mine/entry/1")
        await api.put("/access/acl", path="/sdn/prefix-lists/mine", roles="PVEAuditor", users="bob@pve")
        assert [row["id"] for row in await bob.get(LISTS)] == ["mine"]
        token = await api.post(f"{S}/lock", allow__pending=1)
        with pytest.raises(Refused, match="invalid lock token provided!"):
            await api.post(LISTS, id="other")
        await api.post(LISTS, id="other", lock__token=token)

    run(test)


def test_a_dry_run_shows_what_an_apply_would_change() -> None:
    async def test(api: LabClient) -> None:
        assert await api.get(f"{S}/dry-run", node="pve1") == {}
        await api.post(f"{S}/zones", zone="z1", type="vlan", bridge="vmbr0", nodes="pve1")
        await api.post(f"{S}/vnets", vnet="v1", zone="z1", tag=7)
        found = await api.get(f"{S}/dry-run", node="pve1")
        assert "+\tbridge_ports vmbr0.7" in found["interfaces-diff"].splitlines()
        assert "frr-diff" not in found
        assert await api.get(f"{S}/dry-run", node="pve2") == {}
        await apply(api)
        assert await api.get(f"{S}/dry-run", node="pve1") == {}
        await api.post(f"{S}/controllers", controller="c1", type="evpn", asn=65000, peers="10.31.0.12")
        await api.post(LISTS, id="mine", entries=["action=permit,prefix=10.0.0.0/8,le=24"])
        diff = (await api.get(f"{S}/dry-run", node="pve2"))["frr-diff"].splitlines()
        assert "+router bgp 65000" in diff
        assert "+ip prefix-list mine seq 5 permit 10.0.0.0/8 le 24" in diff
        with pytest.raises(Refused, match="hostname lookup 'pve9' failed"):
            await api.get(f"{S}/dry-run", node="pve9")

    run(test)


def test_nodes_of_a_fabric_find_each_other() -> None:
    async def test(api: LabClient) -> None:
        await api.post(f"{S}/fabrics/fabric", id="fab", protocol="openfabric", ip_prefix="10.9.0.0/24")
        for number, node in enumerate(("pve1", "pve2"), 1):
            given = {"node_id": node, "protocol": "openfabric", "ip": f"10.9.0.{number}"}
            await api.post(f"{S}/fabrics/node/fab", interfaces=["name=eno1"], **given)
        with pytest.raises(Refused, match="fabric 'fab' does not exist"):
            await api.get("/nodes/pve1/sdn/fabrics/fab/routes")
        await apply(api)
        path = "/nodes/pve1/sdn/fabrics/fab"
        (neighbor,) = await api.get(f"{path}/neighbors")
        assert (neighbor["neighbor"], neighbor["status"]) == ("pve2", "Up")
        assert await api.get(f"{path}/routes") == [{"route": "10.9.0.2/32", "via": ["10.9.0.2"]}]
        assert await api.get(f"{path}/interfaces") == [
            {"name": "dummy_fab", "type": "Loopback", "state": "Up"},
            {"name": "eno1", "type": "Point-To-Point", "state": "Up"},
        ]
        assert {"subdir": "neighbors"} in await api.get(path)
        api.running.add_fault("node-down", node="pve2")
        assert await api.get(f"{path}/neighbors") == await api.get(f"{path}/routes") == []

    run(test)


def test_the_guests_of_an_evpn_zone_are_known_with_their_nodes() -> None:
    async def test(api: LabClient) -> None:
        await api.post(f"{S}/controllers", controller="c1", type="evpn", asn=65000, peers="10.31.0.12")
        await api.post(f"{S}/zones", zone="z1", type="evpn", controller="c1", vrf__vxlan=10)
        await api.post(f"{S}/zones", zone="z2", type="simple")
        await api.post(f"{S}/vnets", vnet="v1", zone="z1", tag=11)
        await api.post(f"{S}/vnets", vnet="v2", zone="z2")
        await api.post(f"{S}/vnets/v1/subnets", subnet="10.8.0.0/24", type="subnet", gateway="10.8.0.1")
        await apply(api)
        disks = {"ide2": "local-lvm:cloudinit", "ipconfig0": "ip=10.8.0.5/24"}
        await api.post(
            "/nodes/pve2/qemu", vmid=100, net0="virtio=BC:24:11:00:00:01,bridge=v1", start=1, **disks
        )
        rows = await api.get("/nodes/pve1/sdn/vnets/v1/mac-vrf")
        assert {"ip": "10.8.0.5", "mac": "BC:24:11:00:00:01", "nexthop": "10.31.0.12"} in rows
        routes = await api.get("/nodes/pve1/sdn/zones/z1/ip-vrf")
        assert [row["ip"] for row in routes if row["protocol"] == "connected"] == ["10.8.0.0/24"]
        assert ["10.31.0.12"] in [row["nexthops"] for row in routes if row["ip"] == "10.8.0.5/32"]
        own = await api.get("/nodes/pve2/sdn/zones/z1/ip-vrf")
        assert "bgp" not in {row["protocol"] for row in own}
        assert await api.get("/nodes/pve1/sdn/vnets/v1") == [{"subdir": "mac-vrf"}]
        with pytest.raises(Refused, match=r"zone z2 is not an EVPN zone\."):
            await api.get("/nodes/pve1/sdn/vnets/v2/mac-vrf")
        with pytest.raises(Refused, match="zone is not an EVPN zone"):
            await api.get("/nodes/pve1/sdn/zones/z2/ip-vrf")
        with pytest.raises(Refused, match="zone does not exist"):
            await api.get("/nodes/pve1/sdn/zones/zz/ip-vrf")

    run(test)
