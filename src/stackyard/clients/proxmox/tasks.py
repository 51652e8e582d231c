"""Waiting for the tasks that calls start: asked at once, then ever less often."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.backoff import Backoff
from stackyard.base.visible import on_one_line
from stackyard.clients.proxmox.encoding import quote
from stackyard.clients.proxmox.failures import Call, RefusedError, TaskFailedError, TaskTimeoutError

if TYPE_CHECKING:
    from stackyard.clients.proxmox.client import Client

__all__ = ["TaskEnd", "find_running_task", "list_tasks", "node_of", "task_log", "wait_for"]

# A task of the lab or a small one of a node is over in milliseconds; a clone takes minutes.
_BACKOFF = Backoff(0.02, 1.0, growth=1.5)
_LOG_LINES = 12
_LONGEST_LINE = 1_000
_RUNNING = "RUNNING"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnd:
    """How a task ended: well, perhaps with warnings."""

    upid: str
    warnings: tuple[str, ...] = ()


def node_of(upid: str) -> str:
    """Return the node on which a task runs.

    Raises:
        ValueError: The text is no task id.
    """
    parts = upid.split(":")
    if len(parts) < 8 or parts[0] != "UPID":
        raise ValueError(f"{upid!r} is not the id of a task")
    return parts[1]


async def wait_for(client: Client, upid: str, *, timeout_s: float) -> TaskEnd:
    """Wait until a task has ended well.

    Raises:
        TaskFailedError: It ended with an error, which is quoted with the end of its log.
        TaskTimeoutError: It did not end in time; it continues.
        InterruptedRunError: We were asked to stop; it continues.
    """
    path = f"/nodes/{quote(node_of(upid))}/tasks/{quote(upid)}"
    if client.on_task is not None:
        client.on_task(upid)
    deadline, pauses = time.monotonic() + timeout_s, iter(_BACKOFF)
    while (ended := await _exit_status(client, path)) is None:
        if time.monotonic() >= deadline:
            raise TaskTimeoutError(Call("GET", f"{path}/status"), upid=upid, timeout_s=timeout_s)
        await client.pause(next(pauses))
    # What was read while the task ran may be wrong now.
    client.expire_reads()
    if ended == "OK":
        return TaskEnd(upid=upid)
    lines = await task_log(client, upid)
    if ended.startswith("WARNINGS"):
        return TaskEnd(upid=upid, warnings=tuple(line for line in lines if "WARN:" in line))
    tail = tuple(line for line in lines if not line.startswith("TASK "))[-_LOG_LINES:]
    raise TaskFailedError(Call("GET", f"{path}/status"), upid=upid, ended=ended, log=tail)


async def find_running_task(client: Client, node: str, *, kind: str, about: str) -> str | None:
    """Return the id of a task that runs on a node, for those who lost the answer that named it.

    Args:
        client: The door to the API.
        node: Where it runs.
        kind: Its type: `download`, `qmcreate`, `qmclone`.
        about: Its object, such as a vm id or a file name.
    """
    path = f"/nodes/{quote(node)}/tasks"
    listed = await client.get(path, {"source": "active", "typefilter": kind, "limit": 500})
    for task in listed or ():
        if task.get("id") == about and task.get("status") in (None, "", _RUNNING):
            return str(task["upid"])
    return None


async def list_tasks(client: Client, node: str, *, kind: str) -> list[dict[str, Any]]:
    """Return the latest tasks of one type on a node, running or ended, the newest first."""
    path = f"/nodes/{quote(node)}/tasks"
    return list(await client.get(path, {"source": "all", "typefilter": kind, "limit": 500}) or ())


async def _exit_status(client: Client, path: str) -> str | None:
    try:
        status: dict[str, Any] = await client.get(f"{path}/status")
    except RefusedError as err:
        # A task that has just been started may not be in the list of its node yet.
        if err.status == 400:
            return None
        raise
    if status.get("status") != "stopped":
        return None
    return on_one_line(str(status.get("exitstatus") or "unexpected status")[:_LONGEST_LINE])


async def task_log(client: Client, upid: str) -> tuple[str, ...]:
    """Return the lines of a task's log; none where it may not be read."""
    path = f"/nodes/{quote(node_of(upid))}/tasks/{quote(upid)}/log"
    try:
        lines = await client.get(path, {"limit": 500})
    except RefusedError:
        # The end of the task is what counts; its log only explains.
        return ()
    return tuple(on_one_line(client.redactor(str(line.get("t", ""))[:_LONGEST_LINE])) for line in lines or ())
