"""Changes of running VMs: what takes effect at once, what waits, and how that is shown and taken back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_qemu import Q, done, failed, make, used, with_lab

from pvelab import Work

GIB = 2**30
CONFIG = f"{Q}/100/config"
BASE: dict[str, Any] = {
    "cores": 1,
    "memory": 1024,
    "ostype": "l26",
    "agent": "enabled=1",
    "scsi0": "local-lvm:1,ssd=1",
    "ide2": "none,media=cdrom",
    "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0",
    "boot": "order=scsi0",
}


async def make_running(api: LabClient, **params: Any) -> None:
    await make(api, **{**BASE, **params})
    await done(api, await api.post(f"{Q}/100/status/start"))


async def waiting(api: LabClient) -> dict[str, dict[str, Any]]:
    """Return what is pending, by option."""
    rows = await api.get(f"{Q}/100/pending")
    return {row["key"]: row for row in rows if "pending" in row or "delete" in row}


@pytest.mark.parametrize(
    ("change", "at_once"),
    [
        ({"name": "new"}, True),
        ({"description": "text"}, True),
        ({"onboot": 1}, True),
        ({"tags": "a"}, True),
        ({"cpulimit": 2}, True),
        ({"cpuunits": 200}, True),
        ({"ciuser": "bob"}, True),
        ({"tablet": 0}, True),
        ({"agent": "enabled=1,fstrim_cloned_disks=1"}, True),
        ({"agent": "enabled=1,type=isa"}, False),
        ({"cores": 2}, False),
        ({"memory": 2048}, False),
        ({"vcpus": 1}, False),
        ({"balloon": 0}, False),
        ({"balloon": 512}, True),
        ({"cpu": "host"}, False),
        ({"bios": "ovmf"}, False),
        ({"boot": "order=net0"}, False),
        ({"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=7"}, True),
        ({"net0": "e1000=BC:24:11:00:00:01,bridge=vmbr0"}, True),
        ({"net1": "virtio,bridge=vmbr0"}, True),
        ({"scsi1": "local-lvm:1"}, True),
        ({"virtio1": "local-lvm:1"}, True),
        ({"sata1": "local-lvm:1"}, False),
        ({"efidisk0": "local-lvm:1,efitype=4m"}, False),
        ({"scsi0": "local-lvm:vm-100-disk-0,ssd=1,iops=100"}, True),
        ({"scsi0": "local-lvm:vm-100-disk-0,ssd=0"}, False),
        ({"ide2": "cdrom,media=cdrom"}, True),
        ({"hotplug": "disk"}, True),
        ({"hotplug": "disk,cpu"}, False),
    ],
)
async def test_what_qemu_takes_while_it_runs_takes_effect_at_once(
    change: dict[str, Any], at_once: bool
) -> None:
    async with with_lab() as api:
        await make_running(api)
        await api.put(CONFIG, **change)
        (key,) = change
        assert (key not in await waiting(api)) == at_once
        shown = (await api.get(CONFIG))[key]
        current = await api.get(CONFIG, current=1)
        assert (current.get(key) == shown) == at_once
        await done(api, await api.post(f"{Q}/100/status/stop"))
        assert (await api.get(CONFIG, current=1))[key] == shown
        assert await waiting(api) == {}


@pytest.mark.parametrize(
    ("option", "at_once"),
    [
        ("net0", True),
        ("scsi0", True),
        ("ciuser", True),
        ("cpulimit", True),
        ("ide2", False),
        ("cores", False),
        ("agent", False),
    ],
)
async def test_what_can_be_unplugged_is_gone_at_once(option: str, at_once: bool) -> None:
    async with with_lab() as api:
        await make_running(api, ciuser="bob", cpulimit=1)
        await api.put(CONFIG, delete=option)
        assert option not in await api.get(CONFIG)
        assert (option not in await api.get(CONFIG, current=1)) == at_once
        rows = {row["key"]: row for row in await api.get(f"{Q}/100/pending")}
        assert ("delete" in rows.get(option, {})) == (not at_once)


async def test_without_hotplug_everything_waits() -> None:
    async with with_lab() as api:
        await make_running(api, hotplug="0")
        await api.put(CONFIG, net1="virtio,bridge=vmbr0", scsi1="local-lvm:1", delete="net0")
        assert {"net1", "scsi1", "net0"} <= set(await waiting(api))


async def test_memory_and_cpus_are_plugged_into_vms_that_are_made_for_it() -> None:
    async with with_lab() as api:
        await make_running(api, hotplug="cpu,memory,disk,network", numa=1, cores=4, vcpus=1)
        await api.put(CONFIG, memory=4096, vcpus=2)
        assert await waiting(api) == {}


async def test_pending_changes_are_listed_and_can_be_taken_back() -> None:
    async with with_lab() as api:
        await make_running(api, hotplug="0", cpu="host")
        await api.put(CONFIG, cores=4, sockets=2, scsi1="local-lvm:2", delete="cpu")
        found = await waiting(api)
        assert found["cores"] == {"key": "cores", "value": 1, "pending": 4}
        assert found["sockets"] == {"key": "sockets", "pending": 2}
        assert found["cpu"] == {"key": "cpu", "value": "host", "delete": 1}
        await api.put(CONFIG, revert="cores,cpu,scsi1")
        assert set(await waiting(api)) == {"sockets"}
        assert (await api.get(CONFIG))["unused0"] == "local-lvm:vm-100-disk-1"
        await api.put(CONFIG, delete="sockets")
        assert await waiting(api) == {}
        assert await used(api) == 3 * GIB


async def test_a_value_set_back_to_the_present_one_is_not_pending() -> None:
    async with with_lab() as api:
        await make_running(api)
        await api.put(CONFIG, cores=4)
        await api.put(CONFIG, cores=1)
        assert await waiting(api) == {}


async def test_a_running_vm_does_not_turn_a_disk_into_a_cd_drive() -> None:
    async with with_lab() as api:
        await make_running(api)
        with pytest.raises(Refused, match="400") as caught:
            await api.put(CONFIG, scsi0="none,media=cdrom")
        assert caught.value.errors == {"scsi0": "hotplug problem - unable to change media type\n"}
        assert set(await waiting(api)) >= {"scsi0"}


async def test_a_new_cd_drive_can_be_booted_from_and_a_removed_one_cannot() -> None:
    async with with_lab() as api:
        await make(api, **BASE)
        await api.put(CONFIG, ide0="none,media=cdrom", scsi5="local-lvm:1", ide3="local-lvm:cloudinit")
        assert (await api.get(CONFIG))["boot"] == "order=scsi0;ide0"
        await api.put(CONFIG, delete="ide0")
        assert (await api.get(CONFIG))["boot"] == "order=scsi0"
        await api.put(CONFIG, delete="scsi0")
        assert (await api.get(CONFIG))["boot"] == " "
        with pytest.raises(Refused, match="500 invalid bootorder: device 'scsi9' does not exist'"):
            await api.put(CONFIG, boot="order=scsi9")


async def test_replacing_a_pending_disk_gives_the_first_one_back_as_unused() -> None:
    async with with_lab() as api:
        await make_running(api)
        await api.put(CONFIG, sata0="local-lvm:1")
        await api.put(CONFIG, sata0="local-lvm:2")
        config = await api.get(CONFIG)
        assert config["sata0"] == "local-lvm:vm-100-disk-2,size=2G"
        assert config["unused0"] == "local-lvm:vm-100-disk-1"


async def test_a_change_in_a_task_is_answered_with_nothing_if_it_ends_in_time() -> None:
    async with with_lab() as api:
        await make(api)
        assert await api.post(CONFIG, cores=2, background_delay=5) is None
        upid = await api.post(CONFIG, cores=3, cipassword="secret")
        assert upid.startswith("UPID:pve1:")
        await done(api, upid)
        assert (await api.log(upid))[0] == "update VM 100: -cipassword <hidden> -cores 3"
        assert (await api.get(CONFIG))["cores"] == 3
        await api.post("/storage", storage="thick", type="lvm", vgname="fast")
        with pytest.raises(Refused, match=r"500 failed to update VM 100: not enough free space"):
            await api.post(CONFIG, scsi0="thick:99999", background_delay=5)


async def test_a_change_in_a_slow_task_is_answered_with_its_upid() -> None:
    async with with_lab(latency_s={Work.CONFIG: 5000.0}) as api:
        await make(api)
        api.world.clock.hold()
        call = asyncio.create_task(api.post(CONFIG, cores=2, background_delay=30))
        while not call.done():
            await api.pass_time(1)
        upid = await call
        assert upid.startswith("UPID:pve1:")
        await api.delete(f"/nodes/pve1/tasks/{upid}")
        assert await failed(api, upid) == "received interrupt"


async def test_devices_of_the_node_are_for_root_and_mapped_ones_for_who_may_use_them() -> None:
    async with with_lab(password="secret") as api:
        await make(api)
        root = await api.with_password("root@pam", "secret")
        refusals = {
            "hostpci0=0000:01:00.0": "500 only root can set 'hostpci0' config for non-mapped devices",
            "usb0=host=1-1": "500 only root can set 'usb0' config for real devices",
            "serial0=/dev/ttyS0": "500 only root can set 'serial0' config for real devices",
        }
        for setting, text in refusals.items():
            key, _, value = setting.partition("=")
            with pytest.raises(Refused, match=text):
                await api.put(CONFIG, **{key: value})
            await root.put(CONFIG, **{key: value})
        await api.put(CONFIG, usb1="spice", serial1="socket", hostpci1="mapping=card")
        assert (await api.get(CONFIG))["hostpci1"] == "mapping=card"
