"""Guests of a lab from the inside: `async with inside(api, 100) as guest: await guest.sh("id")`."""

from __future__ import annotations

import asyncio
import contextlib
import urllib.parse
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.lab import LabClient, lab_client

from pvelab.machines.bubblewrap import Bubblewrap, find_bubblewrap
from pvelab.machines.machine import Execution, GuestMachine, Kind
from pvelab.ssh.shell.streams import BytesSource, CaptureSink, Streams
from pvelab.world.storage.contents import put_file

__all__ = ["ADDRESS", "Inside", "has_sandbox", "make_guest", "need_sandbox", "open_guest", "with_sandbox"]

ADDRESS = "10.31.2.100"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """The inside of one guest."""

    machine: GuestMachine

    async def sh(self, line: str, *, user: str = "root", stdin: bytes = b"") -> tuple[int, str, str]:
        """Run a line in a user's shell; return the status and what it said on both outputs."""
        out, err = CaptureSink(), CaptureSink()
        status = await self.machine.run(
            Execution(line=line, user=user), Streams(stdin=BytesSource(stdin), stdout=out, stderr=err)
        )
        return status, out.data.decode(errors="replace"), err.data.decode(errors="replace")

    async def out(self, line: str, *, user: str = "root") -> str:
        """Run a line that works and return what it said."""
        status, out, err = await self.sh(line, user=user)
        assert status == 0, (line, status, out, err)
        return out.strip()


def need_sandbox() -> Bubblewrap:
    """Skip the test where no sandbox works, by name."""
    found = _find_sandbox()
    if isinstance(found, str):
        pytest.skip(found)
    return found


def has_sandbox() -> bool:
    """Tell whether guests of a lab can run programs here."""
    return not isinstance(_find_sandbox(), str)


def _find_sandbox() -> Bubblewrap | str:
    """Look for it in a thread: the caller may be in an event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(find_bubblewrap())).result()


async def make_guest(
    api: LabClient, vmid: int = 100, *, user_data: str | bytes = "", **settings: Any
) -> None:
    """Make a VM with cloud-init (and a snippet as its user data) and start it."""
    address = f"10.31.2.{vmid}"
    given = {
        "name": f"vm{vmid}",
        "ide2": "local-lvm:cloudinit",
        "net0": "virtio,bridge=vmbr0",
        "ipconfig0": f"ip={address}/16,gw=10.31.0.1",
        **settings,
    }
    if user_data:
        content = user_data.encode() if isinstance(user_data, str) else user_data
        world = api.running.world
        blob = world.blobs.put(content)
        with world.store.transaction():
            put_file(world, f"local:snippets/u{vmid}.yaml", "pve1", blob)
        given["cicustom"] = f"user=local:snippets/u{vmid}.yaml"
    if "sshkeys" in given:
        given["sshkeys"] = urllib.parse.quote(given["sshkeys"].strip(), safe="")
    await api.done(await api.post("/nodes/pve1/qemu", vmid=vmid, **given))
    await api.done(await api.post(f"/nodes/pve1/qemu/{vmid}/status/start"))


async def open_guest(api: LabClient, vmid: int = 100) -> Inside:
    """Return the inside of a guest that runs, booted."""
    world = api.running.world
    guest = world.guests.get(vmid)
    assert guest is not None
    machine = await world.machines.of(guest)
    await machine.boot()
    return Inside(machine=machine)


@contextlib.asynccontextmanager
async def with_sandbox(**options: Any) -> AsyncIterator[LabClient]:
    """Run a lab with sandboxed guests for a test, or skip the test."""
    need_sandbox()
    async with lab_client(**{"guests": Kind.SANDBOX, "ssh_port": 0, **options}) as api:
        yield api
