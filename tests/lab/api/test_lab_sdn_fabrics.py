"""SDN fabrics and their nodes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

FABRICS = "/cluster/sdn/fabrics/fabric"
NODES = "/cluster/sdn/fabrics/node"


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def test_a_fabric_with_a_node_is_written_changed_applied_and_removed() -> None:
    async with with_lab() as api:
        await api.post(FABRICS, id="main", protocol="openfabric", ip_prefix="10.0.0.1/16", hello_interval=3)
        fabric = await api.get(f"{FABRICS}/main", pending=1)
        assert (fabric["ip_prefix"], fabric["hello_interval"]) == ("10.0.0.0/16", 3)
        interfaces = ["name=eno2", "hello_multiplier=5,name=eno3,ip=10.9.0.1/24"]
        await api.post(
            f"{NODES}/main", node_id="pve1", protocol="openfabric", ip="10.0.0.1", interfaces=interfaces
        )
        node = await api.get(f"{NODES}/main/pve1")
        assert node["interfaces"] == ["name=eno2", "name=eno3,hello_multiplier=5,ip=10.9.0.1/24"]
        assert (await api.get("/cluster/sdn/fabrics/all", pending=1))["nodes"][0]["state"] == "new"
        assert await api.done(await api.put("/cluster/sdn")) == "OK"
        (shown,) = await api.get("/nodes/pve1/network", type="fabric")
        assert (shown["iface"], shown["cidr"]) == ("main", "10.0.0.0/16")
        await api.put(f"{FABRICS}/main", protocol="openfabric", csnp_interval=7, delete="hello_interval")
        await api.put(f"{NODES}/main/pve1", protocol="openfabric", ip="10.0.0.2", delete="interfaces")
        assert (await api.get(f"{NODES}/main/pve1"))["interfaces"] == []
        (row,) = await api.get(FABRICS, pending=1)
        assert row["state"] == "changed"
        assert row["pending"] == {"csnp_interval": 7, "hello_interval": "deleted"}
        await api.delete(f"{FABRICS}/main")
        assert await api.get(NODES) == []


@pytest.mark.parametrize(
    ("path", "given", "text"),
    [
        (
            FABRICS,
            "id=main protocol=ospf area=1 ip_prefix=10.5.0.0/16",
            "fabric 'main' already exists in config",
        ),
        (FABRICS, "id=two protocol=openfabric", "fabric 'two' does not have an IP prefix configured"),
        (FABRICS, "id=two protocol=ospf ip_prefix=10.1.0.0/16", "missing field `area`"),
        (FABRICS, "id=two protocol=ospf area=0.0.0.0 ip_prefix=10.1.0.0/16", "duplicate OSPF area"),
        (
            FABRICS,
            "id=two protocol=ospf area=5 ip_prefix=10.0.3.0/24",
            "IP prefix 10.0.3.0/24 in fabric 'two' overlaps with IPv4 prefix 10.0.0.0/16 in fabric 'main'",
        ),
        (f"{NODES}/nope", "node_id=pve1 protocol=ospf ip=10.0.0.1", "fabric 'nope' does not exist"),
        (f"{NODES}/main", "node_id=pve1 protocol=ospf ip=10.0.0.2", "node 'pve1' already exists in config"),
        (f"{NODES}/main", "node_id=pve2 protocol=openfabric ip=10.0.0.2", "node has a different protocol"),
        (f"{NODES}/main", "node_id=pve2 protocol=ospf ip=10.0.0.1", "contains nodes with duplicated IPs"),
        (
            f"{NODES}/main",
            "node_id=pve2 protocol=ospf ip=10.7.0.1",
            "node IP 10.7.0.1 is outside the IP prefix",
        ),
        (f"{NODES}/main", "node_id=pve2 protocol=ospf", "node 'main_pve2' does not have an IP configured"),
        (FABRICS, "id=two protocol=wireguard", "the lab does not have fabrics with the protocol wireguard"),
    ],
)
async def test_fabrics_that_do_not_fit_are_refused_in_proxmox_words(path: str, given: str, text: str) -> None:
    async with with_lab(nodes=("pve1", "pve2")) as api:
        await api.post(FABRICS, id="main", protocol="ospf", area="0", ip_prefix="10.0.0.0/16")
        await api.post(
            f"{NODES}/main", node_id="pve1", protocol="ospf", ip="10.0.0.1", interfaces="name=eno2"
        )
        with pytest.raises(Refused) as refused:
            await api.post(path, **dict(pair.split("=", 1) for pair in given.split()))
        assert text in refused.value.reply.json["message"]
        assert len(await api.get(FABRICS)) == 1
        assert len(await api.get(NODES)) == 1


async def test_an_interface_of_a_node_is_in_one_fabric_only() -> None:
    async with with_lab() as api:
        for number, fabric in enumerate(("one", "two")):
            await api.post(FABRICS, id=fabric, protocol="ospf", area=number, ip_prefix=f"10.{number}.0.0/16")
        await api.post(f"{NODES}/one", node_id="pve1", protocol="ospf", ip="10.0.0.1", interfaces="name=eno2")
        with pytest.raises(Refused, match="interface is already in use by another fabric"):
            await api.post(
                f"{NODES}/two", node_id="pve1", protocol="ospf", ip="10.1.0.1", interfaces="name=eno2"
            )


async def test_a_fabric_that_a_zone_stands_on_cannot_be_removed() -> None:
    async with with_lab() as api:
        await api.post(FABRICS, id="main", protocol="openfabric", ip_prefix="10.0.0.0/16")
        await api.post("/cluster/sdn/zones", zone="z1", type="vxlan", fabric="main")
        with pytest.raises(Refused, match='this fabric is still used in the VXLAN zone "z1"'):
            await api.delete(f"{FABRICS}/main")
        await api.delete("/cluster/sdn/zones/z1")
        await api.delete(f"{FABRICS}/main")
        assert await api.get(FABRICS) == []


async def test_only_a_new_fabric_loses_the_host_bits_of_its_network() -> None:
    async with with_lab() as api:
        await api.post(FABRICS, id="main", protocol="openfabric", ip_prefix="10.0.0.1/16")
        await api.put(f"{FABRICS}/main", protocol="openfabric", ip_prefix="10.0.0.1/8")
        assert (await api.get(f"{FABRICS}/main"))["ip_prefix"] == "10.0.0.1/8"
