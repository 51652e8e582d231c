"""How storages fill: a thin pool can promise more than it has, others set the space of a volume aside."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab_qemu import Q, done, failed, make, with_lab

GIB = 2**30
THIN: dict[str, dict[str, Any]] = {
    "lvmthin": {"vgname": "fast", "thinpool": "data"},
    "zfspool": {"pool": "tank", "sparse": 1},
    "rbd": {"pool": "vm", "monhost": "10.0.0.1"},
}


@pytest.mark.parametrize("kind", sorted(THIN))
async def test_a_thin_pool_takes_more_than_it_has(kind: str) -> None:
    async with with_lab() as api:
        await api.post("/storage", storage="pool", type=kind, content="images", **THIN[kind])
        await make(api, 100, scsi0="pool:80", scsi1="pool:80")
        await make(api, 101, scsi0="pool:1")
        await done(api, await api.put(f"{Q}/101/resize", disk="scsi0", size="500G"))
        await done(api, await api.post(f"{Q}/100/clone", newid=102, full=1))
        status = await api.get("/nodes/pve1/storage/pool/status")
        assert (status["total"], status["used"], status["avail"]) == (100 * GIB, 100 * GIB, 0)


@pytest.mark.parametrize(
    ("kind", "options", "making", "growing"),
    [
        (
            "lvm",
            {"vgname": "fast"},
            "not enough free space (20971520 < 22020096)",
            "error resizing volume '/dev/fast/vm-100-disk-0':   Insufficient free space:"
            " 5376 extents needed, but only 5120 available",
        ),
        (
            "zfspool",
            {"pool": "tank/vm"},
            "zfs error: cannot create 'tank/vm/vm-101-disk-0': out of space",
            "zfs error: cannot set property for 'tank/vm/vm-100-disk-0':"
            " size is greater than available space",
        ),
        (
            "dir",
            {"path": "/srv/vm"},
            "unable to create image: vm-101-disk-0.raw: No space left on device",
            "command '/usr/bin/qemu-img resize --preallocation=off -f raw"
            " /srv/vm/images/100/vm-100-disk-0.raw 108447924224' failed: exit code 1",
        ),
    ],
)
async def test_a_storage_that_sets_space_aside_names_the_volume_that_does_not_fit(
    kind: str, options: dict[str, Any], making: str, growing: str
) -> None:
    async with with_lab() as api:
        await api.post("/storage", storage="own", type=kind, content="images", **options)
        await make(api, 100, scsi0="own:80")
        status = await failed(api, await api.post(Q, vmid=101, scsi0="own:21"))
        assert status == f"unable to create VM 101 - {making}"
        upid = await api.put(f"{Q}/100/resize", disk="scsi0", size="101G")
        assert await failed(api, upid) == growing
        assert (await api.get(f"{Q}/100/config"))["scsi0"].endswith("size=80G")
        await done(api, await api.put(f"{Q}/100/resize", disk="scsi0", size="100G"))
