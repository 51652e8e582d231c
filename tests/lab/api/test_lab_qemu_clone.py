"""Cloning VMs: full and linked, to other storages and nodes, and many at the same time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_qemu import Q, change, done, failed, make, used, with_lab

from pvelab import Work

GIB = 2**30


def shared_storage(api: LabClient, **more: Any) -> None:
    config = {"type": "nfs", "path": "/mnt/pve/nfs", "content": "images", **more}
    with api.world.store.transaction():
        api.world.store.put("storages", "nfs", {"storage": "nfs", **config})


async def test_a_full_clone_has_its_own_disks_addresses_and_identity() -> None:
    async with with_lab() as api:
        old = await make(
            api,
            name="web",
            cores=2,
            scsi0="local-lvm:4,ssd=1",
            scsi1="local:1,format=qcow2",
            ide2="local-lvm:cloudinit",
            ide0="none,media=cdrom",
            net0="virtio,bridge=vmbr0,tag=5",
            smbios1="manufacturer=QUJD,base64=1",
            description="of the source",
        )
        await api.put(f"{Q}/100/config", delete="scsi1")
        await done(api, await api.post(f"{Q}/100/clone", newid=101))
        new = await api.get(f"{Q}/101/config")
        assert new["name"] == "Copy-of-VM-web"
        assert (new["cores"], new["description"]) == (2, "of the source")
        assert new["scsi0"] == "local-lvm:vm-101-disk-0,size=4G,ssd=1"
        assert new["ide2"] == "local-lvm:vm-101-cloudinit,media=cdrom,size=4M"
        assert new["ide0"] == "none,media=cdrom"
        assert new["net0"].split(",")[1:] == ["bridge=vmbr0", "tag=5"]
        assert new["smbios1"].endswith(",manufacturer=QUJD,base64=1")
        for key in ("net0", "smbios1", "vmgenid"):
            assert new[key] != old.get(key)
        assert not {"unused0", "lock", "template"} & set(new)
        # Of the source: 4 GiB and its cloud-init drive; the clone has the same.
        assert await used(api) == 2 * (4 * GIB + 4 * 2**20)


async def test_what_a_call_says_goes_into_the_clone() -> None:
    async with with_lab() as api:
        with api.world.store.transaction():
            api.world.store.put("pools", "p", {"poolid": "p"})
        await make(api, scsi0="local-lvm:2")
        upid = await api.post(
            f"{Q}/100/clone", newid=101, name="n", description="d", pool="p", storage="local", format="qcow2"
        )
        await done(api, upid)
        new = await api.get(f"{Q}/101/config")
        assert (new["name"], new["description"]) == ("n", "d")
        assert new["scsi0"] == "local:101/vm-101-disk-0.qcow2,size=2G"
        assert api.world.pools.pool_of(101) == "p"
        log = await api.log(upid)
        assert "creating a clone of VM 100 with ID 101" in log
        assert "create full clone of drive scsi0 (local-lvm:vm-100-disk-0)" in log


async def test_a_linked_clone_of_a_template_takes_no_space_and_names_its_base() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:4", scsi1="local:1,format=qcow2")
        await done(api, await api.post(f"{Q}/100/template"))
        before = await used(api), await used(api, "local")
        await done(api, await api.post(f"{Q}/100/clone", newid=101))
        new = await api.get(f"{Q}/101/config")
        assert new["scsi0"] == "local-lvm:vm-101-disk-0,size=4G"
        assert new["scsi1"] == "local:100/base-100-disk-0.qcow2/101/vm-101-disk-0.qcow2,size=1G"
        assert (await used(api), await used(api, "local")) == before
        await done(api, await api.put(f"{Q}/101/resize", disk="scsi0", size="+1G"))
        assert await used(api) == before[0] + GIB
        assert (
            await failed(api, await api.delete(f"{Q}/100"))
            == "base volume 'local:100/base-100-disk-0.qcow2' is still in use by linked cloned"
        )
        await done(api, await api.delete(f"{Q}/101"))
        await done(api, await api.delete(f"{Q}/100"))
        assert (await used(api), await used(api, "local")) == (0, 0)


async def test_a_full_clone_of_a_template_stands_alone() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        await done(api, await api.post(f"{Q}/100/template"))
        await done(api, await api.post(f"{Q}/100/clone", newid=101, full=1))
        assert await used(api) == 2 * GIB
        await done(api, await api.delete(f"{Q}/100"))
        assert await used(api) == GIB


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"newid": 100}, "unable to create VM 100: config file already exists"),
        ({"full": 0}, r"Linked clone feature is not supported for 'local-lvm:vm-100-disk-0' \(scsi0\)"),
        ({"full": 0, "storage": "local"}, "parameter 'storage' not allowed for linked clones"),
        ({"full": 0, "format": "raw"}, "parameter 'format' not allowed for linked clones"),
        ({"target": "pve2"}, r"can't clone VM to node 'pve2' \(VM uses local storage\)"),
        ({"target": "pve2", "storage": "local"}, "can't clone to non-shared storage 'local'"),
        ({"target": "nope"}, "no such cluster node 'nope'"),
        ({"storage": "nope"}, "storage 'nope' does not exist"),
        ({"snapname": "s1"}, "snapshot 's1' does not exist"),
        ({"pool": "p"}, "pool 'p' does not exist"),
    ],
)
async def test_clones_that_cannot_be_are_refused_at_once(params: dict[str, Any], text: str) -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        with pytest.raises(Refused, match=f"500 {text}"):
            await api.post(f"{Q}/100/clone", **{"newid": 101, **params})
        assert await used(api) == GIB


async def test_a_locked_vm_is_not_cloned() -> None:
    async with with_lab() as api:
        await make(api)
        change(api, 100, lock="backup")
        with pytest.raises(Refused, match=r"500 VM is locked \(backup\)"):
            await api.post(f"{Q}/100/clone", newid=101)


async def test_a_clone_on_shared_storage_goes_to_the_target_node() -> None:
    async with with_lab() as api:
        shared_storage(api)
        await make(api, scsi0="nfs:2,format=qcow2")
        await done(api, await api.post(f"{Q}/100/clone", newid=101, target="pve2"))
        new = await api.get("/nodes/pve2/qemu/101/config")
        assert new["scsi0"] == "nfs:101/vm-101-disk-0.qcow2,size=2G"
        with pytest.raises(Refused, match="does not exist"):
            await api.get(f"{Q}/101/config")


async def test_a_snapshot_can_be_cloned() -> None:
    async with with_lab() as api:
        await make(api, cores=1, scsi0="local-lvm:1")
        await done(api, await api.post(f"{Q}/100/snapshot", snapname="s1"))
        await api.put(f"{Q}/100/config", cores=4)
        await done(api, await api.put(f"{Q}/100/resize", disk="scsi0", size="3G"))
        await done(api, await api.post(f"{Q}/100/clone", newid=101, snapname="s1"))
        new = await api.get(f"{Q}/101/config")
        assert (new["cores"], new["scsi0"]) == (1, "local-lvm:vm-101-disk-0,size=1G")
        await done(api, await api.post(f"{Q}/100/clone", newid=102, snapname="s1", full=0))
        assert (await api.get(f"{Q}/102/config"))["scsi0"] == "local-lvm:vm-102-disk-0,size=1G"


async def test_a_clone_is_locked_until_it_is_done_and_its_number_taken_at_once() -> None:
    async with with_lab(latency_s={Work.CLONE: 8.0}) as api:
        await make(api, scsi0="local-lvm:1")
        api.world.clock.hold()
        upid = await api.post(f"{Q}/100/clone", newid=101)
        assert (await api.get(f"{Q}/101/config"))["lock"] == "clone"
        assert await api.get("/cluster/nextid") == "102"
        with pytest.raises(Refused, match=r"500 VM is locked \(clone\)"):
            await api.put(f"{Q}/101/config", cores=2)
        await api.pass_time(9)
        await done(api, upid)
        assert "lock" not in await api.get(f"{Q}/101/config")


async def test_parallel_full_clones_to_one_slow_storage_fail_on_its_lock() -> None:
    async with with_lab(latency_s={Work.ALLOCATE: 4.0}) as api:
        api.world.clock.hold()
        upid = await api.post(Q, vmid=100, scsi0="local-lvm:1")
        await api.pass_time(5)
        await done(api, upid)
        upids = [await api.post(f"{Q}/100/clone", newid=101 + number) for number in range(5)]
        await api.pass_time(30)
        text = "can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout"
        statuses = [await api.done(upid) for upid in upids]
        assert statuses == ["OK"] * 3 + [f"clone failed: {text}"] * 2
        assert [guest["vmid"] for guest in await api.get(Q)] == [100, 101, 102, 103]
        assert await used(api) == 4 * GIB


async def test_an_interrupted_clone_leaves_nothing() -> None:
    async with with_lab(latency_s={Work.CLONE: 5000.0}) as api:
        await make(api, scsi0="local-lvm:1")
        upid = await api.post(f"{Q}/100/clone", newid=101)
        await api.delete(f"/nodes/pve1/tasks/{upid}")
        assert await api.done(upid) == "received interrupt"
        assert await used(api) == GIB
        assert [guest["vmid"] for guest in await api.get(Q)] == [100]


async def test_a_hundred_linked_clones_at_once_are_a_hundred_vms() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1", net0="virtio,bridge=vmbr0")
        await done(api, await api.post(f"{Q}/100/template"))

        async def one(newid: int) -> str:
            await done(api, await api.post(f"{Q}/100/clone", newid=newid))
            return str((await api.get(f"{Q}/{newid}/config"))["net0"])

        networks = await asyncio.gather(*(one(newid) for newid in range(101, 201)))
        assert len(set(networks)) == 100
        assert await used(api) == GIB


async def test_cloning_needs_the_clone_privilege_and_space_on_the_storage() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        with api.world.store.transaction():
            put = api.world.store.put
            put("users", "bob@pve", {"enable": 1, "groups": [], "tokens": {"t": {"privsep": 0}}})
            put("token_secrets", "bob@pve!t", {"value": "secret"})
            put("acl", "/vms/101", {"users": {"bob@pve": {"PVEVMAdmin": 1}}})
        bob = api.with_token("bob@pve!t=secret")
        with pytest.raises(Refused, match=r"403 Permission check failed \(/vms/100, VM.Clone\)"):
            await bob.post(f"{Q}/100/clone", newid=101)
        with api.world.store.transaction():
            api.world.store.put("acl", "/vms/100", {"users": {"bob@pve": {"PVEVMAdmin": 1}}})
        with pytest.raises(Refused, match=r"403 .*\(/storage/local-lvm, Datastore.AllocateSpace\)"):
            await bob.post(f"{Q}/100/clone", newid=101)
