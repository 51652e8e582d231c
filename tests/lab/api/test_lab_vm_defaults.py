"""What Proxmox makes of settings that a client leaves out or writes in its own way."""

from __future__ import annotations

import pytest
from tests.support.lab_qemu import Q, make, with_lab


async def test_the_numbers_of_disks_follow_the_names_of_the_drives() -> None:
    async with with_lab() as api:
        config = await make(
            api,
            virtio0="local-lvm:1",
            tpmstate0="local-lvm:1,version=v2.0",
            scsi2="local-lvm:1",
            scsi10="local-lvm:1",
            scsi0="local-lvm:1",
            sata1="local-lvm:1",
            ide1="local-lvm:1",
            efidisk0="local-lvm:1,efitype=4m",
        )
        drives = ("efidisk0", "ide1", "sata1", "scsi0", "scsi10", "scsi2", "tpmstate0", "virtio0")
        volumes = [config[drive].partition(",")[0] for drive in drives]
        assert volumes == [f"local-lvm:vm-100-disk-{number}" for number in range(8)]


async def test_a_vm_without_devices_has_an_empty_boot_order() -> None:
    async with with_lab() as api:
        assert (await make(api))["boot"] == " "
        assert (await make(api, 101, net0="virtio,bridge=vmbr0"))["boot"] == "order=net0"
        await api.put(f"{Q}/101/config", delete="net0")
        assert (await api.get(f"{Q}/101/config"))["boot"] == " "
        assert (await make(api, 102, boot="order=net0", net0="virtio,bridge=vmbr0"))["boot"] == "order=net0"
        await api.put(f"{Q}/100/config", scsi0="local-lvm:1")
        await api.put(f"{Q}/100/config", boot="order=scsi0")
        assert (await api.get(f"{Q}/100/config"))["boot"] == "order=scsi0"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  two words  ", "two words"),
        (" ", None),
        ("", None),
        ("0", None),
        ("a: b %41 ü", "a: b %41 ü"),
        ("\ttabs stay\n", "\ttabs stay\n"),
    ],
)
async def test_comments_of_users_groups_pools_and_tokens_lose_the_spaces_around_them(
    given: str, kept: str | None
) -> None:
    paths = {
        "/access/users": {"userid": "a@pve"},
        "/access/groups": {"groupid": "g"},
        "/pools": {"poolid": "p"},
        "/access/users/a@pve/token/tok": {},
    }
    read = ("/access/users/a@pve", "/access/groups/g", "/pools/p", "/access/users/a@pve/token/tok")

    async with with_lab() as api:
        for path, params in paths.items():
            await api.post(path, comment=given, **params)
        assert [(await api.get(path)).get("comment") for path in read] == [kept] * 4
        for path in read:
            await api.put(path, comment="other")
            await api.put(path, comment=given)
        assert [(await api.get(path)).get("comment") for path in read] == [kept] * 4


async def test_the_log_of_a_resize_names_the_volume_group_of_the_storage() -> None:
    async with with_lab() as api:
        await api.post("/storage", storage="fast", type="lvm", vgname="ssd", content="rootdir")
        with api.world.store.transaction():
            api.world.volumes.add("local:vztmpl/a.tar.zst", "pve1", 9, content="vztmpl", format="tzst")
        upid = await api.post(
            "/nodes/pve1/lxc", vmid=100, ostemplate="local:vztmpl/a.tar.zst", rootfs="fast:1"
        )
        assert await api.done(upid) == "OK"
        upid = await api.put("/nodes/pve1/lxc/100/resize", disk="rootfs", size="2G")
        assert await api.done(upid) == "OK"
        assert "  Logical volume ssd/vm-100-disk-0 successfully resized." in await api.log(upid)
