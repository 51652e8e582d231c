"""What an apply of SDN would change, and what the routing of nodes tells."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.support.lab import LabClient, Refused, lab_client

S = "/cluster/sdn"


@contextlib.asynccontextmanager
async def run() -> AsyncIterator[LabClient]:
    async with lab_client(nodes=("pve1", "pve2")) as api:
        yield api


async def apply(api: LabClient) -> None:
    assert await api.done(await api.put(S)) == "OK"


async def test_a_dry_run_shows_what_an_apply_would_change() -> None:
    async with run() as api:
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
        diff = (await api.get(f"{S}/dry-run", node="pve2"))["frr-diff"].splitlines()
        assert "+router bgp 65000" in diff
        with pytest.raises(Refused, match="hostname lookup 'pve9' failed"):
            await api.get(f"{S}/dry-run", node="pve9")


async def test_nodes_of_a_fabric_find_each_other() -> None:
    async with run() as api:
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


async def test_the_guests_of_an_evpn_zone_are_known_with_their_nodes() -> None:
    async with run() as api:
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
