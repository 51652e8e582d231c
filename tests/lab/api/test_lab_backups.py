"""Backups in the lab: archives are real volumes, restores bring back what was there."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support import lab_lxc
from tests.support.lab import LabClient, Refused
from tests.support.lab_qemu import Q, done, failed, make, used, with_lab

from pvelab.faults.latency import Work

L = "/nodes/pve1/lxc"
DUMP = "/nodes/pve1/vzdump"
CONTENT = "/nodes/pve1/storage/local/content"


async def back_up(api: LabClient, **params: Any) -> str:
    """Back up VM 100 (or what the parameters say) and return the volume id of the newest archive."""
    given = {"vmid": 100, "compress": "zstd", "storage": "local", **params}
    await done(api, await api.post(DUMP, **given))
    found = await api.get(f"/nodes/pve1/storage/{given['storage']}/content", content="backup")
    return str(max(found, key=lambda entry: (entry["ctime"], entry["volid"]))["volid"])


@pytest.mark.parametrize(
    ("compress", "ending"), [("zstd", "vma.zst"), ("gzip", "vma.gz"), ("lzo", "vma.lzo"), ("0", "vma")]
)
async def test_backup_is_a_volume_with_size_notes_and_protection(compress: str, ending: str) -> None:
    async with with_lab() as api:
        await make(api, name="web", scsi0="local-lvm:4")
        volid = await back_up(
            api, compress=compress, notes__template="{{guestname}} on {{node}}\\nsecond", protected=1
        )
        assert volid.startswith("local:backup/vzdump-qemu-100-")
        assert volid.endswith(f".{ending}")
        [entry] = await api.get(CONTENT, content="backup", vmid=100)
        assert entry["format"] == ending
        assert entry["subtype"] == "qemu"
        assert entry["vmid"] == 100
        assert entry["protected"] == 1
        assert entry["notes"] == "web on pve1"
        assert entry["size"] > 2**20
        assert (await api.get(f"{CONTENT}/{volid}"))["notes"] == "web on pve1\nsecond"
        assert "protected" in await failed(api, await api.delete(f"{CONTENT}/{volid}"))


async def test_archive_holds_the_configuration_and_its_disk_map() -> None:
    async with with_lab() as api:
        await make(
            api, name="web", scsi0="local-lvm:1", scsi1="local-lvm:1,backup=0", description="two\nlines"
        )
        volid = await back_up(api)
        text = await api.get(f"{DUMP}/extractconfig", volume=volid)
        assert "name: web\n" in text
        assert text.startswith("#two\n#lines\n")
        assert "#qmdump#map:scsi0:drive-scsi0:local-lvm::\n" in text
        assert "map:scsi1" not in text
        assert "lock" not in text


async def test_running_vm_keeps_running_and_stop_mode_starts_it_again() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        await done(api, await api.post(f"{Q}/100/status/start"))
        for mode in ("snapshot", "suspend", "stop"):
            upid = await api.post(DUMP, vmid=100, mode=mode)
            await done(api, upid)
            assert f"INFO: backup mode: {mode}" in await api.log(upid)
            status = await api.get(f"{Q}/100/status/current")
            assert status["status"] == "running"
            assert "lock" not in status
            await api.pass_time(1)


async def test_guest_carries_the_backup_lock_meanwhile() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        api.world.latency.overrides_s = {Work.BACKUP: 600.0}
        upid = await api.post(DUMP, vmid=100)
        assert (await api.get(f"{Q}/100/status/current"))["lock"] == "backup"
        with pytest.raises(Refused, match=r"VM is locked \(backup\)"):
            await api.put(f"{Q}/100/config", name="other")
        await api.delete(f"/nodes/pve1/tasks/{upid}")
        assert "interrupt" in await api.done(upid)
        assert "lock" not in await api.get(f"{Q}/100/status/current")


async def test_one_failing_guest_ends_the_task_with_job_errors() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        upid = await api.post(DUMP, vmid="100,555")
        assert await failed(api, upid) == "job errors"
        log = await api.log(upid)
        assert any("Backup of VM 555 failed - unable to find VM '555'" in line for line in log)
        assert len(await api.get(CONTENT, content="backup")) == 1


async def test_all_skips_the_guests_of_other_nodes() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        await done(api, await api.post("/nodes/pve2/qemu", vmid=101))
        upid = await api.post(DUMP, all=1)
        await done(api, upid)
        assert "INFO: skip external VMs: 101" in await api.log(upid)
        assert await api.post(DUMP, vmid=101) == "OK"


@pytest.mark.parametrize(
    ("params", "field", "text"),
    [
        ({}, "vmid", "property is missing"),
        ({"vmid": 100, "all": 1}, "all", "option conflicts with option 'vmid'"),
        ({"vmid": 100, "stdout": 1}, "stdout", "option is only allowed on the command line interface."),
        (
            {"vmid": 100, "storage": "local", "notes-template": "{{x}}"},
            "notes-template",
            "found unknown: variable 'x' at char 2",
        ),
        (
            {"vmid": 100, "notes-template": "x"},
            "storage",
            "missing property required by 'notes-template'",
        ),
        ({"vmid": 100, "script": "/x"}, "script", "Only root may set this option."),
        ({"vmid": 100, "job-id": "x"}, "job-id", "Only root may set this option."),
        ({"vmid": 100, "mode": "fast"}, "mode", "value 'fast' does not have a value in the enumeration"),
    ],
)
async def test_wrong_backup_parameters_are_refused(params: dict[str, Any], field: str, text: str) -> None:
    async with with_lab() as api:
        with pytest.raises(Refused) as refused:
            await api.post(DUMP, **params)
        assert refused.value.reply.status == 400
        assert text in refused.value.reply.json["errors"][field]


async def test_storage_without_backups_fails_the_task() -> None:
    async with with_lab() as api:
        await make(api)
        status = await failed(api, await api.post(DUMP, vmid=100, storage="local-lvm"))
        assert "can't use storage 'local-lvm' for backups - wrong content type" in status


async def test_backup_needs_the_privileges_on_guest_and_storage() -> None:
    async with with_lab() as api:
        await make(api)
        await api.post("/access/users", userid="ann@pve", password="secret-word")
        ann = await api.with_password("ann@pve", "secret-word")
        with pytest.raises(Refused, match=r"/storage/local, Datastore.AllocateSpace"):
            await ann.post(DUMP, vmid=100)
        await api.put("/access/acl", path="/storage/local", users="ann@pve", roles="PVEDatastoreUser")
        with pytest.raises(Refused, match=r"/vms/100, VM.Backup"):
            await ann.post(DUMP, vmid=100)
        await api.put("/access/acl", path="/vms/100", users="ann@pve", roles="PVEVMAdmin")
        await done(api, await ann.post(DUMP, vmid=100))
        with pytest.raises(Refused, match=r"/storage/local, Datastore.Allocate"):
            await ann.post(DUMP, vmid=100, prune__backups="keep-last=1")


async def test_old_backups_are_pruned_after_the_new_one() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        first = await back_up(api, protected=1)
        for _ in range(3):
            await api.pass_time(1)
            newest = await back_up(api, prune__backups="keep-last=1")
        left = [entry["volid"] for entry in await api.get(CONTENT, content="backup")]
        assert sorted(left) == sorted([first, newest])
        await api.pass_time(1)
        status = await failed(api, await api.post(DUMP, vmid=100, prune__backups="keep-last=1", remove=0))
        assert status == "job errors"


async def test_vm_is_restored_under_a_new_number_with_addresses_of_its_own() -> None:
    async with with_lab() as api:
        before = await make(
            api, name="web", scsi0="local-lvm:2", net0="virtio,bridge=vmbr0", ide2="local-lvm:cloudinit"
        )
        volid = await back_up(api)
        await done(api, await api.post(Q, vmid=200, archive=volid, unique=1, storage="local"))
        after = await api.get(f"{Q}/200/config")
        assert after["name"] == "web"
        assert after["scsi0"].startswith("local:200/vm-200-disk-")
        assert "size=2G" in after["scsi0"]
        assert "cloudinit" in after["ide2"]
        assert after["net0"] != before["net0"]
        assert after["smbios1"] != before["smbios1"]
        assert after["vmgenid"] != before["vmgenid"]
        assert "lock" not in after


async def test_restore_over_a_vm_needs_force_and_brings_back_what_was_there() -> None:
    async with with_lab() as api:
        await make(api, name="old", scsi0="local-lvm:1")
        volid = await back_up(api)
        await api.put(f"{Q}/100/config", name="new", scsi1="local-lvm:1")
        with pytest.raises(Refused, match="unable to restore VM 100 - VM 100 already exists on node 'pve1'"):
            await api.post(Q, vmid=100, archive=volid)
        await done(api, await api.post(Q, vmid=100, archive=volid, force=1, memory=1024, start=1))
        config = await api.get(f"{Q}/100/config")
        assert config["name"] == "old"
        assert config["memory"] == "1024"
        assert "scsi1" not in config
        assert config["unused0"].startswith("local-lvm:vm-100-disk-")
        assert (await api.get(f"{Q}/100/status/current"))["status"] == "running"
        assert await used(api, "local-lvm") == 2 * 2**30
        upid = await api.post(Q, vmid=100, archive=volid, force=1)
        assert await failed(api, upid) == "unable to restore VM 100 - vm is running"
        assert "lock" not in await api.get(f"{Q}/100/config")


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"archive": "-"}, "pipe requires cli environment"),
        ({"archive": "local:iso/x.iso"}, "content type needs to be 'backup'"),
        ({"archive": "/x"}, "Only root can pass arbitrary filesystem paths."),
        (
            {"archive": "local:backup/vzdump-qemu-1-x.vma", "scsi0": "local-lvm:1"},
            "Parameter verification failed.",
        ),
    ],
)
async def test_unusable_archives_are_refused_at_once(params: dict[str, Any], text: str) -> None:
    async with with_lab() as api:
        with pytest.raises(Refused, match=text):
            await api.post(Q, vmid=200, **params)


async def test_container_goes_through_backup_and_restore() -> None:
    async with with_lab() as api:
        root = await lab_lxc.as_root(api)
        net = "name=eth0,bridge=vmbr0,ip=dhcp"
        before = await lab_lxc.make(
            api, hostname="box", net0=net, mp0="local-lvm:1,mp=/data,backup=1", unprivileged=1
        )
        volid = await back_up(api)
        assert volid.endswith(".tar.zst")
        text = await api.get(f"{DUMP}/extractconfig", volume=volid)
        assert "hostname: box\n" in text
        assert "rootfs: " in text
        with pytest.raises(Refused, match="CT 100 already exists on node 'pve1'"):
            await root.post(L, vmid=100, ostemplate=volid, restore=1)
        await done(
            api, await root.post(L, vmid=100, ostemplate=volid, restore=1, force=1, storage="local-lvm")
        )
        again = await api.get(f"{L}/100/config")
        assert again["net0"] == before["net0"]
        assert "mp=/data" in again["mp0"]
        assert again["unprivileged"] == 1
        given = {"ostemplate": volid, "restore": 1, "unique": 1, "rootfs": "local-lvm:3", "hostname": "copy"}
        await done(api, await root.post(L, vmid=300, **given))
        copy = await api.get(f"{L}/300/config")
        assert copy["hostname"] == "copy"
        assert copy["rootfs"].endswith("size=3G")
        assert copy["net0"] != before["net0"]
        assert "mp0" not in copy


async def test_archive_of_the_other_kind_is_not_restored() -> None:
    async with with_lab() as api:
        await lab_lxc.make(api)
        volid = await back_up(api)
        assert "no valid archive" in await failed(api, await api.post(Q, vmid=200, archive=volid))


async def test_backup_server_holds_snapshots_that_live_restore_takes() -> None:
    async with with_lab() as api:
        await api.post(
            "/storage", storage="safe", type="pbs", server="10.0.0.5", datastore="d", username="u@pbs"
        )
        await make(api, scsi0="local-lvm:1")
        volid = await back_up(api, storage="safe")
        assert volid.startswith("safe:backup/vm/100/")
        assert volid.endswith("Z")
        [entry] = await api.get("/nodes/pve1/storage/safe/content")
        assert entry["format"] == "pbs-vm"
        assert entry["subtype"] == "qemu"
        await done(api, await api.post(Q, vmid=101, archive=volid, live__restore=1))
        assert (await api.get(f"{Q}/101/status/current"))["status"] == "running"
        local = await back_up(api)
        assert "live-restore is only compatible" in await failed(
            api, await api.post(Q, vmid=102, archive=local, live__restore=1)
        )
        prune = "/nodes/pve1/storage/safe/prunebackups"
        [marked] = await api.get(prune, prune__backups="keep-last=1")
        assert marked["mark"] == "keep"
        assert marked["type"] == "qemu"


async def test_guests_without_a_backup_job_and_volumes_of_a_job_are_listed() -> None:
    async with with_lab() as api:
        await make(api, name="a", scsi0="local-lvm:1,backup=0", scsi1="local-lvm:1")
        await make(api, 101, name="b")
        await api.post("/cluster/backup", id="night", storage="local", vmid="100,999", schedule="02:00")
        assert await api.get("/cluster/backup-info/not-backed-up") == [
            {"vmid": 101, "type": "qemu", "name": "b"}
        ]
        children = (await api.get("/cluster/backup/night/included_volumes"))["children"]
        assert [child["id"] for child in children] == [100, 999]
        assert children[1]["type"] == "unknown"
        assert [volume["included"] for volume in children[0]["children"]] == [0, 1]
        root = await lab_lxc.as_root(api)
        assert await root.get("/cluster/backup-info") == [{"subdir": "not-backed-up"}]
        with pytest.raises(Refused):
            await api.get("/cluster/backup/none/included_volumes")


async def test_defaults_tell_a_plain_user_less() -> None:
    async with with_lab() as api:
        whole = await api.get(f"{DUMP}/defaults")
        assert whole["storage"] == "local"
        assert whole["dumpdir"] == "/var/lib/vz/dump"
        with pytest.raises(Refused, match="wrong content type"):
            await api.get(f"{DUMP}/defaults", storage="local-lvm")


async def test_backup_job_runs_at_its_time_on_every_node_of_its_guests() -> None:
    async with with_lab() as api:
        await make(api, name="a")
        await done(api, await api.post("/nodes/pve2/qemu", vmid=101))
        await api.post(
            "/cluster/backup",
            id="often",
            storage="local",
            all=1,
            schedule="*/30",
            prune__backups="keep-last=1",
        )
        [job] = await api.get("/cluster/backup")
        wait = job["next-run"] - int(api.world.clock.now())
        assert 0 < wait <= 1800
        await api.pass_time(wait + 2)
        runs = [task for task in await api.get("/cluster/tasks") if task["type"] == "vzdump"]
        assert sorted((task["node"], task["status"]) for task in runs) == [("pve1", "OK"), ("pve2", "OK")]
        assert all(task["user"] == "root@pam" for task in runs)
        await api.pass_time(1800)
        assert len(await api.get(CONTENT, content="backup")) == 1
        await api.put("/cluster/backup/often", enabled=0)
        await api.pass_time(1800)
        again = [task for task in await api.get("/cluster/tasks") if task["type"] == "vzdump"]
        assert len(again) == 4


async def test_guest_that_was_stopped_for_a_failing_backup_runs_again() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        await done(api, await api.post(f"{Q}/100/status/start"))
        await api.put("/storage/local", content="iso,vztmpl")
        await api.post("/storage", storage="tiny", type="dir", path="/srv/tiny", content="backup")
        with api.world.store.transaction():
            api.world.store.put("capacities", "pve1|tiny", {"total": 1})
        upid = await api.post(DUMP, vmid=100, mode="stop", storage="tiny")
        assert await failed(api, upid) == "job errors"
        assert any("No space left on device" in line for line in await api.log(upid))
        status = await api.get(f"{Q}/100/status/current")
        assert (status["status"], "lock" in status) == ("running", False)
