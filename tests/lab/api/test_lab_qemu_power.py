"""The power of VMs: shutting down in time or by force, rebooting, resetting, suspending, resuming."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_qemu import Q, change, done, failed, make, used, with_lab

from pvelab import Work

GIB = 2**30
MIB = 2**20
STATUS = f"{Q}/100/status"


async def make_running(api: LabClient, **params: Any) -> None:
    await make(api, **params)
    await done(api, await api.post(f"{STATUS}/start"))


async def state(api: LabClient) -> tuple[str, str]:
    current = await api.get(f"{STATUS}/current")
    return current["status"], current["qmpstatus"]


@pytest.mark.parametrize("command", ["reboot", "reset", "suspend", "resume"])
async def test_a_stopped_vm_takes_no_commands(command: str) -> None:
    async with with_lab() as api:
        await make(api)
        with pytest.raises(Refused, match="500 VM 100 not running"):
            await api.post(f"{STATUS}/{command}")
        for harmless in ("stop", "shutdown"):
            await done(api, await api.post(f"{STATUS}/{harmless}"))


async def test_a_guest_that_does_not_shut_down_in_time_is_left_running_or_forced() -> None:
    async with with_lab(latency_s={Work.SHUTDOWN: 300.0}) as api:
        await make_running(api)
        api.world.clock.hold()
        upid = await api.post(f"{STATUS}/shutdown", timeout=5)
        await api.pass_time(6)
        assert await failed(api, upid) == "VM quit/powerdown failed - got timeout"
        assert await state(api) == ("running", "running")
        upid = await api.post(f"{STATUS}/shutdown", timeout=5, forceStop=1)
        await api.pass_time(6)
        await done(api, upid)
        assert "VM still running - terminating now with SIGTERM" in await api.log(upid)
        assert await state(api) == ("stopped", "stopped")


async def test_the_startup_option_says_how_long_a_shutdown_may_take() -> None:
    async with with_lab(latency_s={Work.SHUTDOWN: 300.0}) as api:
        await make_running(api)
        change(api, 100, startup="order=1,up=2,down=30")
        api.world.clock.hold()
        upid = await api.post(f"{STATUS}/shutdown")
        await api.pass_time(31)
        assert await failed(api, upid) == "VM quit/powerdown failed - got timeout"


async def test_a_stop_waits_for_the_file_of_a_vm_that_shuts_down_unless_it_overrules() -> None:
    async with with_lab(latency_s={Work.SHUTDOWN: 100.0}) as api:
        await make_running(api)
        api.world.clock.hold()
        shutdown = await api.post(f"{STATUS}/shutdown", timeout=120)
        stop = await api.post(f"{STATUS}/stop")
        await api.pass_time(11)
        text = "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout"
        assert await failed(api, stop) == text
        stop = await api.post(f"{STATUS}/stop", overrule__shutdown=1)
        await api.pass_time(1)
        await done(api, stop)
        assert await api.done(shutdown) == "received interrupt"
        assert await state(api) == ("stopped", "stopped")


async def test_a_reboot_applies_what_was_pending() -> None:
    async with with_lab() as api:
        await make_running(api, cores=1)
        await api.put(f"{Q}/100/config", cores=4)
        assert (await api.get(f"{Q}/100/config", current=1))["cores"] == 1
        await done(api, await api.post(f"{STATUS}/reboot"))
        assert await state(api) == ("running", "running")
        assert (await api.get(f"{Q}/100/config", current=1))["cores"] == 4
        kinds = [task["type"] for task in await api.get("/nodes/pve1/tasks", vmid=100)]
        assert kinds[:2] == ["qmstart", "qmreboot"]


async def test_a_reset_boots_the_guest_again_in_the_same_process() -> None:
    async with with_lab(latency_s={Work.BOOT: 20.0}) as api:
        api.world.clock.hold()
        await make_running(api, agent=1)
        await api.pass_time(21)
        before = await api.get(f"{STATUS}/current")
        await api.post(f"{Q}/100/agent/ping")
        await done(api, await api.post(f"{STATUS}/reset"))
        after = await api.get(f"{STATUS}/current")
        assert (after["pid"], after["uptime"]) == (before["pid"], 21)
        with pytest.raises(Refused, match="500 QEMU guest agent is not running"):
            await api.post(f"{Q}/100/agent/ping")
        await api.pass_time(21)
        await api.put(f"{Q}/100/sendkey", key="ctrl-alt-delete")
        with pytest.raises(Refused, match="500 QEMU guest agent is not running"):
            await api.post(f"{Q}/100/agent/ping")
        with pytest.raises(Refused, match="500 invalid parameter: nokey"):
            await api.put(f"{Q}/100/sendkey", key="nokey")


async def test_a_paused_vm_runs_on_where_it_was() -> None:
    async with with_lab() as api:
        await make_running(api, agent=1)
        await done(api, await api.post(f"{STATUS}/suspend"))
        assert await state(api) == ("running", "paused")
        for command in ("shutdown", "reboot"):
            with pytest.raises(Refused, match="500 VM is paused - cannot shutdown"):
                await api.post(f"{STATUS}/{command}")
        with pytest.raises(Refused, match="500 QEMU guest agent is not running"):
            await api.post(f"{Q}/100/agent/ping")
        await done(api, await api.post(f"{STATUS}/resume"))
        assert await state(api) == ("running", "running")
        await done(api, await api.post(f"{STATUS}/suspend"))
        await done(api, await api.post(f"{STATUS}/shutdown", forceStop=1))
        assert await state(api) == ("stopped", "stopped")


@pytest.mark.parametrize("command", ["start", "resume"])
async def test_a_vm_suspended_to_disk_has_its_memory_in_a_volume_until_it_resumes(command: str) -> None:
    async with with_lab() as api:
        await make_running(api, memory=1024, scsi0="local-lvm:1")
        await done(api, await api.post(f"{STATUS}/suspend", todisk=1))
        assert await state(api) == ("stopped", "stopped")
        config = await api.get(f"{Q}/100/config")
        assert config["lock"] == "suspended"
        assert config["vmstate"].startswith("local-lvm:vm-100-state-suspend-")
        assert await used(api) == GIB + (2 * 1024 + 500) * MIB
        with pytest.raises(Refused, match=r"500 VM is locked \(suspended\)"):
            await api.put(f"{Q}/100/config", cores=2)
        upid = await api.post(f"{STATUS}/{command}")
        await done(api, upid)
        assert "Resuming suspended VM" in await api.log(upid)
        assert await state(api) == ("running", "running")
        assert not {"lock", "vmstate", "runningmachine"} & set(await api.get(f"{Q}/100/config"))
        assert await used(api) == GIB


async def test_throwing_the_saved_memory_away_unlocks_a_suspended_vm() -> None:
    async with with_lab() as api:
        await make_running(api, scsi0="local-lvm:1")
        await done(api, await api.post(f"{STATUS}/suspend", todisk=1))
        await api.put(f"{Q}/100/config", delete="vmstate")
        assert not {"lock", "vmstate"} & set(await api.get(f"{Q}/100/config"))
        assert await used(api) == GIB


async def test_a_passed_through_card_cannot_be_written_to_disk() -> None:
    async with with_lab() as api:
        await make_running(api)
        change(api, 100, hostpci0="0000:01:00.0")
        with pytest.raises(Refused, match="500 cannot suspend VM to disk due to passed-through PCI device"):
            await api.post(f"{STATUS}/suspend", todisk=1)


async def test_a_vm_whose_volume_is_gone_does_not_start() -> None:
    async with with_lab() as api:
        await make(api, scsi0="local-lvm:1")
        with api.world.store.transaction():
            api.world.volumes.free("local-lvm:vm-100-disk-0", "pve1")
        status = await failed(api, await api.post(f"{STATUS}/start"))
        assert status == "volume 'local-lvm:vm-100-disk-0' does not exist"


async def test_without_quorum_files_cannot_be_written_but_vms_stop() -> None:
    async with with_lab() as api:
        await make_running(api, scsi0="local-lvm:1", cores=1)
        await api.put(f"{Q}/100/config", cores=2)
        with api.world.store.transaction(), api.world.store.edit("cluster", "state") as cluster:
            cluster["quorum"] = "lost"
        text = (
            r"unable to open file '/etc/pve/nodes/pve1/qemu-server/100\.conf\.tmp\.\d+' - Permission denied"
        )
        with pytest.raises(Refused, match=f"500 {text}"):
            await api.put(f"{Q}/100/config", name="new")
        assert re.fullmatch(text, await failed(api, await api.post(f"{Q}/100/snapshot", snapname="s1")))
        for command in (f"{STATUS}/start", f"{Q}/100/clone"):
            with pytest.raises(Refused, match=r"500 cluster not ready - no quorum\?"):
                await api.post(command, **({"newid": 101} if command.endswith("clone") else {}))
        await done(api, await api.post(f"{STATUS}/stop"))
        assert await state(api) == ("stopped", "stopped")
        assert (await api.get(f"{Q}/100/config", current=1))["cores"] == 1
