"""Software-defined networks: zones, virtual networks, subnets, controllers; pending, apply and lock."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

SDN = "/cluster/sdn"
SUBNETS, NEW_SUBNET = "vnets/v1/subnets", "subnet=10.8.0.0/24 type=subnet"


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def apply(api: LabClient) -> None:
    assert await api.done(await api.put(SDN)) == "OK"


async def user(api: LabClient, name: str, path: str, role: str) -> LabClient:
    """Return a client of a new user with one role on one path."""
    userid = f"{name}@pve"
    await api.post("/access/users", userid=userid, password="secret-123")
    await api.put("/access/acl", path=path, users=userid, roles=role)
    return await api.with_password(userid, "secret-123")


async def test_a_zone_is_new_then_in_force_then_changed_then_deleted() -> None:
    async with with_lab() as api:
        await api.post(f"{SDN}/zones", zone="z1", type="simple", mtu=1400, nodes="pve1", ipam="pve")
        (row,) = await api.get(f"{SDN}/zones", pending=1)
        assert (row["zone"], row["type"], row["state"]) == ("z1", "simple", "new")
        assert row["pending"] == {"mtu": 1400, "nodes": "pve1", "ipam": "pve"}
        assert await api.get(f"{SDN}/zones", running=1) == []
        await apply(api)
        (row,) = await api.get(f"{SDN}/zones", pending=1)
        assert (row["mtu"], "state" in row, "pending" in row) == (1400, False, False)
        await api.put(f"{SDN}/zones/z1", mtu=1300, delete="ipam")
        row = await api.get(f"{SDN}/zones/z1", pending=1)
        assert (row["state"], row["mtu"], row["ipam"]) == ("changed", 1400, "pve")
        assert row["pending"] == {"mtu": 1300, "ipam": "deleted"}
        assert (await api.get(f"{SDN}/zones/z1", running=1))["mtu"] == 1400
        written = await api.get(f"{SDN}/zones/z1")
        assert (written["mtu"], "ipam" in written, len(written["digest"])) == (1300, False, 40)
        await api.delete(f"{SDN}/zones/z1")
        (row,) = await api.get(f"{SDN}/zones", pending=1)
        assert (row["state"], row["mtu"], row["pending"]) == ("deleted", 1400, {})
        await apply(api)
        assert await api.get(f"{SDN}/zones", pending=1) == []


async def test_an_apply_reloads_the_network_of_every_node_that_is_up_in_a_task_of_its_own() -> None:
    async with with_lab(nodes=("pve1", "pve2", "pve3")) as api:
        with api.world.store.transaction(), api.world.store.edit("nodes", "pve3") as node:
            node["online"] = 0
        await api.post(f"{SDN}/zones", zone="z1", type="simple")
        await api.post(f"{SDN}/vnets", vnet="v1", zone="z1")
        upid = await api.put(SDN)
        assert upid.split(":")[5:7] == ["reloadnetworkall", ""]
        assert await api.done(upid) == "OK"
        assert "pve2: reloading network config" in await api.log(upid)
        reloads = [task for task in await api.get("/cluster/tasks") if task["type"] == "srvreload"]
        assert {task["node"] for task in reloads} == {"pve1", "pve2"}
        assert {task["user"] for task in reloads} == {"root@pam"}
        with api.world.store.transaction(), api.world.store.edit("nodes", "pve3") as node:
            node["online"] = 1
        (zone,) = await api.get("/nodes/pve3/sdn/zones")
        assert zone == {"zone": "z1", "status": "pending"}
        await api.done(await api.put("/nodes/pve3/network"))
        assert (await api.get("/nodes/pve3/sdn/zones/z1/content"))[0]["status"] == "available"


async def test_a_virtual_network_is_a_bridge_for_guests_once_it_is_applied() -> None:
    async with with_lab(nodes=("pve1", "pve2")) as api:
        await api.post(f"{SDN}/zones", zone="z1", type="simple", nodes="pve1")
        await api.post(f"{SDN}/vnets", vnet="v1", zone="z1", alias="office")
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100, net0="virtio,bridge=v1"))
        start = "/nodes/pve1/qemu/100/status/start"
        assert await api.done(await api.post(start)) != "OK"
        await apply(api)
        assert await api.done(await api.post(start)) == "OK"
        listed = {row["iface"]: row for row in await api.get("/nodes/pve1/network", type="any_bridge")}
        assert (listed["v1"]["type"], listed["v1"]["comments"]) == ("vnet", "office")
        assert [row["iface"] for row in await api.get("/nodes/pve1/network", type="any_local_bridge")] == [
            "vmbr0"
        ]
        (bridge,) = await api.get("/nodes/pve1/sdn/zones/z1/bridges")
        assert bridge["ports"] == [{"name": "tap100i0", "vmid": "100", "index": "net0"}]
        assert await api.get("/nodes/pve2/sdn/zones") == []
        resources = {row["id"] for row in await api.get("/cluster/resources")}
        assert {"network/pve1/zone/z1", "network/pve2/zone/localnetwork"} <= resources
        assert "network/pve2/zone/z1" not in resources


async def test_a_vlan_zone_on_a_bridge_that_a_node_lacks_is_in_error_there() -> None:
    async with with_lab() as api:
        await api.post(f"{SDN}/zones", zone="z1", type="vlan", bridge="vmbr5")
        await api.post(f"{SDN}/vnets", vnet="v1", zone="z1", tag=10)
        await apply(api)
        assert await api.get("/nodes/pve1/sdn/zones") == [{"zone": "z1", "status": "error"}]
        (vnet,) = await api.get("/nodes/pve1/sdn/zones/z1/content")
        assert vnet == {"vnet": "v1", "status": "error", "statusmsg": "missing vmbr5"}
        (reload,) = [task for task in await api.get("/cluster/tasks") if task["type"] == "srvreload"]
        assert "zone z1 : vnet v1 : can't find bridge vmbr5" in await api.log(reload["upid"])


async def test_a_subnet_is_named_by_zone_and_network_and_shows_its_ranges_taken_apart() -> None:
    async with with_lab() as api:
        await api.post(f"{SDN}/zones", zone="z1", type="simple", ipam="pve", dhcp="dnsmasq")
        await api.post(f"{SDN}/vnets", vnet="v1", zone="z1")
        subnets = f"{SDN}/vnets/v1/subnets"
        ranges = [f"start-address=10.8.0.{first},end-address=10.8.0.{first + 9}" for first in (10, 30)]
        await api.post(
            subnets, subnet="10.8.0.0/24", type="subnet", gateway="10.8.0.1", snat=1, dhcp__range=ranges
        )
        (subnet,) = await api.get(subnets)
        assert (subnet["subnet"], subnet["cidr"], subnet["mask"]) == ("z1-10.8.0.0-24", "10.8.0.0/24", "24")
        assert (subnet["gateway"], subnet["snat"], subnet["zone"]) == ("10.8.0.1", 1, "z1")
        assert subnet["dhcp-range"][1] == {"start-address": "10.8.0.30", "end-address": "10.8.0.39"}
        await apply(api)
        (gateway,) = await api.get(f"{SDN}/ipams/pve/status")
        assert (gateway["ip"], gateway["gateway"], gateway["vnet"]) == ("10.8.0.1", 1, "v1")
        await api.put(f"{subnets}/z1-10.8.0.0-24", gateway="10.8.0.2", delete="snat,dhcp-range")
        (subnet,) = await api.get(subnets)
        assert (subnet["gateway"], subnet["dhcp-range"], "snat" in subnet) == ("10.8.0.2", [], False)
        assert [row["ip"] for row in await api.get(f"{SDN}/ipams/pve/status")] == ["10.8.0.2"]
        (waiting,) = await api.get(subnets, pending=1)
        assert waiting["state"] == "changed"
        assert waiting["pending"] == {"gateway": "10.8.0.2", "snat": "deleted", "dhcp-range": "deleted"}


async def test_addresses_are_given_once_and_keep_their_subnet_from_being_removed() -> None:
    async with with_lab() as api:
        await api.post(f"{SDN}/zones", zone="z1", type="simple", ipam="pve", dhcp="dnsmasq")
        await api.post(f"{SDN}/vnets", vnet="v1", zone="z1")
        await api.post(f"{SDN}/vnets/v1/subnets", subnet="10.8.0.0/24", type="subnet")
        await apply(api)
        ips, mac = f"{SDN}/vnets/v1/ips", "BC:24:11:00:00:01"
        await api.post(ips, zone="z1", ip="10.8.0.5", mac=mac)
        with pytest.raises(Refused, match=r"500 IP '10\.8\.0\.5' already exist"):
            await api.post(ips, zone="z1", ip="10.8.0.5", mac="BC:24:11:00:00:02")
        with pytest.raises(Refused, match=r"500 can't find any subnet for ip 10\.9\.0\.5"):
            await api.post(ips, zone="z1", ip="10.9.0.5", mac=mac)
        await api.put(ips, zone="z1", ip="10.8.0.6", mac=mac, vmid=100)
        (entry,) = await api.get(f"{SDN}/ipams/pve/status")
        assert (entry["ip"], entry["mac"], entry["vmid"]) == ("10.8.0.6", mac, 100)
        with pytest.raises(Refused, match=r"cannot delete subnet '10\.8\.0\.0/24', not empty"):
            await api.delete(f"{SDN}/vnets/v1/subnets/z1-10.8.0.0-24")
        await api.delete(ips, zone="z1", ip="10.8.0.6", mac=mac)
        await api.delete(f"{SDN}/vnets/v1/subnets/z1-10.8.0.0-24")
        assert await api.get(f"{SDN}/vnets/v1/subnets") == []


async def test_what_something_stands_on_cannot_be_removed() -> None:
    async with with_lab() as api:
        await api.post(f"{SDN}/controllers", controller="ctl", type="evpn", asn=65000, peers="10.31.0.11")
        await api.post(f"{SDN}/zones", **{"zone": "z1", "type": "evpn", "controller": "ctl", "vrf-vxlan": 10})
        assert (await api.get(f"{SDN}/zones/z1"))["mac"].startswith("BC:24:11:")
        await api.post(f"{SDN}/vnets", vnet="v1", zone="z1", tag=100)
        await api.post(f"{SDN}/vnets/v1/subnets", subnet="10.8.0.0/24", type="subnet")
        for path, text in (
            ("controllers/ctl", "500 delete sdn controller object failed: controller ctl is used by z1"),
            ("zones/z1", "500 delete sdn zone object failed: zone z1 is used by vnet v1"),
            ("vnets/v1", r"500 delete sdn vnet object failed: 400 Parameter verification failed\."),
        ):
            with pytest.raises(Refused, match=text):
                await api.delete(f"{SDN}/{path}")
        for path in ("vnets/v1/subnets/z1-10.8.0.0-24", "vnets/v1", "zones/z1", "controllers/ctl"):
            await api.delete(f"{SDN}/{path}")
        assert await api.get(f"{SDN}/zones") == []


@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [
        (
            "zones",
            "zone=z1 type=simple",
            "create sdn zone object failed: sdn zone object ID 'z1' already defined",
        ),
        ("zones", "zone=z2 type=vlan", "missing value for required option 'bridge'"),
        ("zones", "zone=z2 type=simple bridge=vmbr0", "unexpected property 'bridge'"),
        ("zones", "zone=z2 type=vxlan", "must have exactly one of peers / fabric defined"),
        ("zones", "zone=z2 type=simple ipam=other", "ipam: other not existing"),
        ("zones", "zone=z2 type=evpn controller=c vrf-vxlan=1", "controller c don't exist"),
        ("zones", "zone=toolongname type=simple", "value may only be 8 characters long"),
        (
            "vnets",
            "vnet=v1 zone=z1",
            "create sdn vnet object failed: sdn vnet object ID 'v1' already defined",
        ),
        ("vnets", "vnet=v2 zone=z1 tag=5", "tag: vlan tag is not allowed on simple zone"),
        ("vnets", "vnet=v2 zone=nope", "create sdn vnet object failed"),
        (SUBNETS, f"{NEW_SUBNET} gateway=10.9.0.1", "gateway: 10.9.0.1 is not in subnet 10.8.0.0/24"),
        (
            SUBNETS,
            f"{NEW_SUBNET} dhcp-range=start-address=10.8.0.9,end-address=10.8.0.2",
            "start-address 10.8.0.9 must be smaller than end-address 10.8.0.2",
        ),
        ("vnets/nope/subnets", NEW_SUBNET, "sdn vnet 'nope' does not exist"),
        ("controllers", "controller=c2 type=evpn asn=1", "must have exactly one of peers / fabric defined"),
        ("ipams", "ipam=pve type=pve", "sdn ipam object ID 'pve' already defined"),
        ("ipams", "ipam=netbox type=netbox url=https://x", "missing value for required option 'token'"),
    ],
)
async def test_objects_that_do_not_fit_are_refused_in_proxmox_words(kind: str, given: str, text: str) -> None:
    async with with_lab() as api:
        await api.post(f"{SDN}/zones", zone="z1", type="simple")
        await api.post(f"{SDN}/vnets", vnet="v1", zone="z1")
        with pytest.raises(Refused) as refused:
            await api.post(f"{SDN}/{kind}", **dict(pair.split("=", 1) for pair in given.split()))
        reply = refused.value.reply.json
        assert text in f"{reply['message']} {reply.get('errors', '')}"


@pytest.mark.parametrize("kind", ["zones", "controllers", "dns", "ipams"])
async def test_an_object_that_is_not_there_does_not_exist(kind: str) -> None:
    async with with_lab() as api:
        for method in ("GET", "PUT", "DELETE"):
            with pytest.raises(Refused, match=r"500 .*sdn 'nope' does not exist"):
                await api.call(method, f"{SDN}/{kind}/nope", {})


async def test_tags_are_unique_in_a_vlan_zone_and_among_all_overlays() -> None:
    async with with_lab() as api:
        await api.post(f"{SDN}/zones", zone="vlan1", type="vlan", bridge="vmbr0")
        await api.post(f"{SDN}/zones", zone="vlan2", type="vlan", bridge="vmbr0")
        await api.post(f"{SDN}/zones", zone="vx1", type="vxlan", peers="10.31.0.11,10.31.0.12")
        await api.post(f"{SDN}/zones", zone="vx2", type="vxlan", peers="10.31.0.11")
        await api.post(f"{SDN}/vnets", vnet="a1", zone="vlan1", tag=10)
        await api.post(f"{SDN}/vnets", vnet="a2", zone="vlan2", tag=10)
        await api.post(f"{SDN}/vnets", vnet="b1", zone="vx1", tag=10)
        for vnet, zone, text in (
            ("c1", "vlan1", "tag 10 already exist in vnet a1"),
            ("c2", "vx2", "vxlan tag 10 already exist in vnet b1 in zone vx1"),
        ):
            with pytest.raises(Refused) as refused:
                await api.post(f"{SDN}/vnets", vnet=vnet, zone=zone, tag=10)
            assert text in refused.value.reply.json["message"]


async def test_a_change_on_the_ground_of_an_old_digest_is_refused() -> None:
    async with with_lab() as api:
        await api.post(f"{SDN}/zones", zone="z1", type="simple")
        digest = (await api.get(f"{SDN}/zones/z1"))["digest"]
        await api.put(f"{SDN}/zones/z1", mtu=1400, digest=digest)
        with pytest.raises(Refused, match="detected modified configuration"):
            await api.put(f"{SDN}/zones/z1", mtu=1300, digest=digest)


async def test_the_lock_keeps_others_from_changes_until_it_is_released() -> None:
    async with with_lab() as api:
        await api.post(f"{SDN}/zones", zone="z1", type="simple")
        with pytest.raises(Refused, match="could not acquire lock for SDN config: configuration has pending"):
            await api.post(f"{SDN}/lock")
        token = await api.post(f"{SDN}/lock", allow__pending=1)
        for method, path, params in (
            ("POST", "zones", {"zone": "z2", "type": "simple"}),
            ("PUT", "zones/z1", {"mtu": 1400}),
            ("DELETE", "zones/z1", {}),
            ("POST", "lock", {"allow-pending": 1}),
            ("DELETE", "lock", {"lock-token": "other"}),
        ):
            with pytest.raises(Refused, match="invalid lock token provided!"):
                await api.call(method, f"{SDN}/{path}", params)
        await api.put(f"{SDN}/zones/z1", mtu=1400, lock__token=token)
        assert await api.done(await api.put(SDN, lock__token=token, release__lock=1)) == "OK"
        await api.put(f"{SDN}/zones/z1", mtu=1300)
        await api.post(f"{SDN}/lock", allow__pending=1)
        await api.delete(f"{SDN}/lock", force=1)
        await api.put(f"{SDN}/zones/z1", mtu=1200)


async def test_a_rollback_brings_back_what_is_in_force() -> None:
    async with with_lab() as api:
        await api.post(f"{SDN}/zones", zone="z1", type="simple", mtu=1400)
        await apply(api)
        await api.put(f"{SDN}/zones/z1", mtu=1300)
        await api.post(f"{SDN}/zones", zone="z2", type="simple")
        await api.post(f"{SDN}/rollback")
        assert [(row["zone"], row["mtu"]) for row in await api.get(f"{SDN}/zones")] == [("z1", 1400)]
        assert not any("state" in row for row in await api.get(f"{SDN}/zones", pending=1))


async def test_everybody_sees_and_changes_only_the_zones_that_they_have_privileges_on() -> None:
    async with with_lab() as api:
        for zone in ("z1", "z2"):
            await api.post(f"{SDN}/zones", zone=zone, type="simple")
            await api.post(f"{SDN}/vnets", vnet=f"v{zone}", zone=zone)
        admin = await user(api, "sdn", "/sdn/zones/z1", "PVESDNAdmin")
        assert [row["zone"] for row in await admin.get(f"{SDN}/zones")] == ["z1"]
        assert [row["vnet"] for row in await admin.get(f"{SDN}/vnets")] == ["vz1"]
        await admin.put(f"{SDN}/vnets/vz1", alias="mine")
        for method, path in (("PUT", "vnets/vz2"), ("DELETE", "zones/z2"), ("GET", "vnets/vz2")):
            with pytest.raises(Refused, match=r"403 Permission check failed \(/sdn/zones/z2"):
                await admin.call(method, f"{SDN}/{path}", {})
        with pytest.raises(Refused, match=r"403 Permission check failed \(/sdn, SDN.Allocate\)"):
            await admin.put(SDN)


async def test_the_use_of_a_virtual_network_is_a_privilege_in_its_zone() -> None:
    async with with_lab() as api:
        await api.post(f"{SDN}/zones", zone="z1", type="simple")
        await api.post(f"{SDN}/vnets", vnet="v1", zone="z1")
        someone = await user(api, "guests", "/vms", "PVEVMAdmin")
        with pytest.raises(Refused, match=r"403 Permission check failed \(/sdn/zones/z1/v1, SDN.Use\)"):
            await someone.post("/nodes/pve1/qemu", vmid=100, net0="virtio,bridge=v1")
        await api.put("/access/acl", path="/sdn/zones/z1", users="guests@pve", roles="PVESDNUser")
        upid = await someone.post("/nodes/pve1/qemu", vmid=100, net0="virtio,bridge=v1")
        assert await someone.done(upid) == "OK"


async def test_what_is_in_force_survives_a_restart(tmp_path: Path) -> None:
    async def change(api: LabClient) -> None:
        await api.post(f"{SDN}/zones", zone="z1", type="simple")
        await api.post(f"{SDN}/vnets", vnet="v1", zone="z1")
        await apply(api)
        await api.put(f"{SDN}/vnets/v1", alias="later")

    async def look(api: LabClient) -> None:
        vnet = await api.get(f"{SDN}/vnets/v1", pending=1)
        assert (vnet["state"], vnet["pending"]) == ("changed", {"alias": "later"})
        assert await api.get("/nodes/pve1/sdn/zones") == [{"zone": "z1", "status": "available"}]

    async with with_lab(data=tmp_path) as api:
        await change(api)
    async with with_lab(data=tmp_path) as api:
        await look(api)


async def test_without_quorum_nothing_of_sdn_changes() -> None:
    async with with_lab(nodes=("pve1", "pve2", "pve3")) as api:
        await api.post(f"{SDN}/zones", zone="z1", type="simple")
        for name in ("pve2", "pve3"):
            with api.world.store.transaction(), api.world.store.edit("nodes", name) as node:
                node["online"] = 0
        with pytest.raises(Refused, match=r"500 cluster not ready - no quorum\?"):
            await api.post(f"{SDN}/zones", zone="z2", type="simple")
        with pytest.raises(
            Refused, match="update sdn zone object failed: cfs-lock 'domain-sdn' error: no quorum!"
        ):
            await api.put(f"{SDN}/zones/z1", mtu=1400)
        assert len(await api.get(f"{SDN}/zones")) == 1
