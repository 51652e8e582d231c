"""Volumes of containers: made larger, moved, cloned, turned into templates, kept in snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_lxc import L, as_root, change, done, failed, make, used, with_lab

from pvelab import Work

GIB = 2**30


async def config_of(api: LabClient, vmid: int = 100, node: str = "pve1") -> dict[str, Any]:
    found: dict[str, Any] = await api.get(f"/nodes/{node}/lxc/{vmid}/config")
    return found


async def test_volumes_grow_and_never_shrink() -> None:
    async with with_lab() as api:
        await make(api, mp0="local:1,mp=/data")
        await done(api, await api.put(f"{L}/100/resize", disk="rootfs", size="6G"))
        await done(api, await api.put(f"{L}/100/resize", disk="mp0", size="+512M"))
        config = await config_of(api)
        assert config["rootfs"] == "local-lvm:vm-100-disk-0,size=6G"
        assert config["mp0"] == "local:100/vm-100-disk-0.raw,mp=/data,size=1536M"
        assert await used(api) == 6 * GIB
        for size, text in (("5G", "unable to shrink disk size"), ("6G", "disk is already at specified size")):
            with pytest.raises(Refused, match=f"500 {text}"):
                await api.put(f"{L}/100/resize", disk="rootfs", size=size)
        with pytest.raises(Refused, match="500 detected modified configuration"):
            await api.put(f"{L}/100/resize", disk="rootfs", size="7G", digest="0" * 40)
        with pytest.raises(Refused, match="500 format error"):
            await api.put(f"{L}/100/resize", disk="mp7", size="7G")


async def test_a_volume_that_does_not_fit_fails_the_task_and_stays_as_it_was() -> None:
    async with with_lab() as api:
        await api.post("/storage", storage="thick", type="lvm", vgname="fast", content="rootdir")
        await make(api, rootfs="thick:1")
        status = await failed(api, await api.put(f"{L}/100/resize", disk="rootfs", size="3T"))
        assert status == (
            "error resizing volume '/dev/fast/vm-100-disk-0':   Insufficient free space:"
            " 786176 extents needed, but only 25344 available"
        )
        assert (await config_of(api))["rootfs"] == "thick:vm-100-disk-0,size=1G"


async def test_a_volume_moves_to_another_storage() -> None:
    async with with_lab() as api:
        await make(api, mp0="local-lvm:2,mp=/data,backup=1")
        upid = await api.post(f"{L}/100/move_volume", volume="mp0", storage="local", delete=1)
        await done(api, upid)
        config = await config_of(api)
        assert config["mp0"] == "local:100/vm-100-disk-0.raw,mp=/data,backup=1,size=2G"
        assert "lock" not in config
        assert await used(api) == GIB
        await done(api, await api.post(f"{L}/100/move_volume", volume="rootfs", storage="local"))
        config = await config_of(api)
        assert config["rootfs"] == "local:100/vm-100-disk-1.raw,size=1G"
        assert config["unused0"] == "local-lvm:vm-100-disk-0"


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({}, "400 .*both 'storage' and 'target-vmid' missing"),
        ({"storage": "local", "target__vmid": 101}, "500 either set storage or target-vmid, but not both"),
        ({"volume": "rootfs", "target__vmid": 101}, "500 Cannot move to/from 'rootfs'"),
        ({"target__vmid": 999}, "500 could not find CT 999"),
        (
            {"target__vmid": 101, "target__volume": "mp1"},
            "500 Target volume key 'mp1' is already in use for container",
        ),
        ({"volume": "mp9", "target__vmid": 101}, "500 volume 'mp9' for container '100' does not exist"),
        (
            {"target__vmid": 101, "target__digest": "0" * 40},
            "500 Container 101: detected modified configuration",
        ),
        (
            {"volume": "unused0", "storage": "local"},
            "500 cannot move volume 'unused0', only configured volumes",
        ),
    ],
)
async def test_a_move_that_cannot_be_is_refused(params: dict[str, Any], text: str) -> None:
    async with with_lab() as api:
        await make(api, mp0="local-lvm:1,mp=/data")
        await make(api, 101, mp1="local-lvm:1,mp=/data")
        with pytest.raises(Refused, match=text):
            await api.post(f"{L}/100/move_volume", **{"volume": "mp0", **params})
        assert "lock" not in await config_of(api)


async def test_a_volume_moves_to_another_container_under_its_name() -> None:
    async with with_lab() as api:
        await make(api, mp0="local-lvm:1,mp=/data")
        await make(api, 101)
        upid = await api.post(f"{L}/100/move_volume", volume="mp0", target__vmid=101, target__volume="mp3")
        await done(api, upid)
        assert "mp0" not in await config_of(api)
        assert (await config_of(api, 101))["mp3"] == "local-lvm:vm-101-disk-1,mp=/data,size=1G"


async def test_a_clone_has_its_own_volumes_and_addresses() -> None:
    async with with_lab() as api:
        old = await make(api, mp0="local:1,mp=/data", net0="name=eth0,bridge=vmbr0", hostname="web", onboot=1)
        await api.put(f"{L}/100/config", mp1="local-lvm:1,mp=/old")
        await api.put(f"{L}/100/config", delete="mp1")
        await done(api, await api.post(f"{L}/100/clone", newid=101, description="copy"))
        new = await config_of(api, 101)
        assert new["rootfs"] == "local-lvm:vm-101-disk-0,size=1G"
        assert new["mp0"] == "local:101/vm-101-disk-0.raw,mp=/data,size=1G"
        assert (new["hostname"], new["onboot"], new["description"]) == ("web", 1, "copy\n")
        assert new["net0"] != old["net0"]
        assert not {"lock", "unused0", "template"} & set(new)
        assert "lock" not in await config_of(api)


async def test_a_template_is_cloned_by_link() -> None:
    async with with_lab() as api:
        await make(api)
        with pytest.raises(
            Refused, match="500 Linked clone feature for 'local-lvm:vm-100-disk-0' is not available"
        ):
            await api.post(f"{L}/100/clone", newid=101, full=0)
        assert "lock" not in await config_of(api)
        assert await api.post(f"{L}/100/template") is None
        config = await config_of(api)
        assert (config["rootfs"], config["template"]) == ("local-lvm:base-100-disk-0,size=1G", 1)
        with pytest.raises(Refused, match="500 you can't convert a template to a template"):
            await api.post(f"{L}/100/template")
        with pytest.raises(Refused, match="500 parameter 'storage' not allowed for linked clones"):
            await api.post(f"{L}/100/clone", newid=101, storage="local")
        await done(api, await api.post(f"{L}/100/clone", newid=101))
        assert (await config_of(api, 101))["rootfs"] == "local-lvm:vm-101-disk-0,size=1G"
        assert await used(api) == GIB
        await done(api, await api.delete(f"{L}/100"))
        assert await used(api) == GIB
        await done(api, await api.delete(f"{L}/101"))
        assert await used(api) == 0


async def test_a_template_whose_clones_refer_to_it_by_name_is_kept() -> None:
    async with with_lab() as api:
        await api.post("/storage", storage="tank", type="zfspool", pool="tank")
        config = await make(api, rootfs="tank:1")
        assert config["rootfs"] == "tank:subvol-100-disk-0,size=1G"
        await api.post(f"{L}/100/template")
        await done(api, await api.post(f"{L}/100/clone", newid=101))
        linked = "tank:basevol-100-disk-0/subvol-101-disk-0"
        assert (await config_of(api, 101))["rootfs"] == f"{linked},size=1G"
        text = "base volume 'basevol-100-disk-0' is still in use by linked clones"
        assert await failed(api, await api.delete(f"{L}/100")) == text
        upid = await api.delete("/nodes/pve1/storage/tank/content/basevol-100-disk-0")
        assert await failed(api, upid) == text
        assert (await config_of(api))["template"] == 1
        await done(api, await api.delete(f"{L}/101"))
        await done(api, await api.delete(f"{L}/100"))
        assert await used(api, "tank") == 0


async def test_what_cannot_be_cloned_is_refused_and_leaves_no_lock() -> None:
    async with with_lab() as api:
        root = await as_root(api)
        await make(root, start=1, mp0="/srv,mp=/srv")
        await make(api, 101, start=1)
        for vmid, params, text in (
            (100, {"newid": 102}, r"unable to clone mountpoint 'mp0' \(type bind\)|Full clone of a running"),
            (101, {"newid": 102}, "Full clone of a running container is only possible from a snapshot"),
            (101, {"newid": 100}, "CT 100 already exists on node 'pve1'"),
            (101, {"newid": 102, "target": "pve9"}, "no such cluster node 'pve9'"),
            (101, {"newid": 102, "snapname": "gone"}, "snapshot 'gone' does not exist"),
            (
                101,
                {"newid": 102, "target": "pve2", "storage": "local"},
                "can't clone to non-shared storage 'local'",
            ),
        ):
            with pytest.raises(Refused, match=f"500 (?:{text})"):
                await api.post(f"{L}/{vmid}/clone", **params)
            assert "lock" not in await config_of(api, vmid)
        await done(api, await api.post(f"{L}/101/status/stop"))
        with pytest.raises(Refused, match=r"500 can't clone CT to node 'pve2' \(CT uses local storage\)"):
            await api.post(f"{L}/101/clone", newid=102, target="pve2")


async def test_a_source_that_is_being_cloned_is_locked() -> None:
    async with with_lab(latency_s={Work.CLONE: 5.0}) as api:
        await make(api)
        upid = await api.post(f"{L}/100/clone", newid=101)
        assert (await config_of(api))["lock"] == "disk"
        assert (await config_of(api, 101))["lock"] == "create"
        with pytest.raises(Refused, match=r"500 CT is locked \(disk\)"):
            await api.post(f"{L}/100/clone", newid=102)
        await api.pass_time(6)
        await done(api, upid)
        assert "lock" not in await config_of(api)


async def test_a_clone_that_fails_leaves_nothing_and_unlocks_its_source() -> None:
    async with with_lab() as api:
        await api.post("/storage", storage="thick", type="lvm", vgname="fast", content="rootdir")
        await make(api, rootfs="thick:60")
        status = await failed(api, await api.post(f"{L}/100/clone", newid=101))
        assert status == "clone failed: not enough free space (41943040 < 62914560)"
        assert "lock" not in await config_of(api)
        assert api.world.guests.get(101) is None
        assert await used(api, "thick") == 60 * GIB


async def test_snapshots_keep_the_configuration_and_bring_it_back() -> None:
    async with with_lab() as api:
        await make(api, start=1, description="now")
        await done(api, await api.post(f"{L}/100/snapshot", snapname="before", description="first"))
        await api.put(f"{L}/100/config", memory=2048, mp0="local-lvm:1,mp=/data")
        await done(api, await api.put(f"{L}/100/resize", disk="rootfs", size="3G"))
        rows = {row["name"]: row for row in await api.get(f"{L}/100/snapshot")}
        assert (rows["before"]["description"], rows["current"]["parent"]) == ("first", "before")
        assert (await api.get(f"{L}/100/snapshot/before/config"))["memory"] == 512
        await done(api, await api.post(f"{L}/100/snapshot/before/rollback"))
        config = await config_of(api)
        assert (config["memory"], config["rootfs"]) == (512, "local-lvm:vm-100-disk-0,size=1G")
        assert (config["unused0"], config["description"]) == ("local-lvm:vm-100-disk-1", "now\n")
        assert (await api.get(f"{L}/100/status/current"))["status"] == "stopped"
        assert await used(api) == 2 * GIB
        await api.put(f"{L}/100/snapshot/before/config", description="renamed")
        assert (await api.get(f"{L}/100/snapshot"))[0]["description"] == "renamed"
        await done(api, await api.delete(f"{L}/100/snapshot/before"))
        assert [row["name"] for row in await api.get(f"{L}/100/snapshot")] == ["current"]


async def test_snapshots_that_cannot_be_are_refused() -> None:
    async with with_lab() as api:
        await make(api, rootfs="local:1")
        for name in ("current", "vzdump"):
            with pytest.raises(Refused, match=rf"500 unable to use snapshot name '{name}' \(reserved name\)"):
                await api.post(f"{L}/100/snapshot", snapname=name)
        text = await failed(api, await api.post(f"{L}/100/snapshot", snapname="one"))
        assert text == "snapshot feature is not available"
        assert (await api.get(f"{L}/100/feature", feature="snapshot"))["hasFeature"] == 0
        await make(api, 101)
        assert (await api.get(f"{L}/101/feature", feature="snapshot"))["hasFeature"] == 1
        await done(api, await api.post(f"{L}/101/snapshot", snapname="one"))
        text = await failed(api, await api.post(f"{L}/101/snapshot", snapname="one"))
        assert text == "snapshot name 'one' already used"
        text = await failed(api, await api.post(f"{L}/101/snapshot/two/rollback"))
        assert text == "snapshot 'two' does not exist"
        with pytest.raises(Refused, match="500 unable to create template, because CT contains snapshots"):
            await api.post(f"{L}/101/template")


async def test_a_full_clone_of_a_running_container_is_made_from_a_snapshot() -> None:
    async with with_lab() as api:
        await make(api, start=1)
        await done(api, await api.post(f"{L}/100/snapshot", snapname="s1"))
        await done(api, await api.put(f"{L}/100/resize", disk="rootfs", size="2G"))
        await done(api, await api.post(f"{L}/100/clone", newid=101, snapname="s1", full=1))
        assert (await config_of(api, 101))["rootfs"] == "local-lvm:vm-101-disk-0,size=1G"


async def test_a_running_container_is_migrated_with_its_volumes_by_restart() -> None:
    async with with_lab() as api:
        await make(api, start=1, mp0="local:1,mp=/data")
        with pytest.raises(
            Refused, match="500 can't migrate running container without --online or --restart"
        ):
            await api.post(f"{L}/100/migrate", target="pve2")
        upid = await api.post(f"{L}/100/migrate", target="pve2", online=1)
        assert await failed(api, upid) == "migration aborted"
        assert any("lxc live migration is currently not implemented" in line for line in await api.log(upid))
        await done(api, await api.post(f"{L}/100/migrate", target="pve2", restart=1))
        with pytest.raises(Refused, match=r"500 Configuration file 'nodes/pve1/lxc/100.conf' does not exist"):
            await config_of(api)
        config = await config_of(api, node="pve2")
        assert config["mp0"] == "local:100/vm-100-disk-0.raw,mp=/data,size=1G"
        assert (await api.get("/nodes/pve2/lxc/100/status/current"))["status"] == "running"
        assert (await used(api), await used(api, node="pve2")) == (0, GIB)


async def test_a_migration_can_put_volumes_on_another_storage_under_free_names() -> None:
    async with with_lab() as api:
        await api.post("/nodes/pve2/storage/local/content", filename="vm-100-disk-0.raw", vmid=100, size="1G")
        await make(api)
        await done(api, await api.post(f"{L}/100/migrate", target="pve2", target__storage="local"))
        assert (await config_of(api, node="pve2"))["rootfs"] == "local:100/vm-100-disk-1.raw,size=1G"


async def test_a_migration_that_fails_leaves_the_container_where_it_was() -> None:
    async with with_lab() as api:
        root = await as_root(api)
        await make(root, mp0="/srv,mp=/srv")
        upid = await api.post(f"{L}/100/migrate", target="pve2")
        assert await failed(api, upid) == "migration aborted"
        assert any("cannot migrate local bind mount point 'mp0'" in line for line in await api.log(upid))
        await make(api, 101)
        await done(api, await api.post(f"{L}/101/snapshot", snapname="s1"))
        await done(api, await api.post(f"{L}/101/status/start"))
        upid = await api.post(f"{L}/101/migrate", target="pve2", restart=1)
        assert await failed(api, upid) == "migration aborted"
        assert any("non-migratable snapshot exists" in line for line in await api.log(upid))
        status = await api.get(f"{L}/101/status/current")
        assert (status["status"], "lock" in status) == ("running", False)
        for target, text in (
            ("pve1", "400 .*target is local node"),
            ("pve9", "500 no such cluster node 'pve9'"),
        ):
            with pytest.raises(Refused, match=text):
                await api.post(f"{L}/101/migrate", target=target)
        change(api, 101, lock="backup")
        assert (await api.get(f"{L}/100/migrate"))["allowed-nodes"] == ["pve2"]
        with pytest.raises(Refused, match=r"500 CT is locked \(backup\)"):
            await api.get(f"{L}/101/migrate")
