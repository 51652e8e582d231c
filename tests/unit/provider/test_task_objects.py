"""Objects that Proxmox makes in tasks: pools of ZFS and Ceph, images of registries."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.provider import lab_api
from tests.support.provider_bench import Bench, Failed, bench

from stackyard import lab
from stackyard.clients import proxmox

ZFS, CEPH, OCI = "proxmox_node_disk_zfs", "proxmox_ceph_pool", "proxmox_oci_image"
TANK: dict[str, Any] = {
    "node_name": "pve1",
    "name": "tank",
    "devices": ["/dev/sda"],
    "raidlevel": "single",
    "cleanup_disks": True,
}
APPS: dict[str, Any] = {"node_name": "pve1", "name": "apps"}
IMAGE: dict[str, Any] = {
    "node_name": "pve1",
    "datastore_id": "local",
    "reference": "docker.io/library/debian:13",
}
CONTENT = "/nodes/pve1/storage/local/content"


@contextlib.asynccontextmanager
async def run(*, ceph: bool = False) -> AsyncIterator[tuple[Bench, proxmox.Client, lab.Running]]:
    async with (
        lab.start(nodes=("pve1",)) as running,
        lab_api(running) as api,
        bench(running) as it,
    ):
        if ceph:
            await api.post("/nodes/pve1/ceph/init")
            await done(api, await api.post("/nodes/pve1/ceph/mon/pve1"))
        yield it, api, running


async def done(api: proxmox.Client, upid: str) -> None:
    await proxmox.wait_for(api, upid, timeout_s=60)


@pytest.mark.parametrize(
    ("type_name", "config", "change", "named"),
    [
        (ZFS, TANK, {"compression": "zstd"}, "compression"),
        (OCI, {**IMAGE, "file_name": "a.tar"}, {"reference": "docker.io/library/debian:14"}, "reference"),
    ],
)
async def test_what_an_interrupted_run_made_of_something_else_is_left_alone(
    type_name: str, config: dict[str, Any], change: dict[str, Any], named: str, tmp_path: Path
) -> None:
    async with lab.start(nodes=("pve1",)) as running:
        async with bench(running, tmp_path) as it:
            await it.apply(type_name, **config)
        async with bench(running, tmp_path) as it:
            with pytest.raises(Failed, match=f"other values of {named}"):
                await it.apply(type_name, **{**config, **change})
            assert it.session.journal.entries == ()


async def test_what_somebody_made_after_a_kill_is_left_alone(tmp_path: Path) -> None:
    path = "/nodes/pve1/disks/zfs"
    async with lab.start(nodes=("pve1",)) as running:
        async with bench(running, tmp_path) as it:
            name = running.add_fault(kind="drop", when="before", method="POST", path=path)
            with pytest.raises(Failed):
                await it.apply(ZFS, **TANK)
            running.remove_fault(name)
            assert len(it.session.journal.entries) == 1
        async with lab_api(running) as api:
            for _ in range(2):
                # Two tasks since then are about a pool of that name, so that neither can be told to be ours.
                await done(api, await api.post(path, {**_made(TANK), "devices": "/dev/sdb"}))
                await done(api, await api.delete(f"{path}/tank", {"cleanup-disks": True}))
            await done(api, await api.post(path, {**_made(TANK), "devices": "/dev/sdb"}))
        async with bench(running, tmp_path) as it:
            with pytest.raises(Failed, match="Nothing shows that it is what that run made"):
                await it.apply(ZFS, **TANK)


def _made(config: dict[str, Any]) -> dict[str, Any]:
    return {"name": config["name"], "raidlevel": config["raidlevel"]}


@pytest.mark.parametrize(("type_name", "config"), [(ZFS, TANK), (CEPH, APPS), (OCI, IMAGE)])
async def test_what_is_there_already_is_not_taken_over(type_name: str, config: dict[str, Any]) -> None:
    async with run(ceph=True) as (it, _api, _running):
        await it.apply(type_name, **config)
        other = Bench(it.session)
        with pytest.raises(Failed, match="exists already, and is not in the state"):
            await other.apply(type_name, **config)


async def test_a_zfs_pool_is_gone_only_if_the_node_does_not_list_it() -> None:
    async with run() as (it, api, running):
        await it.apply(ZFS, **TANK)
        name = running.add_fault(
            kind="answer", status=500, reason="command failed", path="/nodes/pve1/disks/zfs/tank"
        )
        with pytest.raises(Failed, match="command failed"):
            await it.refresh(ZFS)
        running.remove_fault(name)
        await done(api, await api.delete("/nodes/pve1/disks/zfs/tank", {"cleanup-disks": True}))
        before = it.states[ZFS]
        assert await it.refresh(ZFS) is None
        it.states[ZFS] = before
        await it.remove(ZFS)


async def test_a_used_disk_is_refused_and_leaves_nothing() -> None:
    async with run() as (it, _api, _running):
        with pytest.raises(Failed, match="device '/dev/nvme0n1' is already in use"):
            await it.apply(ZFS, **{**TANK, "devices": ["/dev/nvme0n1"]})
        assert it.states == {}
        assert it.session.journal.entries == ()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"raidlevel": "draid"}, "needs `draid_config`"),
        ({"draid_config": {"data": 1, "spares": 0}}, "is for the levels draid"),
        ({"ashift": 8}, "must be 9 to 16"),
        ({"raidlevel": "raid5"}, "must be one of single, mirror"),
    ],
)
async def test_impossible_zfs_pools_are_refused_by_the_plan(change: dict[str, Any], text: str) -> None:
    async with run() as (it, _api, _running):
        with pytest.raises(Failed, match=text):
            it.plan(ZFS, **{**TANK, **change})


async def test_the_state_has_a_pool_whose_storage_could_not_be_added() -> None:
    async with run(ceph=True) as (it, api, _running):
        await api.post("/storage", {"storage": "apps", "type": "dir", "path": "/srv"})
        with pytest.raises(Failed, match="already defined"):
            await it.apply(CEPH, **APPS, add_storages=True)
        assert it.tainted == {CEPH}
        await it.apply(CEPH, **APPS)
        assert await it.is_settled(CEPH, **APPS)


async def test_an_erasure_coded_pool_is_two_pools() -> None:
    config = {**APPS, "erasure_coding": "k=2,m=1", "size": 2, "pg_num": 64, "remove_storages": True}

    async def pools(api: proxmox.Client) -> dict[str, tuple[int, int]]:
        listed = await api.get("/nodes/pve1/ceph/pool")
        return {row["pool_name"]: (row["size"], row["pg_num"]) for row in listed}

    async with run(ceph=True) as (it, api, _running):
        await it.apply(CEPH, **config)
        assert await pools(api) == {"apps-metadata": (2, 32), "apps-data": (3, 64)}
        assert await it.is_settled(CEPH, **config)
        await it.apply(CEPH, **{**config, "size": 3, "pg_num": 128})
        assert await pools(api) == {"apps-metadata": (3, 32), "apps-data": (3, 128)}
        assert await it.is_settled(CEPH, **{**config, "size": 3, "pg_num": 128})
        await it.remove(CEPH)
        assert await pools(api) == {}
        assert "apps" not in {row["storage"] for row in await api.get("/storage")}
        await it.apply(CEPH, **config)
        await done(api, await api.delete("/nodes/pve1/ceph/pool/apps-data", {"force": True}))
        with pytest.raises(Failed, match="apps-data is gone and apps-metadata is not"):
            await it.refresh(CEPH)


async def test_targets_of_a_ceph_pool_are_unset() -> None:
    async with run(ceph=True) as (it, api, _running):
        await it.apply(CEPH, **APPS, target_size="10G", target_size_ratio=0.5)
        path = "/nodes/pve1/ceph/pool/apps/status"
        assert (await api.get(path))["target_size"] == 10 * 2**30
        await it.apply(CEPH, **APPS)
        assert not {"target_size", "target_size_ratio"} & set(await api.get(path))


async def test_a_ceph_pool_is_not_gone_while_ceph_does_not_answer() -> None:
    async with run(ceph=True) as (it, api, _running):
        await it.apply(CEPH, **APPS)
        await done(api, await api.post("/nodes/pve1/ceph/stop", {"service": "mon"}))
        with pytest.raises(Failed, match="rados_connect failed"):
            await it.refresh(CEPH)


async def test_a_ceph_pool_that_is_in_use_stays_unless_forced() -> None:
    async with run(ceph=True) as (it, api, _running):
        config = {**APPS, "add_storages": True, "remove_storages": True}
        await it.apply(CEPH, **config)
        await done(api, await api.post("/nodes/pve1/qemu", {"vmid": 100, "scsi0": "apps:1"}))
        with pytest.raises(Failed, match="still in use by storage 'apps'"):
            await it.remove(CEPH)
        await it.apply(CEPH, **config, force_destroy=True)
        await it.remove(CEPH)
        assert await api.get("/nodes/pve1/ceph/pool") == []


async def test_an_image_that_somebody_changed_is_pulled_again_if_it_may_be_overwritten() -> None:
    def change(running: lab.Running, size: int) -> None:
        [(key, volume)] = running.world.store.items("volumes").items()
        with running.world.store.transaction():
            running.world.store.put("volumes", key, {**volume, "size": size})

    async with run() as (it, _api, running):
        await it.apply(OCI, **IMAGE)
        assert it.states[OCI]["id"] == "local:vztmpl/debian_13.tar"
        size = it.states[OCI]["size"]
        change(running, 7)
        it.session.client.expire_reads()
        await it.apply(OCI, **IMAGE)
        assert it.states[OCI]["size"] == size
        change(running, 8)
        it.session.client.expire_reads()
        await it.apply(OCI, **IMAGE, overwrite=False)
        assert it.states[OCI]["size"] == 8


async def test_an_image_of_somebody_else_is_replaced_only_on_request() -> None:
    async with run() as (it, _api, _running):
        await it.apply(OCI, **IMAGE)
        other = Bench(it.session)
        await other.apply(OCI, **IMAGE, overwrite_unmanaged=True)
        assert await other.is_settled(OCI, **IMAGE, overwrite_unmanaged=True)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"reference": "debian"}, "must be a reference with its tag"),
        ({"reference": "docker.io/Library/debian:13"}, "must be a reference with its tag"),
        ({"file_name": "debian"}, "must end with .tar"),
        ({"file_name": "my debian.tar"}, "must end with .tar"),
    ],
)
async def test_impossible_images_are_refused_by_the_plan(change: dict[str, Any], text: str) -> None:
    async with run() as (it, _api, _running):
        with pytest.raises(Failed, match=text):
            it.plan(OCI, **{**IMAGE, **change})


async def test_an_image_that_does_not_fit_leaves_no_entry() -> None:
    async with run() as (it, api, _running):
        with pytest.raises(Failed, match="not a file based storage"):
            await it.apply(OCI, **{**IMAGE, "datastore_id": "local-lvm"})
        assert it.session.journal.entries == ()
        assert await api.get(CONTENT) == []


@pytest.mark.parametrize(
    ("type_name", "given", "text"),
    [
        (ZFS, "tank", "NODE/POOL"),
        (CEPH, "/apps", "NODE/POOL"),
        (OCI, "pve1/local:iso/a.tar", "NODE/DATASTORE:vztmpl/NAME"),
    ],
)
async def test_the_id_of_an_import_has_its_form(type_name: str, given: str, text: str) -> None:
    async with run() as (it, _api, _running):
        with pytest.raises(Failed, match=text):
            await it.adopt(type_name, given)
