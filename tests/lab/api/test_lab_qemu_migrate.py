"""Migrating VMs between nodes, stopped and running, with what is on one node only."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_qemu import Q, change, done, failed, make, used, with_lab

from pvelab import Work

GIB = 2**30
Q2 = "/nodes/pve2/qemu"
MIGRATE = f"{Q}/100/migrate"


def add_storage(api: LabClient, storage: str, **config: Any) -> None:
    with api.world.store.transaction():
        api.world.store.put("storages", storage, {"storage": storage, "content": "images", **config})


async def start(api: LabClient) -> None:
    await done(api, await api.post(f"{Q}/100/status/start"))


async def aborted(api: LabClient, upid: str) -> str:
    """Return the log of a migration that did not take place."""
    assert await failed(api, upid) == "migration aborted"
    assert "lock" not in await api.get(f"{Q}/100/config")
    return "\n".join(await api.log(upid))


async def test_a_stopped_vm_takes_its_local_disks_along() -> None:
    async with with_lab() as api:
        old = await make(api, scsi0="local-lvm:4", scsi1="local:1,format=qcow2", ide2="local-lvm:cloudinit")
        upid = await api.post(MIGRATE, target="pve2")
        await done(api, upid)
        new = await api.get(f"{Q2}/100/config")
        assert {**new, "digest": ""} == {**old, "digest": ""}
        with pytest.raises(Refused, match=r"Configuration file 'nodes/pve1/qemu-server/100\.conf' does not"):
            await api.get(f"{Q}/100/config")
        assert await used(api, "local-lvm", "pve1") == await used(api, "local", "pve1") == 0
        assert await used(api, "local-lvm", "pve2") == 4 * GIB + 4 * 2**20
        assert await used(api, "local", "pve2") == GIB
        log = "\n".join(await api.log(upid))
        assert "starting migration of VM 100 to node 'pve2' (10.31.0.12)" in log
        assert "volume 'local-lvm:vm-100-disk-0' is 'local-lvm:vm-100-disk-0' on the target" in log
        assert "migration finished successfully (duration 00:00:00)" in log
        assert api.world.guests.require("qemu", "pve2", 100)["status"] == "stopped"


async def test_a_running_vm_moves_online_with_its_local_disks_only_if_told_to() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:4")
        await start(api)
        with pytest.raises(Refused, match="500 can't migrate running VM without --online"):
            await api.post(MIGRATE, target="pve2")
        log = await aborted(api, await api.post(MIGRATE, target="pve2", online=1))
        text = "can't live migrate attached local disks without with-local-disks option"
        assert f"can't migrate local disk 'local-lvm:vm-100-disk-0': {text}" in log
        assert "Problem found while scanning volumes - can't migrate VM - check log" in log
        await done(api, await api.post(MIGRATE, target="pve2", online=1, with__local__disks=1))
        assert (await api.get(f"{Q2}/100/status/current"))["status"] == "running"
        assert (await used(api, node="pve1"), await used(api, node="pve2")) == (0, 4 * GIB)


async def test_disks_on_shared_storage_stay_where_they_are() -> None:
    async with with_lab() as api:
        add_storage(api, "nfs", type="nfs", path="/mnt/pve/nfs")
        await make(api, scsi0="nfs:2")
        await start(api)
        upid = await api.post(MIGRATE, target="pve2", online=1)
        await done(api, upid)
        assert (await api.get(f"{Q2}/100/config"))["scsi0"] == "nfs:100/vm-100-disk-0.raw,size=2G"
        assert not any("found local disk" in line for line in await api.log(upid))
        assert await used(api, "nfs") == 2 * GIB


@pytest.mark.parametrize(
    ("mapping", "disk", "other"),
    [
        ("local", "local:100/vm-100-disk-0.raw", "local:100/vm-100-disk-1.raw"),
        ("local-lvm:local", "local:100/vm-100-disk-0.raw", "local:100/vm-100-disk-1.raw"),
        ("1", "local-lvm:vm-100-disk-0", "local:100/vm-100-disk-0.raw"),
    ],
)
async def test_a_storage_map_says_where_disks_go(mapping: str, disk: str, other: str) -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1,ssd=1", scsi1="local:1")
        await done(api, await api.post(MIGRATE, target="pve2", targetstorage=mapping))
        config = await api.get(f"{Q2}/100/config")
        assert config["scsi0"] == f"{disk},size=1G,ssd=1"
        assert config["scsi1"] == f"{other},size=1G"


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"target": "nope"}, "500 no such cluster node 'nope'"),
        ({"target": "pve1"}, "400 .*target is local node."),
        ({"targetstorage": "nope"}, "500 storage 'nope' does not exist"),
        ({"targetstorage": "a1:b1:c1"}, "400 .*entry 'a1:b1:c1' contains invalid ID"),
        ({"force": 1}, "400 .*Only root may use this option."),
    ],
)
async def test_migrations_that_cannot_be_are_refused_at_once(params: dict[str, Any], text: str) -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        with pytest.raises(Refused, match=text):
            await api.post(MIGRATE, **{"target": "pve2", **params})
        change(api, 100, lock="backup")
        with pytest.raises(Refused, match=r"500 VM is locked \(backup\)"):
            await api.post(MIGRATE, target="pve2")


async def test_a_storage_that_the_target_lacks_stops_it_at_once() -> None:
    async with with_lab() as api:
        add_storage(api, "fast", type="lvmthin", nodes="pve1")
        await make(api, scsi0="fast:1")
        with pytest.raises(Refused, match="500 storage 'fast' is not available on node 'pve2'"):
            await api.post(MIGRATE, target="pve2")
        condition = await api.get(MIGRATE)
        assert condition["allowed_nodes"] == []
        assert condition["not_allowed_nodes"] == {"pve2": {"unavailable_storages": ["fast"]}}
        await done(api, await api.post(MIGRATE, target="pve2", targetstorage="local-lvm"))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"hostpci0": "0000:01:00.0"}, "can't migrate VM which uses local devices: hostpci0"),
        ({"usb0": "host=1-1"}, "can't migrate VM which uses local devices: usb0"),
        ({"serial0": "/dev/ttyS0"}, "can't migrate VM which uses local devices: serial0"),
        ({"usb0": "mapping=stick"}, "can't migrate to 'pve2': missing mapped devices usb0"),
        ({"ide2": "cdrom,media=cdrom"}, "can't migrate local cdrom drive"),
        (
            {"ide2": "local:iso/x.iso,media=cdrom"},
            "can't migrate local disk 'local:iso/x.iso': local cdrom image",
        ),
        ({"scsi5": "/dev/sdb"}, "can't migrate local disk '/dev/sdb': local file/device"),
    ],
)
async def test_what_is_on_one_node_only_stops_the_task(options: dict[str, str], text: str) -> None:
    async with with_lab() as api:
        with api.world.store.transaction():
            api.world.volumes.add("local:iso/x.iso", "pve1", 1024, content="iso", format="iso")
        await make(api, scsi0="local-lvm:1")
        change(api, 100, **options)
        assert text in await aborted(api, await api.post(MIGRATE, target="pve2"))
        assert await used(api, node="pve2") == 0


async def test_sockets_and_mapped_devices_do_not_hold_a_vm_back() -> None:
    async with with_lab() as api:
        with api.world.store.transaction():
            entry = "id=8086:1533,iommugroup=14,node={},path=0000:01:00.0"
            nodes = [entry.format("pve1"), entry.format("pve2")]
            api.world.store.put("mapping_pci", "card", {"type": "pci", "map": nodes})
        await make(api)
        change(api, 100, serial0="socket", hostpci0="mapping=card")
        condition = await api.get(MIGRATE)
        assert condition["mapped-resources"] == ["hostpci0"]
        assert condition["local_resources"] == []
        await done(api, await api.post(MIGRATE, target="pve2"))


async def test_snapshots_on_lvm_stay_and_those_in_qcow2_go_along() -> None:
    async with with_lab() as api:
        await make(api, 100, scsi0="local-lvm:1")
        await done(api, await api.post(f"{Q}/100/snapshot", snapname="s1"))
        log = await aborted(api, await api.post(MIGRATE, target="pve2"))
        assert "can't migrate local disk 'local-lvm:vm-100-disk-0': non-migratable snapshot exists" in log
        await make(api, 101, scsi0="local:1,format=qcow2")
        await done(api, await api.post(f"{Q}/101/snapshot", snapname="s1"))
        await done(api, await api.post(f"{Q}/101/migrate", target="pve2"))
        await done(api, await api.post(f"{Q2}/101/snapshot/s1/rollback"))


async def test_a_linked_clone_does_not_leave_its_base() -> None:
    async with with_lab() as api:
        await make(api, 200, scsi0="local:1,format=qcow2")
        await done(api, await api.post(f"{Q}/200/template"))
        await done(api, await api.post(f"{Q}/200/clone", newid=100))
        log = await aborted(api, await api.post(MIGRATE, target="pve2"))
        assert "as it's a clone of 'base-200-disk-0.qcow2'" in log


async def test_a_name_that_is_taken_on_the_target_is_not_overwritten() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        with api.world.store.transaction():
            api.world.volumes.add(
                "local-lvm:vm-100-disk-0", "pve2", GIB, content="images", format="raw", vmid=100
            )
        await done(api, await api.post(MIGRATE, target="pve2"))
        assert (await api.get(f"{Q2}/100/config"))["scsi0"] == "local-lvm:vm-100-disk-1,size=1G"
        assert await used(api, node="pve2") == 2 * GIB


async def test_a_full_target_and_an_interruption_leave_everything_as_it_was() -> None:
    async with with_lab(latency_s={Work.MIGRATE: 5000.0}) as api:
        await api.post("/storage", storage="thick", type="lvm", vgname="fast")
        before = await make(api, scsi0="thick:1", scsi1="thick:2")
        with api.world.store.transaction():
            api.world.store.put("capacities", "pve2|thick", {"total": 2 * GIB})
        log = await aborted(api, await api.post(MIGRATE, target="pve2"))
        assert "storage migration for 'thick:vm-100-disk-1' to storage 'thick' failed -" in log
        with api.world.store.transaction():
            api.world.store.put("capacities", "pve2|thick", {"total": 20 * GIB})
        upid = await api.post(MIGRATE, target="pve2")
        assert (await api.get(f"{Q}/100/config"))["lock"] == "migrate"
        assert await used(api, "thick", "pve2") == 3 * GIB
        await api.delete(f"/nodes/pve1/tasks/{upid}")
        assert await api.done(upid) == "received interrupt"
        assert await api.get(f"{Q}/100/config") == before
        assert (await used(api, "thick", "pve1"), await used(api, "thick", "pve2")) == (3 * GIB, 0)


async def test_what_stands_in_the_way_can_be_asked_before() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        await start(api)
        condition = await api.get(MIGRATE)
        assert condition["running"] == 1
        assert condition["allowed_nodes"] == ["pve2"]
        disk = condition["local_disks"][0]
        assert (disk["volid"], disk["size"], disk["drivename"]) == ("local-lvm:vm-100-disk-0", GIB, "scsi0")
        assert (disk["is_attached"], disk["is_unused"], disk["cdrom"]) == (1, 0, 0)


async def test_a_node_that_is_down_is_no_target() -> None:
    async with with_lab(nodes=("pve1", "pve2", "pve3")) as api:
        await make(api)
        with api.world.store.transaction(), api.world.store.edit("nodes", "pve3") as node:
            node["online"] = 0
        log = await aborted(api, await api.post(MIGRATE, target="pve3"))
        assert "Can't connect to destination address using public key" in log
