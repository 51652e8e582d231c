"""Many guests at once: each gets the call that it would get alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

B = "/cluster/bulk-action/guest"
TEMPLATE = {"content": "vztmpl", "filename": "d.tar.zst", "url": "http://images.example/d.tar.zst"}


def run(test: Callable[[LabClient], Awaitable[None]]) -> None:
    """Run a test against a lab with two VMs, a container and a template on two nodes."""

    async def main() -> None:
        async with lab_client(nodes=("pve1", "pve2")) as api:
            await api.post("/nodes/pve1/storage/local/download-url", **TEMPLATE)
            await api.post("/nodes/pve1/qemu", vmid=100, memory=64, scsi0="local-lvm:1", startup="order=2")
            await api.post("/nodes/pve2/qemu", vmid=101, memory=64, startup="order=1")
            await api.post("/nodes/pve1/qemu", vmid=109, memory=64, template=1)
            given = {"ostemplate": "local:vztmpl/d.tar.zst", "rootfs": "local-lvm:1"}
            assert await api.done(await api.post("/nodes/pve1/lxc", vmid=200, **given)) == "OK"
            await test(api)

    asyncio.run(main())


async def states(api: LabClient) -> dict[int, str]:
    rows = await api.get("/cluster/resources", type="vm")
    return {row["vmid"]: row["status"] for row in rows if row["vmid"] != 109}


async def orders(api: LabClient, *kinds: str) -> list[int]:
    tasks = reversed(await api.get("/cluster/tasks"))
    return [int(task["id"]) for task in tasks if task["type"] in kinds]


def test_all_guests_start_in_their_order_and_shut_down_in_reverse() -> None:
    async def test(api: LabClient) -> None:
        upid = await api.post(f"{B}/start")
        assert await api.done(upid) == "OK"
        assert set((await states(api)).values()) == {"running"}
        assert await orders(api, "qmstart", "vzstart") == [101, 100, 200]
        assert (await api.log(upid))[0] == "Starting all guests"
        upid = await api.post(f"{B}/start", vms=[100])
        assert await api.done(upid) == "WARNINGS: 1"
        assert "WARN: Skipping VM 100, already running." in await api.log(upid)
        upid = await api.post(f"{B}/shutdown", timeout=90)
        assert await api.done(upid) == "OK"
        assert "Shutting down CT 200 (Timeout = 90 seconds)" in await api.log(upid)
        assert await orders(api, "qmshutdown", "vzshutdown") == [200, 100, 101]
        assert set((await states(api)).values()) == {"stopped"}

    run(test)


def test_vms_are_suspended_and_go_on_with_the_next_start() -> None:
    async def test(api: LabClient) -> None:
        await api.post(f"{B}/start")
        upid = await api.post(f"{B}/suspend")
        assert await api.done(upid) == "WARNINGS: 1"
        assert "WARN: skipping 200, only VMs can be suspended" in await api.log(upid)
        assert (await api.get("/nodes/pve1/qemu/100/status/current"))["qmpstatus"] == "paused"
        upid = await api.post(f"{B}/start", vms=[100, 101])
        assert await api.done(upid) == "OK"
        assert (await api.get("/nodes/pve1/qemu/100/status/current"))["qmpstatus"] == "running"
        upid = await api.post(f"{B}/suspend", vms=[100], to__disk=1)
        assert await api.done(upid) == "OK"
        assert (await api.get("/nodes/pve1/qemu/100/config"))["lock"] == "suspended"

    run(test)


def test_guests_move_to_one_node_and_failures_are_named() -> None:
    async def test(api: LabClient) -> None:
        await api.post(f"{B}/start")
        upid = await api.post(f"{B}/migrate", target="pve2")
        assert await api.done(upid) == "Some guests failed to migrate 100, 200"
        log = await api.log(upid)
        assert "WARN: can't migrate running VM without --online" in log
        assert "WARN: VM 101 already on pve2, skipping." in log
        upid = await api.post(f"{B}/migrate", target="pve2", online=1, with__local__disks=1, vms=[100, 200])
        assert await api.done(upid) == "OK"
        nodes = {row["vmid"]: row["node"] for row in await api.get("/cluster/resources", type="vm")}
        # The template went with the first order.
        assert set(nodes.values()) == {"pve2"}

    run(test)


def test_guests_of_ha_are_left_alone_unless_they_are_named() -> None:
    async def test(api: LabClient) -> None:
        await api.post("/cluster/ha/resources", sid="vm:100", state="stopped")
        await api.done(await api.post(f"{B}/start"))
        assert (await states(api))[100] == "stopped"
        await api.done(await api.post(f"{B}/start", vms=[100]))
        assert (await states(api))[100] == "running"
        assert await orders(api, "hastart") == [100]

    run(test)


@pytest.mark.parametrize("action", ["start", "shutdown", "suspend", "migrate"])
def test_who_may_not_is_refused(action: str) -> None:
    async def test(api: LabClient) -> None:
        await api.post("/access/users", userid="bob@pve", password="secret123")
        await api.put("/access/acl", path="/vms/100", roles="PVEVMAdmin", users="bob@pve")
        bob = await api.with_password("bob@pve", "secret123")
        given: dict[str, Any] = {"target": "pve2"} if action == "migrate" else {}
        with pytest.raises(Refused, match=r"403 Permission check failed \(/, VM\."):
            await bob.post(f"{B}/{action}", **given)
        with pytest.raises(Refused, match=r"403 Permission check failed \(/vms/101, VM\."):
            await bob.post(f"{B}/{action}", vms=[100, 101], **given)
        upid = await bob.post(f"{B}/{action}", vms=[100], **given)
        assert upid.split(":")[5:8] == [f"bulk-{action}", "", "bob@pve"]
        with pytest.raises(Refused, match="400 Parameter verification failed"):
            await bob.post(f"{B}/{action}", vms=["x"], **given)
        assert {"name": action} in await bob.get(B)

    run(test)
