"""A guest made from an image of Proxmox VE is a node of its own: its API, its life, its data."""

from __future__ import annotations

import asyncio
import ipaddress
from pathlib import Path

import aiohttp
import pytest
from tests.support.lab import LabClient, lab_client
from tests.support.lab_nested import PASSWORD, client_of, make_node, nested_node, sessions

from pvelab.machines.machine import Kind
from pvelab.nested.detect import is_node_image


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("debian-13-pve.qcow2", True),
        ("debian-12-pve.img", True),
        ("pve-9.img", True),
        ("PVE9.raw", True),
        ("proxmox-ve_9.0-1.qcow2", True),
        ("debian-13.qcow2", False),
        ("pvelocity.img", False),
        ("improve.img", False),
    ],
)
def test_the_name_of_an_image_says_whether_guests_of_it_are_nodes(name: str, expected: bool) -> None:
    assert is_node_image(name) is expected


async def test_a_vm_is_created_through_the_api_of_a_node_three_labs_deep() -> None:
    async with lab_client(guests=Kind.RECORDED) as api, sessions() as session:
        here = api
        for depth in (1, 2, 3):
            here = await nested_node(here, 100 + depth, session)
            assert list(here.running.nodes) == [f"inner{100 + depth}"]
        node = here.running.nodes[0]
        upid = await here.post(f"/nodes/{node}/qemu", vmid=500, memory=512)
        assert await here.done(upid) == "OK"
        assert [vm["vmid"] for vm in await here.get(f"/nodes/{node}/qemu")] == [500]
        assert [vm["vmid"] for vm in await api.get("/nodes/pve1/qemu")] == [101]


async def test_a_nested_node_is_what_its_guest_is() -> None:
    async with lab_client(guests=Kind.RECORDED) as api, sessions() as session:
        inner = await nested_node(api, 100, session, ipconfig0="ip=10.0.12.5/24,gw=10.0.12.1", memory=4096)
        [node] = await inner.get("/nodes")
        assert (node["maxcpu"], node["maxmem"]) == (4, 4096 * 2**20)
        [bridge] = [one for one in await inner.get("/nodes/inner100/network") if one["iface"] == "vmbr0"]
        assert (bridge["address"], bridge["gateway"]) == ("10.0.12.5", "10.0.12.1")
        storages = {one["storage"] for one in await inner.get("/nodes/inner100/storage")}
        assert storages == {"local", "local-lvm"}
        assert inner.running.fingerprint != api.running.fingerprint
        ticket = await inner.with_password("root@pam", PASSWORD)
        assert (await ticket.get("/version"))["release"] == (await api.get("/version"))["release"]


async def test_guests_of_nested_nodes_have_addresses_of_the_same_network_and_no_two_the_same() -> None:
    async with lab_client(guests=Kind.RECORDED) as api, sessions() as session:
        inner = await nested_node(api, 100, session)
        deeper = await nested_node(inner, 100, session)
        await make_node(deeper, 100)
        found = []
        for client in (api, inner, deeper):
            path = f"/nodes/{client.running.nodes[0]}/qemu/100/agent/network-get-interfaces"
            [_, card] = (await client.get(path))["result"]
            found.append(ipaddress.ip_address(card["ip-addresses"][0]["ip-address"]))
        assert len(set(found)) == 3
        assert all(address in ipaddress.ip_network("10.31.0.0/16") for address in found)


async def test_a_guest_that_stops_takes_its_node_along_and_finds_it_again_when_it_starts() -> None:
    async with lab_client(guests=Kind.RECORDED) as api, sessions() as session:
        inner = await nested_node(api, 100, session)
        for vmid, onboot in ((200, 0), (201, 1)):
            await inner.done(await inner.post("/nodes/inner100/qemu", vmid=vmid, onboot=onboot))
            await inner.done(await inner.post(f"/nodes/inner100/qemu/{vmid}/status/start"))
        await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
        with pytest.raises(aiohttp.ClientConnectorError):
            await _until_gone(inner)
        await api.done(await api.post("/nodes/pve1/qemu/100/status/start"))
        again = await client_of(api, 100, session)
        await _until_started(again, 201)
        states = {vm["vmid"]: vm["status"] for vm in await again.get("/nodes/inner100/qemu")}
        assert states == {200: "stopped", 201: "running"}
        assert again.running.fingerprint == inner.running.fingerprint
        assert again.running.api_token == inner.running.api_token


async def test_a_lab_that_is_started_again_finds_its_nested_nodes_as_they_were(tmp_path: Path) -> None:
    async with sessions() as session:
        async with lab_client(guests=Kind.RECORDED, data=tmp_path) as api:
            inner = await nested_node(api, 100, session)
            await inner.done(await inner.post("/nodes/inner100/qemu", vmid=200))
            await inner.done(await inner.post("/nodes/inner100/qemu/200/status/start"))
            known = inner.running
        async with lab_client(guests=Kind.RECORDED, data=tmp_path) as api:
            inner = await client_of(api, 100, session)
            [guest] = await inner.get("/nodes/inner100/qemu")
            assert (guest["vmid"], guest["status"]) == (200, "running")
            assert inner.running.fingerprint == known.fingerprint


async def test_snapshot_rollback_and_clone_of_a_guest_carry_the_lab_inside() -> None:
    async with lab_client(guests=Kind.RECORDED) as api, sessions() as session:
        inner = await nested_node(api, 100, session)
        await inner.done(await inner.post("/nodes/inner100/qemu", vmid=200))
        snapshot = await api.post("/nodes/pve1/qemu/100/snapshot", snapname="before")
        assert await api.done(snapshot) == "OK"
        await inner.done(await inner.delete("/nodes/inner100/qemu/200"))
        rollback = await api.post("/nodes/pve1/qemu/100/snapshot/before/rollback", start=1)
        assert await api.done(rollback) == "OK"
        again = await client_of(api, 100, session)
        assert [vm["vmid"] for vm in await again.get("/nodes/inner100/qemu")] == [200]
        await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
        assert await api.done(await api.post("/nodes/pve1/qemu/100/clone", newid=101, full=1)) == "OK"
        await api.done(await api.post("/nodes/pve1/qemu/101/status/start"))
        clone = await client_of(api, 101, session)
        assert [vm["vmid"] for vm in await clone.get("/nodes/inner100/qemu")] == [200]


async def test_a_guest_that_is_destroyed_leaves_nothing_of_its_lab(tmp_path: Path) -> None:
    async with lab_client(guests=Kind.RECORDED, data=tmp_path) as api, sessions() as session:
        await nested_node(api, 100, session)
        assert len(list((tmp_path / "nested").iterdir())) == 1
        await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
        await api.done(await api.delete("/nodes/pve1/qemu/100"))
    assert list((tmp_path / "nested").iterdir()) == []


async def _until_gone(client: LabClient) -> None:
    """Call until nobody answers: a node ends a moment after its guest."""
    async with asyncio.timeout(60):
        while True:
            await client.get("/version")
            await asyncio.sleep(0)


async def _until_started(client: LabClient, vmid: int) -> None:
    async with asyncio.timeout(60):
        for task in list(client.world.tasks.newest_first()):
            await client.world.tasks.wait(str(task["upid"]))
        while (client.world.guests.get(vmid) or {})["status"] != "running":
            await asyncio.sleep(0.01)
