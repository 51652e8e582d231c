"""The thin path of a VM: create, change, start, resize, remove; and who may do it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

from pvelab import Work

Q = "/nodes/pve1/qemu"
MAC = r"BC:24:11:[0-9A-F]{2}:[0-9A-F]{2}:[0-9A-F]{2}"


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def make(api: LabClient, vmid: int = 100, **params: Any) -> dict[str, Any]:
    assert await api.done(await api.post(Q, vmid=vmid, **params)) == "OK"
    config: dict[str, Any] = await api.get(f"{Q}/{vmid}/config")
    return config


async def failed(api: LabClient, upid: str) -> str:
    status = await api.done(upid)
    assert status != "OK"
    return status


def give(api: LabClient, path: str, role: str) -> LabClient:
    """Return a client of a user who has one role on one path."""
    with api.world.store.transaction():
        put = api.world.store.put
        put("users", "bob@pve", {"enable": 1, "groups": [], "tokens": {"t": {"privsep": 0}}})
        put("token_secrets", "bob@pve!t", {"value": "secret"})
        with api.world.store.edit("acl", path) as entries:
            entries.setdefault("users", {}).setdefault("bob@pve", {})[role] = 1
    return api.with_token("bob@pve!t=secret")


async def test_drives_networks_and_generated_values_read_back_as_proxmox_prints_them() -> None:
    async with with_lab() as api:
        config = await make(
            api,
            name="vm1",
            memory=1024,
            cores=2,
            onboot=1,
            tags="b;A;b",
            description="text \n",
            cipassword="secret",
            scsi0="file=local-lvm:4,size=4294967296,ssd=0,discard=ignore,aio=io_uring",
            scsi1="local:2,format=qcow2",
            ide2="file=local-lvm:cloudinit,",
            efidisk0="local-lvm:1,efitype=4m",
            tpmstate0="local-lvm:1,version=v2.0",
            ide0="none,media=cdrom",
            net0="model=virtio,bridge=vmbr0,firewall=0",
            net1="virtio,bridge=vmbr0",
        )
        expected = {
            "name": "vm1",
            "memory": "1024",
            "cores": 2,
            "onboot": 1,
            "tags": "a;b",
            "description": "text",
            "cipassword": "**********",
            "scsi0": "local-lvm:vm-100-disk-1,aio=io_uring,discard=ignore,size=4G,ssd=0",
            "scsi1": "local:100/vm-100-disk-0.qcow2,size=2G",
            "ide2": "local-lvm:vm-100-cloudinit,media=cdrom,size=4M",
            "efidisk0": "local-lvm:vm-100-disk-0,efitype=4m,size=4M",
            "tpmstate0": "local-lvm:vm-100-disk-2,size=4M,version=v2.0",
            "ide0": "none,media=cdrom",
            "boot": "order=scsi0;ide0;net0",
        }
        assert {key: config.get(key) for key in expected} == expected
        assert re.fullmatch(f"virtio={MAC},bridge=vmbr0,firewall=0", config["net0"])
        assert re.fullmatch(f"virtio={MAC},bridge=vmbr0", config["net1"])
        assert re.fullmatch(r"uuid=[0-9a-f-]{36}", config["smbios1"])
        assert re.fullmatch(r"[0-9a-f]{40}", config["digest"])
        assert "lock" not in config


async def test_a_removed_disk_becomes_unused_and_removing_that_frees_it() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:4", scsi1="local-lvm:2", ide2="local-lvm:cloudinit")
        await api.put(f"{Q}/100/config", delete="scsi1,ide2,net7")
        config = await api.get(f"{Q}/100/config")
        assert config["unused0"] == "local-lvm:vm-100-disk-1"
        assert "scsi1" not in config
        volumes = [row["volid"] for row in await api.get("/nodes/pve1/storage/local-lvm/content")]
        assert volumes == ["local-lvm:vm-100-disk-0", "local-lvm:vm-100-disk-1"]
        await api.put(f"{Q}/100/config", scsi0="local-lvm:1")
        config = await api.get(f"{Q}/100/config")
        assert config["scsi0"] == "local-lvm:vm-100-disk-2,size=1G"
        assert config["unused1"] == "local-lvm:vm-100-disk-0"
        await api.put(f"{Q}/100/config", delete="unused0,unused1")
        assert (await api.get("/nodes/pve1/storage/local-lvm/status"))["used"] == 2**30


async def test_an_existing_volume_sent_again_keeps_its_size() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:4")
        await api.put(f"{Q}/100/config", scsi0="file=local-lvm:vm-100-disk-0,ssd=1,size=99G")
        config = await api.get(f"{Q}/100/config")
        assert config["scsi0"] == "local-lvm:vm-100-disk-0,size=4G,ssd=1"
        assert "unused0" not in config


async def test_changes_of_a_running_vm_wait_for_its_next_start() -> None:
    async with with_lab() as api:
        await make(api, memory=1024, net1="virtio,bridge=vmbr0")
        assert await api.done(await api.post(f"{Q}/100/status/start")) == "OK"
        await api.put(f"{Q}/100/config", memory=2048, name="new", delete="net1")
        assert (await api.get(f"{Q}/100/config"))["memory"] == "2048"
        current = await api.get(f"{Q}/100/config", current=1)
        assert (current["memory"], current["name"]) == ("1024", "new")
        assert "net1" not in current
        pending = {row["key"]: row for row in await api.get(f"{Q}/100/pending")}
        assert pending["memory"] == {"key": "memory", "value": "1024", "pending": "2048"}
        await api.done(await api.post(f"{Q}/100/status/stop"))
        assert (await api.get(f"{Q}/100/config", current=1))["memory"] == "2048"


async def test_states_that_do_not_fit_are_refused_with_their_texts() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:4", ide2="none,media=cdrom", protection=1)
        with pytest.raises(
            Refused, match="500 unable to create VM 100 - VM 100 already exists on node 'pve1'"
        ):
            await api.post(Q, vmid=100)
        with pytest.raises(Refused, match="500 can't remove VM 100 - protection mode enabled"):
            await api.delete(f"{Q}/100")
        await api.put(f"{Q}/100/config", protection=0)
        await api.done(await api.post(f"{Q}/100/status/start"))
        assert await failed(api, await api.post(f"{Q}/100/status/start")) == "VM 100 already running"
        with pytest.raises(Refused, match="500 VM 100 is running - destroy failed"):
            await api.delete(f"{Q}/100")
        resize = f"{Q}/100/resize"
        texts = {
            ("scsi0", "1G"): "shrinking disks is not supported",
            ("scsi9", "1G"): "disk 'scsi9' does not exist",
            ("ide2", "1G"): "you can't resize a cdrom",
        }
        for (disk, size), text in texts.items():
            assert await failed(api, await api.put(resize, disk=disk, size=size)) == text
        with pytest.raises(Refused, match=r"500 checksum mismatch \(file change by other user\?\)$"):
            await api.put(f"{Q}/100/config", cores=2, digest="0" * 40)
        with pytest.raises(Refused, match="500 no options specified"):
            await api.put(f"{Q}/100/config")


async def test_a_locked_vm_is_left_alone() -> None:
    async with with_lab() as api:
        await make(api)
        world = api.world
        with world.store.transaction():
            guest = world.guests.require("qemu", "pve1", 100)
            world.guests.update(guest, config={**guest["config"], "lock": "backup"})
        with pytest.raises(Refused, match=r"500 VM is locked \(backup\)"):
            await api.put(f"{Q}/100/config", cores=2)
        assert await failed(api, await api.post(f"{Q}/100/status/start")) == "VM is locked (backup)"
        assert (await api.get(f"{Q}/100/status/current"))["lock"] == "backup"


async def test_a_vm_is_locked_while_it_is_made_and_its_number_taken_at_once() -> None:
    async with with_lab(latency_s={Work.CREATE: 4.0}) as api:
        api.world.clock.hold()
        upid = await api.post(Q, vmid=100)
        assert (await api.get(f"/nodes/pve1/tasks/{upid}/status"))["status"] == "running"
        assert (await api.get(f"{Q}/100/config"))["lock"] == "create"
        assert await api.get("/cluster/nextid") == "101"
        api.world.clock.advance(5)
        assert await api.done(upid) == "OK"
        assert "lock" not in await api.get(f"{Q}/100/config")


async def test_an_interrupted_create_leaves_nothing() -> None:
    async with with_lab(latency_s={Work.CREATE: 4000.0}) as api:
        upid = await api.post(Q, vmid=100, scsi0="local-lvm:4")
        await api.delete(f"/nodes/pve1/tasks/{upid}")
        assert await api.done(upid) == "received interrupt"
        assert (await api.get("/nodes/pve1/storage/local-lvm/status"))["used"] == 0
        assert (await api.log(upid))[-1] == "TASK ERROR: received interrupt"
        assert await api.get(Q) == []


async def test_removing_a_vm_frees_its_disks_and_forgets_it() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:4", scsi1="local:1", ide2="local-lvm:cloudinit")
        assert await api.done(await api.delete(f"{Q}/100/", purge=1, destroy__unreferenced__disks=1)) == "OK"
        with pytest.raises(
            Refused, match=r"500 Configuration file 'nodes/pve1/qemu-server/100\.conf' does not"
        ):
            await api.get(f"{Q}/100/status/current")
        for storage in ("local", "local-lvm"):
            assert (await api.get(f"/nodes/pve1/storage/{storage}/status"))["used"] == 0


async def test_a_full_storage_fails_the_task_and_keeps_its_account() -> None:
    async with with_lab() as api:
        await api.post("/storage", storage="thick", type="lvm", vgname="fast")
        status = await failed(api, await api.post(Q, vmid=100, scsi0="thick:1", scsi1="thick:99999"))
        assert status == "unable to create VM 100 - not enough free space (103809024 < 104856551424)"
        assert (await api.get("/nodes/pve1/storage/thick/status"))["used"] == 0


async def test_missing_storages_and_nodes_have_their_texts() -> None:
    async with with_lab() as api:
        with pytest.raises(Refused, match="500 storage 'nope' does not exist"):
            await api.post(Q, vmid=100, scsi0="nope:1")
        with pytest.raises(Refused, match="400") as caught:
            await api.get("/nodes/pve1/storage/nope/status")
        assert caught.value.errors == {"storage": "No such storage."}
        with pytest.raises(Refused, match="500 pool 'p' does not exist"):
            await api.post(Q, vmid=100, pool="p")


async def test_permissions_are_asked_for_each_thing_that_a_call_does() -> None:
    async with with_lab() as api:
        await make(api, 100, scsi0="local-lvm:1")
        await make(api, 101)
        bob = give(api, "/vms/100", "PVEVMUser")
        assert [guest["vmid"] for guest in await bob.get(Q)] == [100]
        assert [row["id"] for row in await bob.get("/cluster/resources", type="vm")] == ["qemu/100"]
        assert await api.done(await bob.post(f"{Q}/100/status/start")) == "OK"
        with pytest.raises(Refused, match=r"403 Permission check failed \(/vms/101, VM.PowerMgmt\)"):
            await bob.post(f"{Q}/101/status/start")
        with pytest.raises(Refused, match=r"403 Permission check failed \(/vms/100, VM.Config.CPU\)"):
            await bob.put(f"{Q}/100/config", cores=2)
        with pytest.raises(Refused, match="403 Permission check failed"):
            await bob.post(Q, vmid=102)
        give(api, "/vms", "PVEVMAdmin")
        with pytest.raises(Refused, match=r"403 .*\(/storage/local-lvm, Datastore.AllocateSpace\)"):
            await bob.put(f"{Q}/101/config", scsi3="local-lvm:1")
        with pytest.raises(Refused, match="500 only root can set 'args' config"):
            await bob.put(f"{Q}/101/config", args="-s")
        with pytest.raises(Refused, match=r"403 .*\(/sdn/zones/localnetwork/vmbr0, SDN.Use\)"):
            await bob.put(f"{Q}/101/config", net3="virtio,bridge=vmbr0")
        with pytest.raises(Refused, match="400") as caught:
            await bob.put(f"{Q}/101/config", cores=2, skiplock=1)
        assert caught.value.errors == {"skiplock": "Only root may use this option."}


async def test_two_hundred_clients_at_once_get_two_hundred_vms() -> None:
    async with with_lab() as api:

        async def one(number: int) -> None:
            vmid = 100 + number
            assert await api.done(await api.post(Q, vmid=vmid, scsi0="local-lvm:1")) == "OK"
            await api.put(f"{Q}/{vmid}/config", cores=2, scsi1="local-lvm:1")
            if number % 2:
                assert await api.done(await api.delete(f"{Q}/{vmid}")) == "OK"

        await asyncio.gather(*(one(number) for number in range(200)))
        guests = await api.get(Q)
        assert [guest["vmid"] for guest in guests] == list(range(100, 300, 2))
        assert (await api.get("/nodes/pve1/storage/local-lvm/status"))["used"] == 100 * 2 * 2**30
