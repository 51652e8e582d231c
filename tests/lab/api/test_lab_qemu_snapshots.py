"""Snapshots of VMs: the tree, what is in them, going back, and what they keep others from doing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_qemu import Q, change, done, failed, make, used, with_lab

from pvelab import Work

GIB = 2**30
MIB = 2**20
S = f"{Q}/100/snapshot"


async def take(api: LabClient, name: str, **params: Any) -> None:
    await done(api, await api.post(S, snapname=name, **params))


async def tree(api: LabClient) -> dict[str, str | None]:
    """Return every snapshot (and the present state) with what it stands on."""
    return {row["name"]: row.get("parent") for row in await api.get(S)}


async def test_snapshots_stand_on_each_other_and_are_listed_with_the_present_state_last() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        assert await tree(api) == {"current": None}
        await take(api, "one", description="first")
        await take(api, "two")
        assert await tree(api) == {"one": None, "two": "one", "current": "two"}
        rows = await api.get(S)
        assert (rows[0]["description"], rows[0]["vmstate"]) == ("first", 0)
        assert rows[0]["snaptime"] > 0
        assert rows[-1]["description"] == "You are here!"
        assert rows[-1]["running"] == 0
        assert rows[-1]["digest"] == (await api.get(f"{Q}/100/config"))["digest"]
        assert (await api.get(f"{Q}/100/config"))["parent"] == "two"
        await done(api, await api.delete(f"{S}/one"))
        assert await tree(api) == {"two": None, "current": "two"}


async def test_a_snapshot_keeps_the_configuration_of_its_time() -> None:
    async with with_lab() as api:
        await make(api, cores=1, description="old", scsi0="local-lvm:1")
        await take(api, "one")
        await api.put(f"{Q}/100/config", cores=4)
        kept = await api.get(f"{S}/one/config")
        assert (kept["cores"], kept["scsi0"]) == (1, "local-lvm:vm-100-disk-0,size=1G")
        assert "description" not in kept
        assert (await api.get(f"{Q}/100/config", snapshot="one"))["cores"] == 1
        await api.put(f"{S}/one/config", description="text")
        assert (await api.get(f"{S}/one/config"))["description"] == "text"


async def test_going_back_restores_configuration_and_sizes_and_keeps_newer_disks_as_unused() -> None:
    async with with_lab() as api:
        old = await make(api, cores=1, scsi0="local-lvm:1", description="before")
        await take(api, "one")
        await api.put(f"{Q}/100/config", cores=4, scsi1="local-lvm:2", description="after")
        await done(api, await api.put(f"{Q}/100/resize", disk="scsi0", size="3G"))
        await done(api, await api.post(f"{Q}/100/status/start"))
        await done(api, await api.post(f"{S}/one/rollback"))
        config = await api.get(f"{Q}/100/config")
        assert (config["cores"], config["scsi0"]) == (1, "local-lvm:vm-100-disk-0,size=1G")
        assert config["unused0"] == "local-lvm:vm-100-disk-1"
        # What the user says of the VM is not part of a snapshot; a new generation is.
        assert config["description"] == "after"
        assert config["vmgenid"] != old["vmgenid"]
        assert (await api.get(f"{Q}/100/status/current"))["status"] == "stopped"
        assert await used(api) == 3 * GIB
        await done(api, await api.post(f"{S}/one/rollback", start=1))
        assert (await api.get(f"{Q}/100/status/current"))["status"] == "running"


async def test_a_snapshot_with_memory_of_a_running_vm_goes_on_running() -> None:
    async with with_lab() as api:
        await make(api, memory=1024, scsi0="local-lvm:1")
        await take(api, "off", vmstate=1)
        assert "vmstate" not in await api.get(f"{S}/off/config")
        await done(api, await api.post(f"{Q}/100/status/start"))
        await take(api, "on", vmstate=1)
        kept = await api.get(f"{S}/on/config")
        assert kept["vmstate"] == "local-lvm:vm-100-state-on"
        assert await used(api) == GIB + (2 * 1024 + 500) * MIB
        await done(api, await api.post(f"{Q}/100/status/stop"))
        await done(api, await api.post(f"{S}/on/rollback"))
        assert (await api.get(f"{Q}/100/status/current"))["status"] == "running"
        assert not {"vmstate", "runningmachine"} & set(await api.get(f"{Q}/100/config"))
        await done(api, await api.delete(f"{S}/on"))
        assert await used(api) == GIB


async def test_a_detached_disk_cannot_be_removed_while_a_snapshot_has_it() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1", scsi1="local-lvm:2")
        await take(api, "one")
        await api.put(f"{Q}/100/config", delete="scsi1")
        assert (await api.get(f"{Q}/100/config"))["unused0"] == "local-lvm:vm-100-disk-1"
        text = r"500 unable to delete 'local-lvm:vm-100-disk-1' - volume is still in use \(snapshot\?\)"
        with pytest.raises(Refused, match=text):
            await api.put(f"{Q}/100/config", delete="unused0")
        await done(api, await api.delete(f"{S}/one"))
        await api.put(f"{Q}/100/config", delete="unused0")
        assert await used(api) == GIB


async def test_what_cannot_be_is_refused_with_its_text() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        await take(api, "one")
        for name in ("current", "pending"):
            with pytest.raises(
                Refused, match=f"500 unable to use snapshot name '{name}' \\(reserved name\\)"
            ):
                await api.post(S, snapname=name)
        assert await failed(api, await api.post(S, snapname="one")) == "snapshot name 'one' already used"
        for upid in (await api.delete(f"{S}/two"), await api.post(f"{S}/two/rollback")):
            assert await failed(api, upid) == "snapshot 'two' does not exist"
        for call in (api.get, api.put):
            with pytest.raises(Refused, match="500 snapshot 'two' does not exist"):
                await call(f"{S}/two/config", **({"description": "x"} if call == api.put else {}))
        with pytest.raises(Refused, match="500 unable to create template, because VM contains snapshots"):
            await api.post(f"{Q}/100/template")
        change(api, 100, lock="backup")
        for upid in (await api.post(S, snapname="two"), await api.post(f"{S}/one/rollback")):
            assert await failed(api, upid) == "VM is locked (backup)"


@pytest.mark.parametrize(
    ("disk", "possible"),
    [
        ("local-lvm:1", True),
        ("local:1,format=qcow2", True),
        ("local:1", False),
        ("local:1,format=vmdk", False),
    ],
)
async def test_whether_there_are_snapshots_depends_on_storage_and_format(disk: str, possible: bool) -> None:
    async with with_lab() as api:
        await make(api, scsi0=disk)
        feature = await api.get(f"{Q}/100/feature", feature="snapshot")
        assert feature["hasFeature"] == int(possible)
        status = await api.done(await api.post(S, snapname="one"))
        assert status == ("OK" if possible else "snapshot feature is not available")
        assert "lock" not in await api.get(f"{Q}/100/config")


async def test_a_template_has_no_snapshots() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        await done(api, await api.post(f"{Q}/100/template"))
        status = await failed(api, await api.post(S, snapname="one"))
        assert status == "you can't take a snapshot if it's a template"


async def test_the_vm_is_locked_meanwhile_and_an_interruption_leaves_nothing() -> None:
    async with with_lab(latency_s={Work.SNAPSHOT: 5000.0}) as api:
        await make(api, memory=1024, scsi0="local-lvm:1")
        await done(api, await api.post(f"{Q}/100/status/start"))
        upid = await api.post(S, snapname="one", vmstate=1)
        assert (await api.get(f"{Q}/100/config"))["lock"] == "snapshot"
        assert (await api.get(S))[0]["snapstate"] == "prepare"
        await api.delete(f"/nodes/pve1/tasks/{upid}")
        assert await api.done(upid) == "received interrupt"
        assert await tree(api) == {"current": None}
        assert "lock" not in await api.get(f"{Q}/100/config")
        assert await used(api) == GIB


async def test_removing_a_vm_removes_the_memory_of_its_snapshots() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        await done(api, await api.post(f"{Q}/100/status/start"))
        await take(api, "one", vmstate=1)
        await done(api, await api.post(f"{Q}/100/status/stop"))
        await done(api, await api.delete(f"{Q}/100"))
        assert await used(api) == 0


async def test_zfs_goes_back_to_its_latest_snapshot_only() -> None:
    async with with_lab() as api:
        with api.world.store.transaction():
            config = {"storage": "tank", "type": "zfspool", "pool": "tank", "content": "images"}
            api.world.store.put("storages", "tank", config)
        await make(api, scsi0="tank:1")
        await take(api, "one")
        await take(api, "two")
        status = await failed(api, await api.post(f"{S}/one/rollback"))
        assert status == "can't rollback, 'one' is not most recent snapshot on 'vm-100-disk-0'"
        await done(api, await api.post(f"{S}/two/rollback"))


async def test_a_cloud_init_drive_goes_and_comes_with_the_snapshots() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        await take(api, "without")
        await api.put(f"{Q}/100/config", ide2="local-lvm:cloudinit")
        await take(api, "with")
        await done(api, await api.post(f"{S}/without/rollback"))
        assert await used(api) == GIB
        await done(api, await api.post(f"{S}/with/rollback", start=1))
        assert (await api.get(f"{Q}/100/config"))["ide2"] == "local-lvm:vm-100-cloudinit,media=cdrom,size=4M"
        assert await used(api) == GIB + 4 * MIB


@pytest.mark.parametrize("verb", ["delete", "rollback"])
async def test_a_snapshot_on_a_storage_that_was_taken_away_is_refused_before_anything_is_locked(
    verb: str,
) -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        await take(api, "one")
        before = await api.get("/storage/local-lvm")
        await api.delete("/storage/local-lvm")
        upid = await (api.delete(f"{S}/one") if verb == "delete" else api.post(f"{S}/one/rollback"))
        assert await failed(api, upid) == "storage 'local-lvm' does not exist"
        assert "lock" not in await api.get(f"{Q}/100/config")
        await api.post("/storage", **{key: before[key] for key in before if key != "digest"})
        await done(api, await api.delete(f"{S}/one"))


async def test_a_snapshot_of_a_volume_that_is_gone_leaves_the_vm_locked_as_on_proxmox() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        await take(api, "one")
        await done(api, await api.delete("/nodes/pve1/storage/local-lvm/content/vm-100-disk-0"))
        upid = await api.delete(f"{S}/one")
        assert await failed(api, upid) == "volume 'local-lvm:vm-100-disk-0' does not exist"
        assert (await api.get(f"{Q}/100/config"))["lock"] == "snapshot-delete"
