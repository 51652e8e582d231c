"""Nested nodes in tests: `inner = await nested_node(api, 100)` makes one and returns a client for its API."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from tests.support.lab import LabClient

from pvelab.nested.maker import NestedMachine
from pvelab.world.storage.contents import put_stand_in

__all__ = ["IMAGE", "PASSWORD", "client_of", "make_node", "nested_node", "sessions"]

IMAGE = "local:import/debian-13-pve.qcow2"
PASSWORD = "open sesame"


@contextlib.asynccontextmanager
async def sessions() -> AsyncIterator[aiohttp.ClientSession]:
    """Give what clients of nested labs share."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
        yield session


async def make_node(api: LabClient, vmid: int, *, start: bool = True, **settings: Any) -> None:
    """Make a VM from an image of Proxmox VE on the first node of a lab, through the API."""
    node = api.running.nodes[0]
    if api.world.volumes.find(IMAGE, node) is None:
        with api.world.store.transaction():
            put_stand_in(api.world, IMAGE, node, 2**20)
    wanted = {
        "name": f"inner{vmid}",
        "memory": 8192,
        "cores": 4,
        "scsi0": f"local-lvm:0,import-from={IMAGE}",
        "ide2": "local-lvm:cloudinit",
        "net0": "virtio,bridge=vmbr0",
        "ipconfig0": "ip=dhcp",
        "ciuser": "root",
        "cipassword": PASSWORD,
        "agent": "1",
        **settings,
    }
    assert await api.done(await api.post(f"/nodes/{node}/qemu", vmid=vmid, **wanted)) == "OK"
    if start:
        assert await api.done(await api.post(f"/nodes/{node}/qemu/{vmid}/status/start")) == "OK"


async def client_of(api: LabClient, vmid: int, session: aiohttp.ClientSession) -> LabClient:
    """Return a client for the API of the nested node in a VM that runs."""
    guest = api.world.guests.get(vmid)
    assert guest is not None
    machine = await api.world.machines.of(guest)
    assert isinstance(machine, NestedMachine)
    running = await machine.start_lab()
    return LabClient(running, session, {"Authorization": f"PVEAPIToken={running.api_token}"})


async def nested_node(
    api: LabClient, vmid: int, session: aiohttp.ClientSession, **settings: Any
) -> LabClient:
    """Make a nested node that runs, and return a client for its API."""
    await make_node(api, vmid, **settings)
    return await client_of(api, vmid, session)
