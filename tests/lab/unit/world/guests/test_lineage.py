"""Where disks come from, and which one a guest boots."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import lab_client

from pvelab.world.guests.lineage import disk_keys, image_of
from pvelab.world.storage.contents import put_stand_in


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"scsi0": "a:1", "virtio0": "a:2", "ide2": "a:cloudinit,media=cdrom"}, ["scsi0", "virtio0"]),
        ({"scsi1": "a:1", "scsi0": "a:2", "boot": "order=scsi1;net0"}, ["scsi1", "scsi0"]),
        ({"sata0": "a:1", "ide0": "a:2", "bootdisk": "ide0"}, ["ide0", "sata0"]),
        ({"net0": "virtio", "scsi10": "a:1", "scsi2": "a:2"}, ["scsi2", "scsi10"]),
    ],
)
def test_disks_are_in_the_order_of_booting(config: dict[str, Any], expected: list[str]) -> None:
    assert disk_keys(config) == expected


async def test_every_copy_of_a_disk_knows_the_image_that_it_came_from() -> None:
    async with lab_client(nodes=("pve1", "pve2")) as api:
        world = api.world
        with world.store.transaction():
            put_stand_in(world, "local:import/noble.qcow2", "pve1", 2**20)
        disk = "local-lvm:0,import-from=local:import/noble.qcow2"
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100, scsi0=disk))
        await api.done(await api.post("/nodes/pve1/qemu/100/clone", newid=101, full=1))
        move = await api.post("/nodes/pve1/qemu/101/move_disk", disk="scsi0", storage="local", delete=1)
        assert await api.done(move) == "OK"
        await api.done(await api.post("/nodes/pve1/qemu/100/template"))
        await api.done(await api.post("/nodes/pve1/qemu/100/clone", newid=102))
        sent = await api.post("/nodes/pve1/qemu/101/migrate", target="pve2")
        assert await api.done(sent) == "OK"
        await api.done(await api.post("/nodes/pve1/qemu", vmid=103, scsi0="local-lvm:1"))
        found = {vmid: image_of(world, world.guests.get(vmid) or {}) for vmid in (100, 101, 102, 103)}
        came = {"name": "noble.qcow2"}
        assert found == {100: came, 101: came, 102: came, 103: None}


async def test_the_bytes_of_an_image_stay_as_long_as_a_disk_was_made_from_them() -> None:
    async with lab_client() as api:
        form_path = "/nodes/pve1/storage/local/upload"
        boundary = b'--b\r\nContent-Disposition: form-data; name="content"\r\n\r\nimport\r\n'
        boundary += b'--b\r\nContent-Disposition: form-data; name="filename"; filename="x.raw"\r\n\r\n'
        body = boundary + b"0" * 4096 + b"\r\n--b--\r\n"
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        reply = await api.raw("POST", form_path, data=body, headers=headers)
        await api.done(reply.data)
        disk = "local-lvm:0,import-from=local:import/x.raw"
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100, scsi0=disk))
        image = image_of(api.world, api.world.guests.get(100) or {}) or {}
        await api.done(await api.delete("/nodes/pve1/storage/local/content/local:import/x.raw"))
        assert api.world.blobs.path(image["sha256"]).exists()
        await api.done(await api.delete("/nodes/pve1/qemu/100"))
        assert not api.world.blobs.path(image["sha256"]).exists()
