"""Tasks on Proxmox that work on a container."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from stackyard import proxmox

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work

__all__ = ["wait_for_others", "wait_for_task"]


async def wait_for_task(work: Work, upid: str, *, timeout_s: float) -> None:
    """Wait until a task has ended well; what it warns of goes to the user.

    Raises:
        ProxmoxError: It failed, or did not end in time.
    """
    end = await proxmox.wait_for(work.client, upid, timeout_s=timeout_s)
    for line in end.warnings:
        work.warn("A task on Proxmox ended with warnings", line)


async def wait_for_others(work: Work, node: str, vm_id: int, *, timeout_s: float) -> None:
    """Wait until no task works on a container, however they end: for a call whose answer was lost."""
    listed = await work.client.get(f"/nodes/{node}/tasks", {"vmid": vm_id, "source": "active"})
    for task in listed:
        with contextlib.suppress(proxmox.TaskFailedError):
            await proxmox.wait_for(work.client, str(task["upid"]), timeout_s=timeout_s)
