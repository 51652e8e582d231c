"""The log of the cluster, and models of CPUs."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.support.lab import LabClient, Refused, lab_client

MODELS = "/cluster/qemu/custom-cpu-models"


@contextlib.asynccontextmanager
async def run() -> AsyncIterator[LabClient]:
    async with lab_client(nodes=("pve1", "pve2")) as api:
        api.world.clock.hold()
        yield api


async def test_the_log_tells_of_logins_and_tasks_and_of_others_only_to_who_may_know() -> None:
    async with run() as api:
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


async def test_a_cpu_model_is_kept_and_offered_to_vms() -> None:
    async with run() as api:
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


@pytest.mark.parametrize(
    "params",
    [
        {"cputype": "lab"},
        {"cputype": "lab", "reported-model": "Z80"},
        {"cputype": "lab", "reported-model": "Haswell", "flags": "aes"},
        {"cputype": "1", "reported-model": "Haswell"},
    ],
)
async def test_wrong_cpu_models_are_refused(params: dict[str, str]) -> None:
    async with run() as api:
        with pytest.raises(Refused, match="400 Parameter verification failed"):
            await api.post(MODELS, **params)
        assert await api.get(MODELS) == []


async def test_cpu_flags_and_models_are_for_who_may_see_them() -> None:
    async with run() as api:
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
