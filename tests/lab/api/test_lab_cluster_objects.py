"""Objects of the cluster that are only kept: mappings, metric servers, backup and replication jobs."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

from pvelab import Work


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


GPU = "node=pve1,path=0000:01:00.0,id=10de:1eb8,iommugroup=12,subsystem-id=10de:0001"


@pytest.mark.parametrize(
    ("kind", "device", "other"),
    [
        ("pci", GPU, "node=pve1,path=0000:09:00.0,id=10de:1eb8"),
        ("usb", "node=pve1,id=1050:0407", "node=pve1,id=1050:9999,path=1-1"),
        ("dir", "node=pve1,path=/srv/share", "node=pve2,path=/srv/share"),
    ],
)
async def test_a_mapping_is_a_list_of_property_strings(kind: str, device: str, other: str) -> None:
    async with with_lab() as api:
        path = f"/cluster/mapping/{kind}"
        await api.post(path, id="thing", map=device, description="a thing")
        found = await api.get(f"{path}/thing")
        assert (found["map"], found["description"]) == ([device], "a thing")
        with pytest.raises(Refused, match=f"500 create .* mapping failed: {kind} ID 'thing' already defined"):
            await api.post(path, id="thing", map=device)
        await api.put(f"{path}/thing", map=[other], delete="description", digest=found["digest"])
        changed = await api.get(f"{path}/thing")
        assert (changed["map"], "description" in changed) == ([other], False)
        with pytest.raises(Refused, match="detected modified configuration"):
            await api.put(f"{path}/thing", map=device, digest=found["digest"])
        await api.delete(f"{path}/thing")
        await api.delete(f"{path}/thing")
        with pytest.raises(Refused, match="500 mapping 'thing' not found"):
            await api.get(f"{path}/thing")


async def test_mappings_are_compared_with_the_devices_of_the_node() -> None:
    async with with_lab() as api:
        await api.post("/cluster/mapping/pci", id="good", map=GPU)
        await api.post("/cluster/mapping/pci", id="gone", map="node=pve1,path=0000:09:00.0,id=10de:1eb8")
        await api.post("/cluster/mapping/pci", id="else", map="node=pve9,path=0000:01:00.0,id=10de:1eb8")
        await api.post("/cluster/mapping/usb", id="key", map="node=pve1,path=1-1,id=1050:0000")
        checks = {
            row["id"]: row["checks"]
            for row in await api.get("/cluster/mapping/pci", **{"check-node": "pve1"})
        }
        assert checks["good"] == []
        assert checks["gone"][0]["severity"] == "error"
        assert "pci device '0000:09:00.0' not found" in checks["gone"][0]["message"]
        assert checks["else"] == [{"severity": "warning", "message": "No mapping for node pve1."}]
        (key,) = await api.get("/cluster/mapping/usb", **{"check-node": "pve1"})
        assert "'id' does not match for 'key' (1050:0407 != 1050:0000)" in key["errors"][0]["message"]


async def test_a_directory_is_mapped_once_a_node() -> None:
    async with with_lab() as api:
        with pytest.raises(Refused, match=r"500 Node 'pve1' is specified 2 times\."):
            await api.post("/cluster/mapping/dir", id="share", map=["node=pve1,path=/a", "node=pve1,path=/b"])


async def test_pci_devices_are_listed_without_bridges_unless_asked_for() -> None:
    async with with_lab() as api:
        path = "/nodes/pve1/hardware/pci"
        shown = {device["id"]: device for device in await api.get(path)}
        assert "0000:00:00.0" not in shown
        assert (shown["0000:01:00.0"]["vendor"], shown["0000:01:00.0"]["iommugroup"]) == ("0x10de", 12)
        everything = await api.get(path, **{"pci-class-blacklist": "", "verbose": 0})
        assert everything[0]["id"] == "0000:00:00.0"
        assert "vendor_name" not in everything[0]


async def test_the_token_of_a_metric_server_is_never_shown() -> None:
    async with with_lab() as api:
        path = "/cluster/metrics/server/influx"
        place: dict[str, Any] = {"server": "192.0.2.9", "port": 8089}
        given = {**place, "type": "influxdb", "token": "secret", "mtu": 1000}
        await api.post(path, **given)
        assert await api.get(path) == {**place, "type": "influxdb", "mtu": 1000}
        await api.put(path, **place, bucket="b", delete="mtu,token", disable=1)
        assert await api.get(path) == {**place, "type": "influxdb", "bucket": "b", "disable": 1}
        assert api.world.store.get("metric_tokens", "influx") is None
        (row,) = await api.get("/cluster/metrics/server")
        assert (row["id"], row["disable"]) == ("influx", 1)
        for method, params, text in (
            ("POST", given, "Metric server 'influx' already exists"),
            ("PUT", {**place, "proto": "udp"}, "unexpected property 'proto'"),
            ("PUT", {**place, "delete": "port"}, "unable to delete required option 'port'"),
        ):
            with pytest.raises(Refused, match=f"500 {text}"):
                await api.call(method, path, params)
        await api.delete(path)
        with pytest.raises(Refused, match="500 status server entry 'influx' does not exist"):
            await api.get(path)


async def test_a_backup_job_keeps_texts_of_several_values_as_objects() -> None:
    async with with_lab() as api:
        await api.post(
            "/cluster/backup",
            **{
                "id": "nightly",
                "schedule": "02:00",
                "all": 1,
                "storage": "local",
                "prune-backups": "keep-last=3,keep-daily=7",
                "performance": "max-workers=2",
                "fleecing": "1,storage=local",
                "mailto": "a@example.test,b@example.test",
            },
        )
        job = await api.get("/cluster/backup/nightly")
        assert (job["id"], job["type"], job["enabled"], job["all"]) == ("nightly", "vzdump", 1, 1)
        assert job["prune-backups"] == {"keep-last": 3, "keep-daily": 7}
        assert (job["performance"], job["fleecing"]) == (
            {"max-workers": 2},
            {"enabled": 1, "storage": "local"},
        )
        assert job["mailto"] == "a@example.test,b@example.test"
        await api.put("/cluster/backup/nightly", vmid="100,101", delete="mailto")
        job = await api.get("/cluster/backup/nightly")
        assert (job["vmid"], "all" in job, "mailto" in job) == ("100,101", False, False)
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100))
        await api.done(await api.delete("/nodes/pve1/qemu/100", purge=1))
        assert (await api.get("/cluster/backup"))[0]["vmid"] == "101"
        await api.delete("/cluster/backup/nightly")
        with pytest.raises(Refused, match=r"400 .*No such job 'nightly'"):
            await api.get("/cluster/backup/nightly")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("id=job1 schedule=daily", "'vmid': 'property is missing'"),
        ("id=job1 all=1", "neither 'starttime' nor 'schedule' were set"),
        ("id=job1 all=1 vmid=100 schedule=daily", "'all': \"option conflicts with option 'vmid'\""),
        ("id=job1 all=1 schedule=daily starttime=02:00", "'starttime' and 'schedule' cannot both be set"),
        ("id=job1 all=1 schedule=daily script=/x", "Only root may set this option"),
    ],
)
async def test_backup_jobs_that_do_not_fit_are_refused(given: str, text: str) -> None:
    async with with_lab() as api:
        with pytest.raises(Refused) as refused:
            await api.post("/cluster/backup", **dict(pair.split("=", 1) for pair in given.split()))
        assert text in str(refused.value)


async def test_old_start_times_become_a_schedule() -> None:
    async with with_lab() as api:
        await api.post("/cluster/backup", id="job1", all=1, starttime="02:00", dow="mon,tue")
        await api.post("/cluster/backup", id="job2", all=1, starttime="03:00")
        schedules = [job["schedule"] for job in await api.get("/cluster/backup")]
        assert schedules == ["mon,tue 02:00", "03:00"]


async def replicated(api: LabClient) -> None:
    await api.post("/storage", storage="tank", type="zfspool", pool="tank", content="images,rootdir")
    upid = await api.post("/nodes/pve1/qemu", vmid=100, scsi0="tank:1")
    assert await api.done(upid) == "OK"


async def test_a_replication_job_needs_volumes_that_can_be_replicated() -> None:
    async with with_lab(nodes=("pve1", "pve2")) as api:
        await api.done(await api.post("/nodes/pve1/qemu", vmid=101, scsi0="local-lvm:1"))
        await api.done(await api.post("/nodes/pve1/qemu", vmid=102))
        await replicated(api)
        job = {"type": "local", "target": "pve2"}
        for ident, given, text in (
            ("101-0", job, "missing replicate feature on volume 'local-lvm:vm-101-disk-0'"),
            ("102-0", job, "No replicatable volumes found"),
            ("999-0", job, r"Guest '999' does not exist\."),
            ("100-0", {**job, "target": "pve1"}, "Source and target must not be identical"),
            ("100-0", {**job, "target": "pve9"}, r"Target 'pve9' does not exist\."),
        ):
            with pytest.raises(Refused, match=f"500 {text}"):
                await api.post("/cluster/replication", id=ident, **given)
        await api.post("/cluster/replication", id="100-0", rate=10, comment="c", **job)
        found = await api.get("/cluster/replication/100-0")
        assert (found["guest"], found["jobnum"], found["source"], found["rate"]) == (100, 0, "pve1", 10)
        with pytest.raises(
            Refused, match="500 replication job for guest '100' to target 'local/pve2' already"
        ):
            await api.post("/cluster/replication", id="100-1", **job)
        await api.put("/cluster/replication/100-0", schedule="*/30", delete="comment")
        assert "comment" not in await api.get("/cluster/replication/100-0")


async def test_a_replicated_guest_is_removed_only_with_its_jobs() -> None:
    async with with_lab(nodes=("pve1", "pve2")) as api:
        await replicated(api)
        await api.post("/cluster/replication", id="100-0", type="local", target="pve2")
        with pytest.raises(Refused, match="500 There is a replication job '100-0' for guest '100'"):
            await api.delete("/nodes/pve1/qemu/100")
        assert await api.done(await api.delete("/nodes/pve1/qemu/100", purge=1)) == "OK"
        assert await api.get("/cluster/replication") == []


async def test_a_replication_job_is_marked_and_removed_a_little_later() -> None:
    async with with_lab(nodes=("pve1", "pve2"), latency_s={Work.REPLICATE: 60.0}) as api:
        await replicated(api)
        await api.post("/cluster/replication", id="100-0", type="local", target="pve2")
        await api.delete("/cluster/replication/100-0")
        assert (await api.get("/cluster/replication/100-0"))["remove_job"] == "full"
        # The run that goes on comes to its end first.
        await api.pass_time(125)
        assert await api.get("/cluster/replication") == []
