"""What tests of VMs in the lab have in common."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from tests.support.lab import LabClient, lab_client

__all__ = ["Q", "change", "done", "failed", "make", "used", "with_lab"]

Q = "/nodes/pve1/qemu"


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    """Run a lab for a test, with two nodes unless it says otherwise."""
    async with lab_client(**{"nodes": ("pve1", "pve2"), **options}) as api:
        yield api


async def done(api: LabClient, upid: str) -> None:
    """Wait for a task that must end well."""
    status = await api.done(upid)
    assert status == "OK", [status, *await api.log(upid)]


async def failed(api: LabClient, upid: str) -> str:
    """Wait for a task that must not end well and return how it ended."""
    status = await api.done(upid)
    assert status != "OK"
    return status


async def make(api: LabClient, vmid: int = 100, **params: Any) -> dict[str, Any]:
    """Make a VM on the first node and return its configuration."""
    await done(api, await api.post(Q, vmid=vmid, **params))
    config: dict[str, Any] = await api.get(f"{Q}/{vmid}/config")
    return config


async def used(api: LabClient, storage: str = "local-lvm", node: str = "pve1") -> int:
    """Return how many bytes of a storage are taken."""
    status = await api.get(f"/nodes/{node}/storage/{storage}/status")
    return int(status["used"])


def change(api: LabClient, vmid: int, **options: Any) -> None:
    """Put options into a VM's file past the API."""
    world = api.world
    with world.store.transaction():
        guest = world.guests.get(vmid)
        assert guest is not None
        world.guests.update(guest, config={**guest["config"], **options})
