"""A lab of three nodes with a shared storage, for tests of high availability."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.support.lab import LabClient, lab_client

__all__ = ["NODES", "cluster", "kinds", "make_vm", "run", "service", "where"]

NODES = ("pve1", "pve2", "pve3")


def run(test: Callable[[LabClient], Awaitable[None]], **options: Any) -> None:
    """Run a test against a lab of three nodes with a shared storage."""

    async def main() -> None:
        async with cluster(**options) as api:
            await test(api)

    asyncio.run(main())


@asynccontextmanager
async def cluster(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**{"nodes": NODES, **options}) as api:
        # Time passes where a test says so, however slow the machine is.
        api.world.clock.hold()
        await api.post(
            "/storage", storage="shared", type="nfs", server="10.0.0.9", export="/x", content="images"
        )
        yield api


async def make_vm(api: LabClient, vmid: int, node: str = "pve1", disk: str = "shared:1") -> None:
    await api.post(f"/nodes/{node}/qemu", vmid=vmid, memory=64, scsi0=disk)


async def where(api: LabClient, vmid: int) -> tuple[str, str]:
    """Return the node and the state of a guest."""
    found = next(row for row in await api.get("/cluster/resources", type="vm") if row["vmid"] == vmid)
    return found["node"], found["status"]


async def service(api: LabClient, sid: str) -> dict[str, Any]:
    rows = await api.get("/cluster/ha/status/current")
    return next(dict(row) for row in rows if row.get("sid") == sid)


async def kinds(api: LabClient) -> list[str]:
    return [task["type"] for task in reversed(await api.get("/cluster/tasks"))]
