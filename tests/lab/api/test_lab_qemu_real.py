"""`--guests qemu` with a guest of a few instructions: power, pause, disks and refusals of real QEMU."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest
from tests.support.lab import LabClient, Refused, lab_client
from tests.support.lab_real import require_qemu_or_skip, upload_image

from pvelab.machines.machine import Kind
from pvelab.machines.qemu.machine import QemuMachine
from pvelab.machines.qemu.power import real_machine
from pvelab.machines.qemu.programs import QemuMissingError
from pvelab.world.storage.contents import put_stand_in

# cli; hlt; jmp: a boot sector that does nothing for ever.
_BOOT_SECTOR = bytes((0xFA, 0xF4, 0xEB, 0xFD)).ljust(510, b"\0") + b"\x55\xaa"
_VM = "/nodes/pve1/qemu/100"


def _tiny_image(folder: Path) -> Path:
    raw, image = folder / "tiny.raw", folder / "tiny.qcow2"
    raw.write_bytes(_BOOT_SECTOR.ljust(2**20, b"\0"))
    subprocess.run(["qemu-img", "convert", "-O", "qcow2", raw, image], check=True)
    return image


async def _make(api: LabClient, folder: Path) -> None:
    volume = await upload_image(api, await asyncio.to_thread(_tiny_image, folder), "tiny.qcow2")
    settings = {"scsi0": f"local-lvm:0,import-from={volume}", "scsihw": "virtio-scsi-pci", "memory": 64}
    made = await api.post(
        "/nodes/pve1/qemu", vmid=100, net0="virtio,bridge=vmbr0", ipconfig0="ip=10.0.12.5/24", **settings
    )
    assert await api.done(made) == "OK"


async def _machine(api: LabClient) -> QemuMachine:
    guest = api.world.guests.get(100)
    assert guest is not None
    machine = await real_machine(api.world, guest)
    assert machine is not None
    return machine


async def test_a_vm_is_a_process_of_qemu_that_pauses_resumes_and_stops_with_it(tmp_path: Path) -> None:
    require_qemu_or_skip()

    async with lab_client(guests=Kind.QEMU, ssh_port=0) as api:
        await _make(api, tmp_path)
        assert await api.done(await api.post(f"{_VM}/status/start")) == "OK"
        machine = await _machine(api)
        assert (await machine.status())["running"] is True
        assert await api.done(await api.post(f"{_VM}/status/suspend")) == "OK"
        assert (await machine.status())["status"] == "paused"
        assert await api.done(await api.post(f"{_VM}/status/resume")) == "OK"
        assert (await machine.status())["running"] is True
        assert await machine.endpoint(22) == await machine.endpoint(22)
        assert await api.done(await api.post(f"{_VM}/status/stop")) == "OK"
        async with asyncio.timeout(60):
            await machine.wait_until_ended()
        assert not machine.is_running


async def test_a_guest_that_does_not_listen_is_not_shut_down_unless_forced(tmp_path: Path) -> None:
    require_qemu_or_skip()

    async with lab_client(guests=Kind.QEMU) as api:
        await _make(api, tmp_path)
        await api.done(await api.post(f"{_VM}/status/start"))
        waits = await api.post(f"{_VM}/status/shutdown", timeout=1)
        assert await api.done(waits) == "VM quit/powerdown failed - got timeout"
        assert (await api.get(f"{_VM}/status/current"))["status"] == "running"
        forced = await api.post(f"{_VM}/status/shutdown", timeout=1, forceStop=1)
        assert await api.done(forced) == "OK"
        assert (await api.get(f"{_VM}/status/current"))["status"] == "stopped"


async def test_a_guest_whose_qemu_ends_is_stopped(tmp_path: Path) -> None:
    require_qemu_or_skip()

    async with lab_client(guests=Kind.QEMU) as api:
        await _make(api, tmp_path)
        await api.done(await api.post(f"{_VM}/status/start"))
        machine = await _machine(api)
        await machine.execute("quit")
        async with asyncio.timeout(60):
            await machine.wait_until_ended()
        assert (await api.get(f"{_VM}/status/current"))["status"] == "stopped"


async def test_the_agent_of_a_guest_without_one_is_not_running(tmp_path: Path) -> None:
    require_qemu_or_skip()

    async with lab_client(guests=Kind.QEMU) as api:
        await _make(api, tmp_path)
        await api.put(f"{_VM}/config", agent=1)
        await api.done(await api.post(f"{_VM}/status/start"))
        with pytest.raises(Refused, match="QEMU guest agent is not running"):
            await api.post(f"{_VM}/agent/ping")


async def test_snapshots_and_clones_of_a_real_guest_have_disks_of_their_own(tmp_path: Path) -> None:
    require_qemu_or_skip()

    async with lab_client(guests=Kind.QEMU, data=tmp_path / "lab") as api:
        await _make(api, tmp_path)
        await api.done(await api.post(f"{_VM}/status/start"))
        assert await api.done(await api.post(f"{_VM}/snapshot", snapname="one")) == "OK"
        assert (await (await _machine(api)).status())["running"] is True
        disks = tmp_path / "lab" / "qemu"
        assert (disks / "100" / "at" / "one" / "scsi0.qcow2").exists()
        assert await api.done(await api.post(f"{_VM}/snapshot/one/rollback")) == "OK"
        assert await api.done(await api.post(f"{_VM}/clone", newid=101, full=1)) == "OK"
        assert (disks / "101" / "now" / "scsi0.qcow2").exists()
        assert await api.done(await api.post("/nodes/pve1/qemu/101/status/start")) == "OK"
        await api.done(await api.post("/nodes/pve1/qemu/101/status/stop"))
        await api.done(await api.delete("/nodes/pve1/qemu/101"))
        await api.done(await api.delete(_VM))
    assert list(disks.iterdir()) == []


async def test_an_image_without_bytes_is_named_when_the_guest_starts() -> None:
    require_qemu_or_skip()

    async with lab_client(guests=Kind.QEMU) as api:
        with api.world.store.transaction():
            put_stand_in(api.world, "local:import/absent.qcow2", "pve1", 2**20)
        disk = "local-lvm:0,import-from=local:import/absent.qcow2"
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100, scsi0=disk))
        said = await api.done(await api.post(f"{_VM}/status/start"))
        assert "does not have the bytes of absent.qcow2" in said
        assert "--allow-downloads" in said
        assert (await api.get(f"{_VM}/status/current"))["status"] == "stopped"


def test_a_machine_without_qemu_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    async def scenario() -> None:
        async with lab_client(guests=Kind.QEMU):
            pytest.fail("a lab of real guests started without QEMU")

    with pytest.raises(QemuMissingError) as caught:
        asyncio.run(scenario())
    assert "apt-get install qemu-system-x86 qemu-utils" in caught.value.remedy
