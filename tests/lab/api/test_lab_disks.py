"""Physical disks in the lab, what is made of them, and what a node finds when it looks for storage."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_qemu import Q, done, with_lab

from pvelab.seeds import SeedError, parse_seed
from pvelab.world.storage.physical import Disk, declare_disks

D = "/nodes/pve1/disks"


async def disk(api: LabClient, path: str) -> dict[str, Any]:
    """Return the line of a disk in the list."""
    [found] = [row for row in await api.get(f"{D}/list") if row["devpath"] == path]
    return dict(found)


async def test_list_tells_used_and_unused_disks_apart() -> None:
    async with with_lab() as api:
        everything = await api.get(f"{D}/list")
        unused = await api.get(f"{D}/list", type="unused")
        assert {row["devpath"] for row in everything} - {row["devpath"] for row in unused} == {"/dev/nvme0n1"}
        assert all(row["size"] > 0 for row in everything)
        assert len({row["serial"] for row in everything}) == len(everything)
        parts = await api.get(f"{D}/list", include__partitions=1)
        assert [row["devpath"] for row in parts if row.get("parent") == "/dev/nvme0n1"] == [
            f"/dev/nvme0n1p{number}" for number in (1, 2, 3)
        ]


async def test_a_node_can_have_other_disks() -> None:
    async with with_lab() as api:
        with api.world.store.transaction():
            declare_disks(api.world.store, "pve1", [Disk(path="/dev/vda", size=10**10, serial="S1")])
        [row] = await api.get(f"{D}/list")
        assert (row["devpath"], row["serial"], row["size"]) == ("/dev/vda", "S1", 10**10)
        assert len(await api.get("/nodes/pve2/disks/list")) > 1


async def test_a_seed_says_which_disks_a_node_has() -> None:
    given = {"path": "/dev/sdx", "size": 10**12, "type": "hdd", "serial": "S7"}

    async def main(api: LabClient) -> None:
        [row] = await api.get("/nodes/pve1/disks/list")
        assert (row["devpath"], row["type"], row["serial"]) == ("/dev/sdx", "hdd", "S7")

    async with with_lab(nodes=None, seed=parse_seed({"nodes": [{"name": "pve1", "disks": [given]}]})) as api:
        await main(api)
    for wrong in (
        {**given, "size": 0},
        {**given, "path": "sdx"},
        {**given, "type": "tape"},
        {**given, "x": 1},
        1,
    ):
        with pytest.raises(SeedError):
            parse_seed({"nodes": [{"name": "pve1", "disks": [wrong]}]})
    with pytest.raises(SeedError):
        parse_seed({"nodes": [{"name": "pve1", "disks": [given, given]}]})


@pytest.mark.parametrize(
    ("level", "devices", "size"),
    [
        ("single", "/dev/sda", 1),
        ("mirror", "/dev/sda,/dev/sdb", 1),
        ("raid10", "/dev/sda,/dev/sdb,/dev/sdc,/dev/sdd", 2),
        ("raidz", "/dev/sda;/dev/sdb;/dev/sdc", 2),
    ],
)
async def test_zfs_pool_comes_with_its_storage_and_goes_with_it(level: str, devices: str, size: int) -> None:
    async with with_lab() as api:
        one = (await disk(api, "/dev/sda"))["size"]
        await done(
            api, await api.post(f"{D}/zfs", name="tank", raidlevel=level, devices=devices, add_storage=1)
        )
        [pool] = await api.get(f"{D}/zfs")
        assert (pool["name"], pool["size"], pool["health"]) == ("tank", size * one, "ONLINE")
        detail = await api.get(f"{D}/zfs/tank")
        assert detail["state"] == "ONLINE"
        assert detail["children"][0]["children"]
        assert (await disk(api, "/dev/sda"))["used"] == "ZFS"
        status = await api.get("/nodes/pve1/storage/tank/status")
        assert (status["type"], status["total"]) == ("zfspool", size * one)
        await done(api, await api.post(Q, vmid=100, scsi0="tank:1"))
        assert (await api.get(f"{D}/zfs"))[0]["alloc"] == 2**30
        await done(api, await api.delete(f"{D}/zfs/tank", cleanup__config=1, cleanup__disks=1))
        assert await api.get(f"{D}/zfs") == []
        assert "used" not in await disk(api, "/dev/sda")
        with pytest.raises(Refused, match="storage 'tank' does not exist"):
            await api.get("/storage/tank")


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"raidlevel": "mirror", "devices": "/dev/sda"}, "mirror needs at least 2 disks"),
        (
            {"raidlevel": "single", "devices": "/dev/sda,/dev/sdb"},
            "please give only one disk for single disk mode",
        ),
        ({"raidlevel": "single", "devices": "/dev/nvme0n1"}, "device '/dev/nvme0n1' is already in use"),
        ({"raidlevel": "single", "devices": "/dev/none"}, "not a valid block device"),
        ({"raidlevel": "single", "devices": "/tmp/x"}, "got unusual device path '/tmp/x'"),
        (
            {"raidlevel": "mirror", "devices": "/dev/sda,/dev/sdb", "draid-config": "data=1,spares=1"},
            "draid-config set without using dRAID level",
        ),
        (
            {"raidlevel": "single", "devices": "/dev/sda", "name": "local", "add_storage": 1},
            "already exists on node",
        ),
    ],
)
async def test_impossible_pools_are_refused(params: dict[str, Any], text: str) -> None:
    async with with_lab() as api:
        with pytest.raises(Refused, match=text):
            await api.post(f"{D}/zfs", **{"name": "tank", **params})
        assert await api.get(f"{D}/zfs") == []


async def test_second_node_joins_the_storage_of_a_pool_of_the_same_name() -> None:
    async with with_lab() as api:
        for node in ("pve1", "pve2"):
            path = f"/nodes/{node}/disks/zfs"
            given = {"name": "tank", "raidlevel": "single", "devices": "/dev/sda", "add_storage": 1}
            await done(api, await api.post(path, **given))
        assert (await api.get("/storage/tank"))["nodes"] == "pve1,pve2"
        await done(api, await api.delete("/nodes/pve2/disks/zfs/tank", cleanup__config=1))
        assert (await api.get("/storage/tank"))["nodes"] == "pve1"


async def test_changing_disks_needs_the_privilege() -> None:
    async with with_lab() as api:
        await api.post("/access/users", userid="ann@pve", password="secret-word")
        ann = await api.with_password("ann@pve", "secret-word")
        with pytest.raises(Refused, match=r"403 Permission check failed \(/, Sys.Modify\)"):
            await ann.post(f"{D}/zfs", name="tank", raidlevel="single", devices="/dev/sda")
        with pytest.raises(Refused, match="403"):
            await ann.get(f"{D}/list")
        await api.put("/access/acl", path="/", users="ann@pve", roles="PVESysAdmin")
        with pytest.raises(Refused, match="403"):
            await ann.post(f"{D}/zfs", name="tank", raidlevel="single", devices="/dev/sda", add_storage=1)
