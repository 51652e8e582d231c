"""A Debian that really boots: cloud-init, the guest agent and SSH of a guest of `--guests qemu`."""

from __future__ import annotations

import asyncio
import urllib.parse
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from tests.support.debian_image import debian_image
from tests.support.lab import LabClient, lab_client
from tests.support.lab_real import upload_image
from tests.support.lab_ssh import OWN, said, ssh_to

from pvelab.machines.machine import Kind
from pvelab.machines.qemu.power import real_machine

# Under emulation, and building the image before that.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

_VM = "/nodes/pve1/qemu/100"
_ADDRESS = "10.0.12.5"
# An emulated processor that is shared with others.
_BOOT_TIMEOUT_S = 900


async def _run(api: LabClient, *command: str) -> dict[str, Any]:
    """Run a program through the agent, as a client of the API does."""
    query = "&".join(f"command={urllib.parse.quote(word)}" for word in command)
    started = await api.raw("POST", f"{_VM}/agent/exec?{query}")
    while True:
        status = await api.get(f"{_VM}/agent/exec-status", pid=started.data["pid"])
        if status["exited"]:
            return dict(status)
        await asyncio.sleep(0.5)


async def test_debian_boots_applies_cloud_init_answers_the_agent_and_lets_its_user_in(tmp_path: Path) -> None:
    image = debian_image()
    key = asyncssh.generate_private_key("ssh-ed25519")
    public = key.export_public_key().decode().strip()

    async with lab_client(guests=Kind.QEMU, ssh_port=0, data=tmp_path / "lab") as api:
        volume = await upload_image(api, image, "debian-12.qcow2")
        made = await api.post(
            "/nodes/pve1/qemu",
            vmid=100,
            name="real",
            memory=768,
            cores=1,
            agent=1,
            scsihw="virtio-scsi-pci",
            scsi0=f"local-lvm:0,import-from={volume}",
            scsi1="local-lvm:cloudinit",
            net0="virtio,bridge=vmbr0",
            ipconfig0=f"ip={_ADDRESS}/24,gw=10.0.12.1",
            ciuser="lab",
            ciupgrade=0,
            sshkeys=urllib.parse.quote(public, safe=""),
        )
        assert await api.done(made) == "OK"
        assert await api.done(await api.post(f"{_VM}/status/start")) == "OK"
        guest = api.world.guests.get(100)
        assert guest is not None
        machine = await real_machine(api.world, guest)
        assert machine is not None
        async with asyncio.timeout(_BOOT_TIMEOUT_S):
            await machine.boot()
            done = await _run(api, "cloud-init", "status", "--wait", "--long")
        assert "status: done" in done["out-data"], done
        cards = (await api.get(f"{_VM}/agent/network-get-interfaces"))["result"]
        found = {one["ip-address"] for card in cards for one in card.get("ip-addresses", [])}
        assert _ADDRESS in found
        assert (await api.get(f"{_VM}/agent/get-osinfo"))["result"]["id"] == "debian"
        assert (await _run(api, "uname", "-s"))["out-data"] == "Linux\n"
        async with ssh_to(api) as jump:
            login = {**OWN, "username": "lab", "client_keys": [key]}
            async with asyncssh.connect(_ADDRESS, tunnel=jump, **login) as inside:
                assert await said(inside, "hostname; sudo id -u") == (0, "real\n0\n", "")
        assert await api.done(await api.post(f"{_VM}/status/shutdown", timeout=170)) == "OK"
        assert (await api.get(f"{_VM}/status/current"))["status"] == "stopped"
        assert not machine.is_running
