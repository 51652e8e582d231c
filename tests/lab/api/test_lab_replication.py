"""Replication jobs run: at their times, on order, and again after they failed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

from stackyard import lab

JOB = "/nodes/pve1/replication/100-0"


@contextlib.asynccontextmanager
async def run(**options: Any) -> AsyncIterator[LabClient]:
    """Run a test against a lab with a VM on ZFS and a job that replicates it."""

    async with lab_client(nodes=("pve1", "pve2", "pve3"), **options) as api:
        # Time passes where a test says so, from a minute after a quarter of an hour: no run is due then.
        clock = api.world.clock
        clock.hold()
        clock.advance(960 - clock.now() % 900)
        await api.post("/storage", storage="tank", type="zfspool", pool="tank", content="images,rootdir")
        await api.post(
            "/nodes/pve1/qemu", vmid=100, memory=64, scsi0="tank:1", scsi1="local-lvm:1,replicate=0"
        )
        await api.post("/cluster/replication", id="100-0", type="local", target="pve2")
        yield api


async def volumes(api: LabClient, node: str) -> list[str]:
    return [one["volid"] for one in await api.get(f"/nodes/{node}/storage/tank/content")]


async def log(api: LabClient) -> str:
    return "\n".join(line["t"] for line in await api.get(f"{JOB}/log"))


async def test_a_new_job_copies_everything_and_a_later_run_what_changed() -> None:
    async with run() as api:
        status = await api.get(f"{JOB}/status")
        assert status["fail_count"] == 0
        assert status["last_sync"] == status["last_try"] > 0
        assert status["next_sync"] % 900 == 0
        assert (status["guest"], status["target"], status["vmtype"]) == (100, "pve2", "qemu")
        assert await volumes(api, "pve2") == ["tank:vm-100-disk-0"]
        first = await log(api)
        assert "100-0: volumes => tank:vm-100-disk-0" in first
        assert "full sync 'tank:vm-100-disk-0' (__replicate_100-0_" in first
        assert first.endswith("100-0: end replication job")
        await api.put("/nodes/pve1/qemu/100/resize", disk="scsi0", size="+1G")
        await api.pass_time(901)
        await api.get("/version")
        assert (await api.get(f"{JOB}/status"))["last_sync"] > status["last_sync"]
        assert "incremental sync 'tank:vm-100-disk-0' (__replicate_100-0_" in await log(api)
        content = await api.get("/nodes/pve2/storage/tank/content")
        assert content[0]["size"] == 2 * 2**30
        assert await api.get("/nodes/pve1/replication", guest=101) == []
        assert [job["id"] for job in await api.get("/nodes/pve1/replication")] == ["100-0"]
        assert await api.get("/nodes/pve2/replication") == []
        assert [one["name"] for one in await api.get(JOB)] == ["schedule_now", "log", "status"]


async def test_an_order_lets_a_job_run_at_once_and_a_disabled_one_waits() -> None:
    async with run() as api:
        before = (await api.get(f"{JOB}/status"))["last_sync"]
        await api.pass_time(5)
        await api.post(f"{JOB}/schedule_now")
        after = (await api.get(f"{JOB}/status"))["last_sync"]
        assert after >= before + 5
        await api.put("/cluster/replication/100-0", disable=1)
        await api.pass_time(5)
        await api.post(f"{JOB}/schedule_now")
        status = await api.get(f"{JOB}/status")
        assert (status["last_sync"], status["disable"]) == (after, 1)


async def test_a_run_that_fails_is_told_and_tried_again() -> None:
    async with run() as api:
        fault = api.running.add_fault("node-down", node="pve2")
        await api.pass_time(5)
        await api.post(f"{JOB}/schedule_now")
        status = await api.get(f"{JOB}/status")
        assert status["fail_count"] == 1
        assert "pvesr prepare-local-job 100-0" in status["error"]
        assert status["next_sync"] == 0
        assert "end replication job with error" in await log(api)
        api.running.remove_fault(fault)
        await api.get("/version")
        assert (await api.get(f"{JOB}/status"))["next_sync"] == status["last_try"] + 300
        await api.pass_time(301)
        await api.get("/version")
        status = await api.get(f"{JOB}/status")
        assert status["fail_count"] == 0
        assert "error" not in status


async def test_a_run_takes_time_at_real_speed_and_shows_its_process() -> None:
    async with run() as api:
        # Not every quarter of an hour: a second run may not become due while the first one takes its time.
        await api.put("/cluster/replication/100-0", schedule="sun 03:17")
        api.world.latency.overrides_s = {lab.Work.REPLICATE: 30.0}
        before = (await api.get(f"{JOB}/status"))["last_sync"]
        await api.pass_time(2)
        await api.post(f"{JOB}/schedule_now")
        status = await api.get(f"{JOB}/status")
        assert status["last_sync"] == before
        assert status["pid"] > 0
        await api.pass_time(31)
        status = await api.get(f"{JOB}/status")
        assert status["last_sync"] > before
        assert "pid" not in status


@pytest.mark.parametrize(("keep", "left"), [(0, []), (1, ["tank:vm-100-disk-0"])])
async def test_a_removed_job_takes_its_copies_along_unless_told_not_to(keep: int, left: list[str]) -> None:
    async with run() as api:
        await api.delete("/cluster/replication/100-0", keep=keep)
        assert await api.get("/cluster/replication") == []
        assert await volumes(api, "pve2") == left
        assert await volumes(api, "pve1") == ["tank:vm-100-disk-0"]
        with pytest.raises(Refused, match="500 no such replication job '100-0'"):
            await api.get(f"{JOB}/status")
        with pytest.raises(Refused, match="500 no such replication job '100-0'"):
            await api.get(f"{JOB}/log")


async def test_a_guest_that_moves_to_the_target_turns_its_job_round() -> None:
    async with run() as api:
        upid = await api.post("/nodes/pve1/qemu/100/migrate", target="pve2", with__local__disks=1)
        assert await api.done(upid) == "OK"
        assert (await api.get("/nodes/pve2/qemu/100/config"))["scsi0"].startswith("tank:vm-100-disk-0")
        job = await api.get("/cluster/replication/100-0")
        assert (job["source"], job["target"]) == ("pve2", "pve1")
        assert await volumes(api, "pve1") == await volumes(api, "pve2") == ["tank:vm-100-disk-0"]
        await api.pass_time(5)
        await api.post("/nodes/pve2/replication/100-0/schedule_now")
        assert (await api.get("/nodes/pve2/replication/100-0/status"))["fail_count"] == 0


async def test_ha_recovers_a_guest_from_its_replica() -> None:
    async with run() as api:
        await api.put("/nodes/pve1/qemu/100/config", delete="scsi1")
        await api.put("/nodes/pve1/qemu/100/config", delete="unused0")
        await api.post("/cluster/ha/resources", sid="vm:100")
        await api.post(
            "/cluster/ha/rules", rule="r1", type="node-affinity", resources="vm:100", nodes="pve1:2,pve2:1"
        )
        api.running.add_fault("node-down", node="pve1")
        await api.get("/version")
        status = await api.get("/nodes/pve2/qemu/100/status/current")
        assert status["status"] == "running"
        job = await api.get("/cluster/replication/100-0")
        assert (job["source"], job["target"]) == ("pve2", "pve1")


async def test_who_may_not_sees_and_starts_nothing() -> None:
    async with run() as api:
        await api.post("/access/users", userid="bob@pve", password="secret123")
        bob = await api.with_password("bob@pve", "secret123")
        assert await bob.get("/nodes/pve1/replication") == []
        with pytest.raises(Refused, match=r"403 Permission check failed \(/vms/100, VM.Audit\)"):
            await bob.get(f"{JOB}/status")
        with pytest.raises(Refused, match="403 Permission check failed"):
            await bob.get(f"{JOB}/log")
        with pytest.raises(Refused, match=r"403 Permission check failed \(/vms/100, VM.Replicate\)"):
            await bob.post(f"{JOB}/schedule_now")
        with pytest.raises(Refused, match="400 Parameter verification failed"):
            await api.get("/nodes/pve1/replication/x/status")
