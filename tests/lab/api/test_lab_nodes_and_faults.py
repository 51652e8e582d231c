"""Several nodes, lost quorum, faults on purpose, and the journal."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from tests.support.lab import LabClient, Refused, lab_client

from pvelab import Work
from pvelab.faults.faults import FaultRule, Point, Strike


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


def set_node(api: LabClient, node: str, **fields: Any) -> None:
    with api.world.store.transaction(), api.world.store.edit("nodes", node) as document:
        document.update(fields)


async def test_a_node_that_is_down_is_seen_and_cannot_be_reached() -> None:
    async with with_lab(nodes=("pve1", "pve2", "pve3")) as api:
        await api.done(await api.post("/nodes/pve2/qemu", vmid=100))
        set_node(api, "pve2", online=0)
        reply = await api.raw("GET", "/nodes/pve2/qemu/100/config")
        assert (reply.status, reply.reason, reply.body) == (595, "No route to host", b"")
        resources = {row["id"]: row for row in await api.get("/cluster/resources")}
        assert resources["qemu/100"]["status"] == "unknown"
        assert resources["node/pve2"]["status"] == "offline"
        assert resources["storage/pve2/local"]["status"] == "unknown"
        set_node(api, "pve2", online=1)
        assert (await api.get("/nodes/pve2/qemu/100/config"))["digest"]


async def test_without_quorum_nothing_starts_and_reads_still_work() -> None:
    async with with_lab(nodes=("pve1", "pve2", "pve3")) as api:
        for node in ("pve2", "pve3"):
            set_node(api, node, online=0)
        status = {row["id"]: row for row in await api.get("/cluster/status")}
        assert status["cluster"]["quorate"] == 0
        assert status["node/pve1"]["online"] == 0
        with pytest.raises(Refused, match=r"500 cluster not ready - no quorum\?"):
            await api.post("/nodes/pve1/qemu", vmid=100)
        assert await api.get("/nodes/pve1/qemu") == []


async def test_a_fault_answers_in_place_of_a_call() -> None:
    async with with_lab() as api:
        rule = FaultRule(
            point=Point.BEFORE_WORK,
            strike=Strike(status=500, reason="got timeout"),
            method="POST",
            path="/nodes/*/qemu",
            nth=2,
        )
        api.world.faults.add("second", rule)
        await api.post("/nodes/pve1/qemu", vmid=100)
        with pytest.raises(Refused, match="500 got timeout"):
            await api.post("/nodes/pve1/qemu", vmid=101)
        await api.post("/nodes/pve1/qemu", vmid=102)
        assert [guest["vmid"] for guest in await api.get("/nodes/pve1/qemu")] == [100, 102]
        assert api.world.faults.rules()["second"][1:] == (3, 1)


@pytest.mark.parametrize(("point", "made"), [(Point.BEFORE_WORK, []), (Point.AFTER_WORK, [100])])
async def test_a_dropped_connection_comes_before_or_after_the_work(point: Point, made: list[int]) -> None:
    async with with_lab() as api:
        api.world.faults.add("cut", FaultRule(point=point, strike=Strike(drop=True), method="POST", times=1))
        with pytest.raises(aiohttp.ClientError):
            await api.post("/nodes/pve1/qemu", vmid=100)
        assert [guest["vmid"] for guest in await api.get("/nodes/pve1/qemu")] == made


async def test_a_task_that_fails_late_gives_back_what_it_took() -> None:
    async with with_lab() as api:
        strike = Strike(reason="storage went away")
        api.world.faults.add("late", FaultRule(point=Point.TASK, strike=strike, method="qmcreate", step=3))
        upid = await api.post("/nodes/pve1/qemu", vmid=100, scsi0="local-lvm:4", scsi1="local-lvm:4")
        assert await api.done(upid) == "unable to create VM 100 - storage went away"
        assert await api.get("/nodes/pve1/storage/local-lvm/content") == []
        assert (await api.get("/nodes/pve1/storage/local-lvm/status"))["used"] == 0
        with pytest.raises(Refused, match="does not exist"):
            await api.get("/nodes/pve1/qemu/100/config")


async def test_parallel_allocations_on_a_slow_storage_fail_after_ten_seconds() -> None:
    async with with_lab(latency_s={Work.ALLOCATE: 6.0}) as api:
        api.world.clock.hold()
        upids = [await api.post("/nodes/pve1/qemu", vmid=100 + n, scsi0="local-lvm:1") for n in range(4)]
        await api.pass_time(30)
        statuses = [await api.done(upid) for upid in upids]
        late = "can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout"
        assert statuses == [
            "OK",
            "OK",
            f"unable to create VM 102 - {late}",
            f"unable to create VM 103 - {late}",
        ]


async def test_the_journal_tells_every_call_and_no_secret() -> None:
    async with with_lab() as api:
        await api.post("/nodes/pve1/qemu", vmid=100, cipassword="hunter22")
        with pytest.raises(Refused):
            await api.get("/nodes/pve1/qemu/101/config")
        reply = await api.raw("GET", "/journal", base="/_lab")
        calls = reply.json["calls"]
        assert [(call["method"], call["status"]) for call in calls] == [("POST", 200), ("GET", 500)]
        assert calls[0]["parameters"] == {"vmid": "100", "cipassword": "********"}
        assert calls[0]["user"] == "root@pam!lab"
        assert calls[0]["result"].startswith("UPID:pve1:")
        assert b"hunter22" not in reply.body
        assert (await api.with_headers({}).raw("GET", "/journal", base="/_lab")).status == 401
