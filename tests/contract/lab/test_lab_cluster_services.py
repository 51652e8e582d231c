"""Schedules, jobs of the cluster, its log and figures, and models of CPUs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

MODELS = "/cluster/qemu/custom-cpu-models"
LDAP = {
    "realm": "dir",
    "type": "ldap",
    "server1": "ldap.example",
    "base_dn": "dc=example",
    "user_attr": "uid",
}


def run(test: Callable[[LabClient], Awaitable[None]]) -> None:
    async def main() -> None:
        async with lab_client(nodes=("pve1", "pve2")) as api:
            api.world.clock.hold()
            await test(api)

    asyncio.run(main())


def test_a_schedule_is_analyzed() -> None:
    async def test(api: LabClient) -> None:
        found = await api.get(
            "/cluster/jobs/schedule-analyze", schedule="mon 2:30", starttime=0, iterations=2
        )
        assert found == [
            {"timestamp": 354600, "utc": "Mon Jan  5 02:30:00 1970"},
            {"timestamp": 959400, "utc": "Mon Jan 12 02:30:00 1970"},
        ]
        assert len(await api.get("/cluster/jobs/schedule-analyze", schedule="hourly")) == 10
        assert await api.get("/cluster/jobs/schedule-analyze", schedule="2001-01-01") == []
        with pytest.raises(Refused, match="invalid calendar event 'soon'"):
            await api.get("/cluster/jobs/schedule-analyze", schedule="soon")
        assert {"subdir": "realm-sync"} in await api.get("/cluster/jobs")

    run(test)


def test_a_sync_job_runs_at_its_time() -> None:
    async def test(api: LabClient) -> None:
        await api.post("/access/domains", **LDAP)
        job = {"schedule": "hourly", "scope": "both", "realm": "dir"}
        await api.post("/cluster/jobs/realm-sync/nightly", comment="c", **job)
        (row,) = await api.get("/cluster/jobs/realm-sync")
        assert row["next-run"] % 3600 == 0
        assert "last-run" not in row
        await api.pass_time(row["next-run"] - int(api.world.clock.now()) + 2)
        (task,) = [one for one in await api.get("/cluster/tasks") if one["type"] == "auth-realm-sync"]
        assert "ldap.example" in task["status"]
        (row,) = await api.get("/cluster/jobs/realm-sync")
        assert row["last-run"] >= task["starttime"]
        await api.put("/cluster/jobs/realm-sync/nightly", schedule="hourly", enabled=0, delete="comment")
        shown = await api.get("/cluster/jobs/realm-sync/nightly")
        assert shown == {"type": "realm-sync", "enabled": 0, **job}
        await api.delete("/cluster/jobs/realm-sync/nightly")
        with pytest.raises(Refused, match="No such job 'nightly'"):
            await api.get("/cluster/jobs/realm-sync/nightly")

    run(test)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"schedule": "hourly", "scope": "both", "realm": "none"}, "No such realm 'none'"),
        ({"schedule": "hourly", "scope": "both", "realm": "pve"}, "Only LDAP/AD realms can be synced."),
        ({"schedule": "hourly", "realm": "pve"}, "missing value for required option 'scope'"),
        ({"scope": "both", "realm": "pve"}, "400 Parameter verification failed"),
    ],
)
def test_wrong_sync_jobs_are_refused(params: dict[str, Any], text: str) -> None:
    async def test(api: LabClient) -> None:
        with pytest.raises(Refused, match=text):
            await api.post("/cluster/jobs/realm-sync/nightly", **params)
        assert await api.get("/cluster/jobs/realm-sync") == []

    run(test)


def test_the_log_tells_of_logins_and_tasks_and_of_others_only_to_who_may_know() -> None:
    async def test(api: LabClient) -> None:
        await api.post("/access/users", userid="bob@pve", password="secret123")
        bob = await api.with_password("bob@pve", "secret123")
        upid = await api.post("/nodes/pve1/qemu", vmid=100)
        log = await api.get("/cluster/log", max=3)
        assert [entry["msg"] for entry in log] == [
            f"end task {upid} OK",
            f"starting task {upid}",
            "successful auth for user 'bob@pve'",
        ]
        assert (log[0]["pri"], log[0]["tag"], log[0]["node"]) == (6, "pvedaemon", "pve1")
        assert log[0]["id"] == f"{log[0]['uid']}:pve1"
        assert len(await api.get("/cluster/log", max=1)) == 1
        assert await bob.get("/cluster/log") == []
        with pytest.raises(Refused, match="400 Parameter verification failed"):
            await api.get("/cluster/log", max=0)

    run(test)


def test_figures_are_exported_as_metrics() -> None:
    async def test(api: LabClient) -> None:
        await api.post("/nodes/pve1/qemu", vmid=100, memory=256, start=1)
        data = (await api.get("/cluster/metrics/export"))["data"]
        found = {(row["id"], row["metric"]): row for row in data}
        assert found["qemu/100", "mem_total"]["value"] == 256 * 2**20
        assert found["qemu/100", "net_in"]["type"] == "derive"
        assert ("node/pve2", "uptime") in found
        assert ("storage/pve1/local", "disk_total") in found
        local = (await api.get("/cluster/metrics/export", local__only=1))["data"]
        assert "node/pve2" not in {row["id"] for row in local}
        past = (await api.get("/cluster/metrics/export", history=1, node__list="pve2"))["data"]
        assert len({row["timestamp"] for row in past}) == 181
        assert {row["id"].split("/")[0] for row in past} == {"node", "storage"}
        with pytest.raises(Refused, match="Requested node-list contains unknown nodes - pve9"):
            await api.get("/cluster/metrics/export", node__list="pve9")

    run(test)


def test_a_cpu_model_is_kept_and_offered_to_vms() -> None:
    async def test(api: LabClient) -> None:
        await api.post(
            MODELS, cputype="lab", flags="+aes;-pcid", **{"reported-model": "Haswell", "hidden": 1}
        )
        model = await api.get(f"{MODELS}/custom-lab")
        digest = model.pop("digest")
        assert model == {
            "cputype": "custom-lab",
            "reported-model": "Haswell",
            "flags": "+aes;-pcid",
            "hidden": 1,
        }
        with pytest.raises(Refused, match="custom CPU model 'lab' already exists"):
            await api.post(MODELS, cputype="custom-lab", **{"reported-model": "Haswell"})
        await api.put(f"{MODELS}/lab", level=30, delete="hidden", digest=digest)
        (shown,) = await api.get(MODELS)
        assert (shown["level"], "hidden" in shown) == (30, False)
        with pytest.raises(Refused, match="cannot delete 'reported-model'"):
            await api.put(f"{MODELS}/lab", delete="reported-model")
        with pytest.raises(Refused, match="detected modified configuration"):
            await api.put(f"{MODELS}/lab", level=3, digest=digest)
        names = [row["name"] for row in await api.get("/nodes/pve1/capabilities/qemu/cpu")]
        assert "custom-lab" in names
        await api.delete(f"{MODELS}/lab")
        with pytest.raises(Refused, match="Custom cputype 'lab' not found"):
            await api.get(f"{MODELS}/lab")
        with pytest.raises(Refused, match="custom CPU model 'lab' does not exist"):
            await api.delete(f"{MODELS}/lab")

    run(test)


@pytest.mark.parametrize(
    "params",
    [
        {"cputype": "lab"},
        {"cputype": "lab", "reported-model": "Z80"},
        {"cputype": "lab", "reported-model": "Haswell", "flags": "aes"},
        {"cputype": "1", "reported-model": "Haswell"},
    ],
)
def test_wrong_cpu_models_are_refused(params: dict[str, str]) -> None:
    async def test(api: LabClient) -> None:
        with pytest.raises(Refused, match="400 Parameter verification failed"):
            await api.post(MODELS, **params)
        assert await api.get(MODELS) == []

    run(test)


def test_cpu_flags_and_models_are_for_who_may_see_them() -> None:
    async def test(api: LabClient) -> None:
        await api.post(MODELS, cputype="lab", **{"reported-model": "Haswell"})
        await api.post("/access/users", userid="bob@pve", password="secret123")
        bob = await api.with_password("bob@pve", "secret123")
        assert await bob.get(MODELS) == []
        with pytest.raises(Refused, match="403"):
            await bob.get("/cluster/qemu/cpu-flags")
        with pytest.raises(Refused, match="403"):
            await bob.delete(f"{MODELS}/lab")
        flags = await api.get("/cluster/qemu/cpu-flags")
        assert {"name": "aes", "supported-on": ["pve1", "pve2"]} in flags
        assert await api.get("/cluster/qemu/cpu-flags", arch="aarch64") == []

    run(test)
