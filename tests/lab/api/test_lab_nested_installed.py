"""A guest of plain Debian in which Proxmox VE is installed is a node from its next boot on."""

from __future__ import annotations

import asyncio
import contextlib

from tests.support.lab import LabClient
from tests.support.lab_inside import make_guest, open_guest, with_sandbox
from tests.support.lab_nested import client_of, sessions

from pvelab.machines.machine import MachineError
from pvelab.nested.maker import NestedMachine

WAIT_S = 60.0
BOOT = "cat /proc/sys/kernel/random/boot_id"


async def reboot(api: LabClient, vmid: int, line: str = "systemctl reboot") -> None:
    """Start a guest again from the inside, and wait until it has another boot than before."""
    before = await (await open_guest(api, vmid)).out(BOOT)
    with contextlib.suppress(MachineError):
        # It may be gone before it has answered.
        await (await open_guest(api, vmid)).sh(line)
    async with asyncio.timeout(WAIT_S):
        while True:
            with contextlib.suppress(MachineError):
                if await (await open_guest(api, vmid)).out(BOOT) != before:
                    return
            await asyncio.sleep(0.05)


async def test_a_guest_is_a_node_once_proxmox_is_installed_and_it_booted_again() -> None:
    async with with_sandbox() as api:
        await make_guest(api, 100)
        guest = await open_guest(api, 100)
        assert not (await guest.out("uname -r")).endswith("-pve")
        await guest.out("apt-get -y install proxmox-ve")
        status, _, _ = await guest.sh("pveversion")
        assert status == 127, "nothing of it runs before the guest boots again"
        await reboot(api, 100)
        guest = await open_guest(api, 100)
        assert (await guest.out("uname -r")).endswith("-pve")
        assert (await guest.out("pveversion")).startswith("pve-manager/")
        assert "vm100" in await guest.out("pvesh get /nodes --output-format json")
        async with sessions() as session:
            inner = await client_of(api, 100, session)
            assert await inner.done(await inner.post("/nodes/vm100/qemu", vmid=500, memory=512)) == "OK"
        assert await api.done(await api.post("/nodes/pve1/qemu/100/clone", newid=101)) == "OK"
        assert await api.done(await api.post("/nodes/pve1/qemu/101/status/start")) == "OK"
        copy = api.world.guests.get(101)
        assert copy is not None
        assert isinstance(await api.world.machines.of(copy), NestedMachine), "its disk has it too"


async def test_a_record_that_is_no_record_makes_no_node() -> None:
    async with with_sandbox() as api:
        await make_guest(api, 100)
        await reboot(api, 100, "ln -sf /etc/passwd /var/lib/stackyard-lab/packages.json; reboot")
        assert (await (await open_guest(api, 100)).sh("pveversion"))[0] == 127
