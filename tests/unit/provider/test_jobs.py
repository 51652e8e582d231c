"""Backup and replication jobs, and HA groups: what the table of cases does not reach."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.kinds.jobs import SEED
from tests.support.provider_bench import Bench, Failed, bench

from pvelab.faults.latency import Work
from pvelab.seeds import Seed
from stackyard import lab
from stackyard.clients import proxmox
from stackyard.provider.resources.jobs import replication

BACKUP = "proxmox_backup_job"
REPLICATION = "proxmox_replication"
GROUP = "proxmox_hagroup"
JOB: dict[str, Any] = {"id": "nightly", "schedule": "*-*-* 02:00", "storage": "local"}
COPY: dict[str, Any] = {"id": "4200-0", "target": "pve2", "type": "local"}


@contextlib.asynccontextmanager
async def run(**options: Any) -> AsyncIterator[tuple[lab.Running, Bench]]:
    async with (
        lab.start(**{"nodes": ("pve1", "pve2"), "seed": SEED, **options}) as running,
        bench(running) as it,
    ):
        yield running, it


async def test_a_choice_of_guests_takes_the_place_of_another() -> None:
    async with run() as (running, it):
        for choice in ({"all": True}, {"vmid": ["4200"]}, {"pool": "team"}, {"vmid": ["4201"], "all": False}):
            await it.apply(BACKUP, **JOB, **choice)
            assert await it.is_settled(BACKUP, **JOB, **choice)
            job = running.world.store.items("backup_jobs")["nightly"]
            kept = {key: job[key] for key in ("all", "vmid", "pool") if job.get(key)}
            assert set(kept) == {key for key, value in choice.items() if value}
        await it.apply(BACKUP, **{**JOB, "schedule": "*-*-* 03:00"}, vmid=["4201"], all=False)


async def test_paths_and_settings_without_content_are_read_as_they_were_written() -> None:
    """Proxmox answers paths as a list, which bpg cannot read."""
    config = {**JOB, "all": True, "exclude_path": ["/tmp/*", "/var/a,b"], "mailto": [], "performance": {}}
    async with run() as (running, it):
        made = await it.apply(BACKUP, **config)
        assert running.world.store.items("backup_jobs")["nightly"]["exclude-path"] == config["exclude_path"]
        assert made["performance"] in ({"max_workers": None, "pbs_entries_max": None}, {})
        assert await it.is_settled(BACKUP, **config)
        slower = {
            **config,
            "performance": {"max_workers": 2},
            "exclude_path": None,
            "mailto": ["a@example.com"],
        }
        await it.apply(BACKUP, **slower)
        assert await it.is_settled(BACKUP, **slower)
        await it.apply(BACKUP, **config)
        assert not {"performance", "mailto"} & set(running.world.store.items("backup_jobs")["nightly"])
        assert await it.is_settled(BACKUP, **config)


async def test_a_replication_job_that_is_being_removed_is_gone_and_its_id_is_awaited() -> None:
    async with run(latency_s={Work.REPLICATE: 0.4}) as (running, it):
        await it.apply(REPLICATION, **COPY)
        await it.session.client.delete("/cluster/replication/4200-0")
        assert await it.refresh(REPLICATION) is None
        assert running.world.store.items("replication_jobs")["4200-0"]["remove_job"] == "full"
        await it.apply(REPLICATION, **COPY, comment="again")
        assert running.world.store.items("replication_jobs")["4200-0"]["comment"] == "again"
        await it.remove(REPLICATION)
        assert running.world.store.items("replication_jobs") == {}


async def test_a_job_that_no_node_removes_is_an_error_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replication, "_REMOVAL_S", 0.2)
    async with run(nodes=("pve1", "pve2", "pve3", "pve4", "pve5")) as (running, it):
        await it.apply(REPLICATION, **{**COPY, "target": "pve3"})
        fault = running.add_fault("node-down", node="pve1")
        try:
            with pytest.raises(Failed, match=r"4200-0 was marked for removal(.|\n)*pvesr delete ID --force"):
                await it.remove(REPLICATION)
        finally:
            running.remove_fault(fault)


async def test_a_replication_job_is_hidden_or_gone_and_never_mixed_up() -> None:
    async with run() as (running, it):
        await it.apply(REPLICATION, **COPY)
        client = it.session.client
        await client.post("/access/users", {"userid": "weak@pve", "password": "weak-password"})
        weak = proxmox.Login(username="weak@pve", password="weak-password")
        async with bench(running, credentials=weak) as other:
            other.states[REPLICATION] = it.states[REPLICATION]
            with pytest.raises(Failed, match=r"403 Permission check failed \(/vms/4200, VM.Audit\)"):
                await other.refresh(REPLICATION)
            await it.remove(REPLICATION)
            assert await other.refresh(REPLICATION) is None


async def test_a_migrated_group_is_gone_with_a_warning_and_a_new_one_is_refused() -> None:
    config = {"group": "old", "nodes": {"pve1": 1}}
    async with run(seed=Seed(name="groups", ha_groups=True)) as (running, it):
        await it.apply(GROUP, **config)
        with running.world.store.transaction(), running.world.store.edit("cluster", "state") as state:
            del state["ha_groups"]
        it.session.client.expire_reads()
        known, kept = it.known(GROUP), it.states[GROUP]
        result = await it.operations.read(known, GROUP, kept, {})
        assert result.state is None
        assert "does not exist any more" in result.problems[0].detail
        assert "proxmox_harule" in result.problems[0].detail
        await it.remove(GROUP)
        with pytest.raises(
            Failed, match=r"E-PROVIDER-HA-GROUPS(.|\n)*cannot index groups(.|\n)*proxmox_harule"
        ):
            await it.apply(GROUP, **config)
