"""Templates, moving disks to storages and other VMs, importing images, removing disks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_qemu import Q, change, done, failed, make, used, with_lab

from pvelab import Work

GIB = 2**30
M = f"{Q}/100/move_disk"


async def start(api: LabClient, vmid: int = 100) -> None:
    await done(api, await api.post(f"{Q}/{vmid}/status/start"))


async def test_the_disks_of_a_template_are_bases_and_it_does_not_start() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1,ssd=1", scsi1="local:1", ide2="local-lvm:cloudinit")
        await done(api, await api.post(f"{Q}/100/template"))
        config = await api.get(f"{Q}/100/config")
        assert config["template"] == 1
        assert config["scsi0"] == "local-lvm:base-100-disk-0,size=1G,ssd=1"
        assert config["scsi1"] == "local:100/base-100-disk-0.raw,size=1G"
        assert config["ide2"] == "local-lvm:vm-100-cloudinit,media=cdrom,size=4M"
        assert (await api.get(f"{Q}/100/status/current"))["template"] == 1
        status = await failed(api, await api.post(f"{Q}/100/status/start"))
        assert status == "you can't start a vm if it's a template"
        with pytest.raises(Refused, match="500 you can't convert a template to a template"):
            await api.post(f"{Q}/100/template")
        await api.put(f"{Q}/100/config", scsi2="local-lvm:1")
        assert (await api.get(f"{Q}/100/config"))["scsi2"] == "local-lvm:base-100-disk-1,size=1G"


async def test_a_running_vm_does_not_become_a_template() -> None:
    async with with_lab() as api:
        await make(api)
        await start(api)
        with pytest.raises(Refused, match="500 you can't convert a VM to template if VM is running"):
            await api.post(f"{Q}/100/template")


async def test_a_moved_disk_keeps_its_options_and_leaves_its_old_volume_as_unused() -> None:
    async with with_lab() as api:
        await make(
            api, scsi0="local-lvm:2,ssd=1", ide2="local-lvm:cloudinit", efidisk0="local-lvm:1,efitype=4m"
        )
        upid = await api.post(M, disk="scsi0", storage="local", format="qcow2")
        await done(api, upid)
        config = await api.get(f"{Q}/100/config")
        assert config["scsi0"] == "local:100/vm-100-disk-0.qcow2,size=2G,ssd=1"
        assert config["unused0"] == "local-lvm:vm-100-disk-1"
        assert "adding source volume 'local-lvm:vm-100-disk-1' as 'unused0' to config" in await api.log(upid)
        await done(api, await api.post(M, disk="efidisk0", storage="local", delete=1))
        await done(api, await api.post(M, disk="ide2", storage="local"))
        config = await api.get(f"{Q}/100/config")
        assert config["efidisk0"] == "local:100/vm-100-disk-1.raw,efitype=4m,size=528K"
        assert config["ide2"] == "local:100/vm-100-cloudinit.raw,media=cdrom,size=4M"
        assert await used(api) == 2 * GIB
        await api.put(f"{Q}/100/config", delete="unused0")
        assert await used(api) == 0


async def test_a_disk_changes_its_format_on_the_same_storage() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local:1")
        await done(api, await api.post(M, disk="scsi0", storage="local", format="qcow2", delete=1))
        assert (await api.get(f"{Q}/100/config"))["scsi0"] == "local:100/vm-100-disk-1.qcow2,size=1G"
        assert await used(api, "local") == GIB


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"storage": "local-lvm"}, "500 you can't move to the same storage with same format"),
        ({"disk": "scsi9"}, "500 disk 'scsi9' does not exist"),
        ({"disk": "ide0"}, "500 you can't move a cdrom"),
        ({"storage": "nope"}, "500 storage 'nope' does not exist"),
        ({"digest": "0" * 40}, "500 detected modified configuration - file changed by other user"),
        ({"target-vmid": 101}, "400 .*either set 'storage' or 'target-vmid', but not both"),
        ({"storage": None}, "400 .*both 'storage' and 'target-vmid' missing, either needs to be set"),
        ({"storage": None, "target-vmid": 100}, "400 .*must be different than source VMID"),
        ({"storage": None, "target-vmid": 999}, "500 could not find target VM 999"),
        (
            {"storage": None, "target-vmid": 101, "disk": "scsi1"},
            "500 Disk 'scsi1' for VM '100' does not exist",
        ),
        (
            {"storage": None, "target-vmid": 101},
            "500 Target disk key 'scsi0' is already in use for VM '101'",
        ),
    ],
)
async def test_moves_that_cannot_be_are_refused_at_once(params: dict[str, Any], text: str) -> None:
    async with with_lab() as api:
        await make(api, 100, scsi0="local-lvm:1", ide0="none,media=cdrom")
        await make(api, 101, scsi0="local-lvm:1")
        wanted = {"disk": "scsi0", "storage": "local", **params}
        with pytest.raises(Refused, match=text):
            await api.post(M, **{key: value for key, value in wanted.items() if value is not None})
        assert await used(api) == 2 * GIB


async def test_a_disk_with_snapshots_is_moved_only_if_its_old_volume_stays() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        await done(api, await api.post(f"{Q}/100/snapshot", snapname="s1"))
        with pytest.raises(Refused, match="500 you can't move a disk with snapshots and delete the source"):
            await api.post(M, disk="scsi0", storage="local", delete=1)


async def test_a_disk_given_to_another_vm_is_renamed_and_leaves_the_boot_order() -> None:
    async with with_lab() as api:
        await make(api, 100, scsi0="local-lvm:1", scsi1="local-lvm:2,ssd=1", boot="order=scsi1;scsi0")
        await make(api, 101, scsi0="local-lvm:1")
        await done(api, await api.post(M, disk="scsi1", **{"target-vmid": 101}))
        old, new = await api.get(f"{Q}/100/config"), await api.get(f"{Q}/101/config")
        assert "scsi1" not in old
        assert old["boot"] == "order=scsi0"
        assert new["scsi1"] == "local-lvm:vm-101-disk-1,size=2G,ssd=1"
        await done(api, await api.post(M, disk="scsi0", **{"target-vmid": 101, "target-disk": "unused0"}))
        assert (await api.get(f"{Q}/101/config"))["unused0"] == "local-lvm:vm-101-disk-2"
        assert await used(api) == 4 * GIB
        await done(api, await api.delete(f"{Q}/101"))
        assert await used(api) == 0


async def test_an_interrupted_move_leaves_the_disk_where_it_was() -> None:
    async with with_lab(latency_s={Work.MOVE: 5000.0}) as api:
        before = await make(api, scsi0="local-lvm:1")
        upid = await api.post(M, disk="scsi0", storage="local", delete=1)
        assert await used(api, "local") == GIB
        await api.delete(f"/nodes/pve1/tasks/{upid}")
        assert await api.done(upid) == "received interrupt"
        assert await api.get(f"{Q}/100/config") == before
        assert (await used(api), await used(api, "local")) == (GIB, 0)


async def test_an_imported_image_has_the_size_of_the_disk_inside_it() -> None:
    async with with_lab() as api:
        with api.world.store.transaction():
            api.world.volumes.add(
                "local:import/cloud.qcow2",
                "pve1",
                600 * 2**20,
                content="import",
                format="qcow2",
                virtual_size=3 * GIB,
            )
        config = await make(api, scsi0="local-lvm:0,import-from=local:import/cloud.qcow2,discard=on")
        assert config["scsi0"] == "local-lvm:vm-100-disk-0,discard=on,size=3G"
        await api.put(f"{Q}/100/config", scsi1="local:0,import-from=local:import/cloud.qcow2")
        assert (await api.get(f"{Q}/100/config"))["scsi1"] == "local:100/vm-100-disk-0.qcow2,size=3G"
        await api.put(f"{Q}/100/config", scsi2="local:0,import-from=local-lvm:vm-100-disk-0")
        assert (await api.get(f"{Q}/100/config"))["scsi2"] == "local:100/vm-100-disk-1.raw,size=3G"
        await done(api, await api.put(f"{Q}/100/resize", disk="scsi0", size=str(8 * GIB)))
        assert (await api.get(f"{Q}/100/config"))["scsi0"] == "local-lvm:vm-100-disk-0,discard=on,size=8G"


@pytest.mark.parametrize(
    ("drive", "text"),
    [
        ("local-lvm:4,import-from=local:import/x.qcow2", "'import-from' requires special syntax"),
        ("local-lvm:0,import-from=local:iso/x.img", "local:iso/x.img has wrong type 'iso'"),
        ("local:iso/x.iso", "explicit 'media=cdrom' is required for iso images"),
    ],
)
async def test_drives_that_contradict_themselves_are_refused(drive: str, text: str) -> None:
    async with with_lab() as api:
        with pytest.raises(Refused, match=f"400 .*{text}"):
            await api.post(Q, vmid=100, scsi0=drive)


async def test_unlinked_disks_are_detached_and_removed_by_force() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1", scsi1="local-lvm:1", scsi2="local-lvm:1")
        await api.put(f"{Q}/100/unlink", idlist="scsi1")
        assert (await api.get(f"{Q}/100/config"))["unused0"] == "local-lvm:vm-100-disk-1"
        await api.put(f"{Q}/100/unlink", idlist="scsi2", force=1)
        await api.put(f"{Q}/100/unlink", idlist="unused0")
        assert not {"scsi1", "scsi2", "unused0", "unused1"} & set(await api.get(f"{Q}/100/config"))
        assert await used(api) == GIB


async def test_an_unused_disk_that_is_attached_again_is_no_longer_unused() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1", scsi1="local-lvm:2")
        await api.put(f"{Q}/100/config", delete="scsi1")
        await api.put(f"{Q}/100/config", virtio0="local-lvm:vm-100-disk-1")
        config = await api.get(f"{Q}/100/config")
        assert config["virtio0"] == "local-lvm:vm-100-disk-1,size=2G"
        assert "unused0" not in config


@pytest.mark.parametrize(
    ("size", "printed"), [("+1G", "3G"), ("5G", "5G"), (str(6 * GIB), "6G"), ("2G", "2G"), ("2560M", "2560M")]
)
async def test_disks_grow_by_or_to_a_size(size: str, printed: str) -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:2")
        await done(api, await api.put(f"{Q}/100/resize", disk="scsi0", size=size))
        assert (await api.get(f"{Q}/100/config"))["scsi0"] == f"local-lvm:vm-100-disk-0,size={printed}"


async def test_a_resize_of_a_changed_vm_fails_in_its_task() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:2")
        upid = await api.put(f"{Q}/100/resize", disk="scsi0", size="3G", digest="0" * 40)
        assert await failed(api, upid) == "checksum mismatch (file change by other user?)"
        change(api, 100, lock="backup")
        upid = await api.put(f"{Q}/100/resize", disk="scsi0", size="3G")
        assert await failed(api, upid) == "VM is locked (backup)"


async def test_what_storages_can_do_is_told_with_the_nodes_that_see_the_disks() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        local = await api.get(f"{Q}/100/feature", feature="copy")
        assert local == {"hasFeature": 1, "nodes": ["pve1"]}
        assert (await api.get(f"{Q}/100/feature", feature="clone"))["hasFeature"] == 0
        await make(api, 101)
        assert (await api.get(f"{Q}/101/feature", feature="copy"))["nodes"] == ["pve1", "pve2"]
