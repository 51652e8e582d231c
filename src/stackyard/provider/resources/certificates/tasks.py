"""Tasks of ACME, each started once: where its answer is lost, the task is looked for."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stackyard.provider.kinds import Work

__all__ = ["await_running", "run_task"]

# An authority looks at DNS records, which take their time to spread; the delay of a plugin comes on top.
_TASK_S = 3600.0


async def run_task(work: Work, kind: str, start: Callable[[], Awaitable[Any]]) -> None:
    """Start a task and wait until it has ended well.

    Args:
        work: The operation.
        kind: Its type, such as `acmeregister`.
        start: Sends the call.

    Raises:
        TaskFailedError: It ended with an error.
        AnswerLostError: The answer is lost, and there is no such task.
        RefusedError: It was not started.
    """
    before = {str(task["upid"]) for task in await _list(work, kind)}
    try:
        upid = str(await start())
    except proxmox.AnswerLostError:
        later = [task for task in await _list(work, kind) if task["upid"] not in before]
        if not later:
            raise
        upid = str(later[0]["upid"])
    await proxmox.wait_for(work.client, upid, timeout_s=_TASK_S)


async def await_running(work: Work, kind: str) -> None:
    """Wait for the tasks of a type that run already: an interrupted run may have started one."""
    for task in await _list(work, kind):
        if not task.get("endtime"):
            with contextlib.suppress(proxmox.TaskFailedError):
                await proxmox.wait_for(work.client, str(task["upid"]), timeout_s=_TASK_S)


async def _list(work: Work, kind: str) -> list[dict[str, Any]]:
    return [task for task in await work.client.get("/cluster/tasks") or () if task.get("type") == kind]
