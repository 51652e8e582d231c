"""Fabrics, their nodes, EVPN controllers and zones: what no whole life of them shows."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.provider import lab_api
from tests.support.provider_bench import KNOWN, Bench, Failed, bench, raise_errors

from stackyard import lab
from stackyard.clients import proxmox
from stackyard.provider.values import Object

FABRIC, NODE = "proxmox_sdn_fabric_openfabric", "proxmox_sdn_fabric_node_openfabric"
OSPF, OSPF_NODE = "proxmox_sdn_fabric_ospf", "proxmox_sdn_fabric_node_ospf"
CONTROLLER, EVPN = "proxmox_sdn_controller_evpn", "proxmox_sdn_zone_evpn"
SIMPLE, QINQ, VXLAN = (f"proxmox_sdn_zone_{kind}" for kind in ("simple", "qinq", "vxlan"))
APPLIER = "proxmox_sdn_applier"
PEERS: dict[str, Any] = {"id": "control", "asn": 65000, "peers": ["10.0.0.1"]}


@contextlib.asynccontextmanager
async def run() -> AsyncIterator[Bench]:
    async with lab.start(nodes=("pve1", "pve2")) as running, bench(running) as it:
        yield it


async def read_source(it: Bench, type_name: str, **config: Any) -> Object:
    result = await it.operations.read_data(KNOWN.data_sources[type_name], type_name, config)
    raise_errors(result)
    assert result.state is not None
    return result.state


async def test_addresses_stay_as_the_configuration_spells_them() -> None:
    async with run() as it:
        fabric = {"id": "fabric", "ip_prefix": "10.9.0.7/24", "ip6_prefix": "FD90:0::/64"}
        await it.apply(FABRIC, **fabric)
        assert await it.is_settled(FABRIC, **fabric)
        node = {"fabric_id": "fabric", "node_id": "pve1", "ip": "10.9.0.1", "ip6": "FD90:0::1"}
        await it.apply(NODE, **node, interface_names=["eno2"])
        assert await it.is_settled(NODE, **node, interface_names=["eno2"])
        # Another spelling of the same is no change, and an update does not give it to Proxmox either.
        assert await it.is_settled(FABRIC, **{**fabric, "ip_prefix": "10.9.0.0/24"})
        await it.apply(FABRIC, **{**fabric, "ip_prefix": "10.9.0.9/16"})
        found = await it.session.client.get("/cluster/sdn/fabrics/fabric/fabric")
        assert (found["ip_prefix"], found["ip6_prefix"]) == ("10.9.0.0/16", "fd90::/64")


async def test_the_last_interface_of_a_node_can_be_taken_away() -> None:
    async with run() as it:
        await it.apply(FABRIC, id="fabric", ip_prefix="10.9.0.0/24")
        node = {"fabric_id": "fabric", "node_id": "pve1", "ip": "10.9.0.1"}
        await it.apply(NODE, **node, interface_names=["eno2", "eno3"])
        await it.apply(NODE, **node, interface_names=[])
        assert it.states[NODE]["interface_names"] == []
        found = await it.session.client.get("/cluster/sdn/fabrics/node/fabric/pve1")
        assert found["interfaces"] == []


async def test_what_is_set_for_an_interface_is_kept_with_its_name() -> None:
    async with run() as it:
        await it.apply(FABRIC, id="fabric", ip_prefix="10.9.0.0/24")
        node = {"fabric_id": "fabric", "node_id": "pve1", "ip": "10.9.0.1"}
        names = ["eno2,hello_multiplier=4", "eno3"]
        await it.apply(NODE, **node, interface_names=names)
        assert await it.is_settled(NODE, **node, interface_names=names)
        found = await it.session.client.get("/cluster/sdn/fabrics/node/fabric/pve1")
        assert found["interfaces"] == ["name=eno2,hello_multiplier=4", "name=eno3"]


async def test_a_node_that_a_killed_run_added_is_taken_over(tmp_path: Path) -> None:
    node: dict[str, Any] = {"fabric_id": "fabric", "node_id": "pve1", "ip": "10.9.0.1"}
    async with lab.start(nodes=("pve1",)) as running:
        async with bench(running, tmp_path) as it:
            await it.apply(FABRIC, id="fabric", ip_prefix="10.9.0.0/24")
            await it.apply(NODE, **node, interface_names=["eno3", "eno2"])
        # The state of that run was never written.
        async with bench(running, tmp_path) as it:
            await it.apply(NODE, **node, interface_names=["eno3", "eno2"])
            assert it.states[NODE]["id"] == "fabric/pve1"


async def test_an_object_of_another_type_is_an_error() -> None:
    async with run() as it:
        await it.apply(OSPF, id="fabric", ip_prefix="10.9.0.0/24", area="0")
        await it.apply(OSPF_NODE, fabric_id="fabric", node_id="pve1", ip="10.9.0.1", interface_names=[])
        await it.apply(SIMPLE, id="zone")
        bgp: dict[str, Any] = {
            "controller": "bgp",
            "type": "bgp",
            "node": "pve1",
            "asn": 65000,
            "peers": "10.0.0.1",
        }
        await it.session.client.post("/cluster/sdn/controllers", bgp)
        for type_name, given, said in (
            (FABRIC, "fabric", "The fabric fabric has the protocol ospf, not openfabric"),
            (NODE, "fabric/pve1", "The node fabric/pve1 has the protocol ospf, not openfabric"),
            (VXLAN, "zone", "The zone zone has the type simple, not vxlan"),
            (CONTROLLER, "bgp", "The controller bgp has the type bgp, not evpn"),
        ):
            with pytest.raises(Failed, match=said):
                await it.adopt(type_name, given)
        for type_name, named, said in (
            (FABRIC, {"id": "fabric"}, "not openfabric"),
            (NODE, {"fabric_id": "fabric", "node_id": "pve1"}, "not openfabric"),
            (VXLAN, {"id": "zone"}, "not vxlan"),
            (CONTROLLER, {"id": "bgp"}, "not evpn"),
        ):
            with pytest.raises(Failed, match=said):
                await read_source(it, type_name, **named)


@pytest.mark.parametrize("given", ["fabric", "fabric/", "/pve1", ""])
async def test_the_id_of_a_node_names_its_fabric(given: str) -> None:
    async with run() as it:
        with pytest.raises(Failed, match="FABRIC/NODE"):
            await it.adopt(NODE, given)


@pytest.mark.parametrize(
    ("type_name", "config", "said"),
    [
        (FABRIC, {"id": "fabric"}, "`ip_prefix` and `ip6_prefix`"),
        (FABRIC, {"id": "fabric", "ip_prefix": "10.9.0.0"}, "prefix length"),
        (FABRIC, {"id": "toolongname", "ip_prefix": "10.9.0.0/24"}, "2 to 8"),
        (NODE, {"fabric_id": "fabric", "node_id": "pve1", "interface_names": []}, "`ip` and `ip6`"),
        (
            OSPF_NODE,
            {"fabric_id": "fabric", "node_id": "pve1", "interface_names": [" "], "ip": "10.9.0.1"},
            "no blank element",
        ),
        (CONTROLLER, {"id": "control", "asn": 65000}, "`peers` or a `fabric`"),
        (EVPN, {"id": "evpn", "controller": "c1", "vrf_vxlan": 1, "rt_import": "65000"}, "ASN:NUMBER"),
        (EVPN, {"id": "evpn", "controller": "c1", "vrf_vxlan": 1, "exit_nodes": [""]}, "no blank element"),
        (QINQ, {"id": "qinq", "bridge": "vmbr0", "service_vlan": 4095}, "1 to 4094"),
        (QINQ, {"id": "qinq", "bridge": "vmbr0", "service_vlan": 1, "service_vlan_protocol": "x"}, "802.1ad"),
    ],
)
async def test_what_cannot_be_is_refused_before_any_call(
    type_name: str, config: dict[str, Any], said: str
) -> None:
    async with run() as it:
        with pytest.raises(Failed, match=said):
            it.plan(type_name, **config)


async def test_a_zone_that_says_nothing_of_its_flags_needs_no_change() -> None:
    async with run() as it:
        await it.apply(CONTROLLER, **PEERS)
        zone: dict[str, Any] = {"zone": "evpn", "type": "evpn", "controller": "control", "vrf-vxlan": 7}
        await it.session.client.post("/cluster/sdn/zones", zone)
        await it.adopt(EVPN, "evpn")
        assert await it.is_settled(EVPN, id="evpn", controller="control", vrf_vxlan=7)
        # A data source says what Proxmox does.
        assert (await read_source(it, EVPN, id="evpn"))["advertise_subnets"] is None


async def test_an_empty_set_of_nodes_is_one() -> None:
    async with run() as it:
        await it.apply(SIMPLE, id="zone", nodes=["pve1"])
        await it.apply(APPLIER)
        await it.apply(SIMPLE, id="zone", nodes=[])
        assert await it.is_settled(SIMPLE, id="zone", nodes=[])
        assert (await it.session.client.get("/cluster/sdn/zones/zone")).get("nodes") is None


async def test_a_part_of_an_applied_zone_is_changed_and_the_rest_read_as_before() -> None:
    """Only what differs is pending then; the rest is in force."""
    async with run() as it:
        await it.apply(QINQ, id="qinq", bridge="vmbr0", service_vlan=7)
        await it.apply(VXLAN, id="vxlan", peers=["10.0.0.1"])
        await it.apply(APPLIER)
        await it.apply(QINQ, id="qinq", bridge="vmbr1", service_vlan=7)
        await it.apply(VXLAN, id="vxlan", peers=["10.0.0.1"], mtu=1400)
        assert (it.states[QINQ]["service_vlan"], it.states[QINQ]["bridge"]) == (7, "vmbr1")
        assert it.states[VXLAN]["peers"] == ["10.0.0.1"]
        assert (it.states[VXLAN]["state"], it.states[VXLAN]["pending"]) == ("changed", True)
        shown = await read_source(it, VXLAN, id="vxlan")
        assert (shown["peers"], shown["mtu"], shown["state"]) == (["10.0.0.1"], 1400, "changed")


async def test_a_removed_zone_that_is_still_in_force_is_shown_as_such() -> None:
    async with run() as it:
        await it.apply(SIMPLE, id="zone", mtu=1400)
        await it.apply(APPLIER)
        await it.session.client.delete("/cluster/sdn/zones/zone")
        shown = await read_source(it, SIMPLE, id="zone")
        assert (shown["state"], shown["mtu"], shown["pending"]) == ("deleted", 1400, None)
        assert await it.refresh(SIMPLE) is None


async def test_what_a_data_source_does_not_find_is_an_error() -> None:
    async with run() as it:
        await it.apply(SIMPLE, id="zone")
        await it.apply("proxmox_sdn_vnet", id="net", zone="zone")
        for type_name, config in (
            (SIMPLE, {"id": "other"}),
            (FABRIC, {"id": "other"}),
            (NODE, {"fabric_id": "other", "node_id": "pve1"}),
            (CONTROLLER, {"id": "other"}),
            ("proxmox_sdn_vnet", {"id": "other"}),
            ("proxmox_sdn_subnet", {"vnet": "other", "cidr": "10.0.0.0/24"}),
        ):
            with pytest.raises(Failed, match="E-PROXMOX-MISSING"):
                await read_source(it, type_name, **config)
        with pytest.raises(Failed, match=r"The vnet net has no subnet 10\.0\.0\.0/24"):
            await read_source(it, "proxmox_sdn_subnet", vnet="net", cidr="10.0.0.0/24")


async def test_an_auditor_sees_a_zone_but_is_not_told_that_one_is_gone() -> None:
    """A list shows zones to auditors; only who may change a zone may ask for it by its name."""
    login = proxmox.Login(username="auditor@pve", password="auditor-password")
    async with lab.start(nodes=("pve1",)) as running:
        async with bench(running) as it:
            await it.apply(SIMPLE, id="zone")
            states = it.states
        async with lab_api(running) as api:
            await api.post("/access/users", {"userid": login.username, "password": login.password})
            await api.put("/access/acl", {"path": "/sdn", "roles": "PVEAuditor", "users": login.username})
        async with bench(running, credentials=login) as it:
            it.states = states
            assert await it.refresh(SIMPLE) is not None
        async with lab_api(running) as api:
            await api.delete("/cluster/sdn/zones/zone")
        async with bench(running, credentials=login) as it:
            it.states = states
            with pytest.raises(Failed, match="Permission check failed"):
                await it.refresh(SIMPLE)
