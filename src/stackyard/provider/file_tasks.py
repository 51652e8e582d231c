"""Which task of a node wrote a file: what shows that a file is what a killed run of ours began.

A file carries no token of ours. Proxmox writes one in a task, whose log names it, and lists when the file was
last changed. A file belongs to an entry of the journal if the entry's own task ended well and the file was
last changed while that task ran. An entry whose run was killed before the answer named the task has noted
which tasks there were before: its own is the only later one whose log says the same.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.create_once import ObjectExistsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.provider.journal import Entry
    from stackyard.provider.kinds import Work

__all__ = [
    "await_tasks",
    "ended_well",
    "is_of_task",
    "later_tasks",
    "later_tasks_about",
    "latest_tasks",
    "refuse_file",
    "was_written_by",
]

_SINCE, _SEEN = "since", "seen"


async def latest_tasks(work: Work, node: str, kind: str) -> dict[str, Any]:
    """Return what tells the tasks of a node so far from later ones, in the clock of the node."""
    listed = await proxmox.list_tasks(work.client, node, kind=kind)
    since = max((_read_start_time(task) for task in listed), default=0)
    return {
        _SINCE: since,
        _SEEN: sorted(str(one["upid"]) for one in listed if _read_start_time(one) == since),
    }


async def later_tasks(
    work: Work, entry: Entry, *, kind: str, says: Callable[[str], bool]
) -> list[dict[str, Any]]:
    """Return the tasks that may be the one of an entry; more than one where that is unknown.

    Args:
        work: The operation.
        entry: What was about to be written.
        kind: The type of its task.
        says: Tells whether a line of a log is one of that task alone.
    """
    later = await _list_later(work, entry, kind)
    if entry.upid:
        return later
    return [task for task in later if any(map(says, await proxmox.task_log(work.client, str(task["upid"]))))]


async def later_tasks_about(work: Work, entry: Entry, *, kind: str, about: str) -> list[dict[str, Any]]:
    """Return the tasks that may be the one of an entry, by the object that Proxmox names them after."""
    return [
        task for task in await _list_later(work, entry, kind) if entry.upid or str(task.get("id")) == about
    ]


async def _list_later(work: Work, entry: Entry, kind: str) -> list[dict[str, Any]]:
    listed = await proxmox.list_tasks(work.client, entry.node, kind=kind)
    if entry.upid:
        return [task for task in listed if task["upid"] == entry.upid]
    noted = entry.sent or {}
    if _SINCE not in noted:
        # An older version wrote the entry.
        return []
    return [
        task
        for task in listed
        if _read_start_time(task) >= noted[_SINCE] and task["upid"] not in noted[_SEEN]
    ]


async def await_tasks(
    work: Work, entry: Entry, *, kind: str, says: Callable[[str], bool], timeout_s: float
) -> None:
    """Wait until what the run of an entry began has ended, well or not.

    Raises:
        TaskTimeoutError: It did not end in time.
    """
    for task in await later_tasks(work, entry, kind=kind, says=says):
        if not task.get("endtime"):
            with contextlib.suppress(proxmox.TaskFailedError):
                await proxmox.wait_for(work.client, str(task["upid"]), timeout_s=timeout_s)


async def was_written_by(
    work: Work, entry: Entry, file: Mapping[str, Any], *, kind: str, says: Callable[[str], bool]
) -> bool:
    """Return whether a listed file is certainly what the task of an entry wrote."""
    tasks = await later_tasks(work, entry, kind=kind, says=says)
    return len(tasks) == 1 and ended_well(tasks[0]) and is_of_task(file, tasks[0])


def ended_well(task: Mapping[str, Any]) -> bool:
    """Return whether a listed task has ended and did its work."""
    status = str(task.get("status") or "")
    return status == "OK" or status.startswith("WARNINGS")


def is_of_task(file: Mapping[str, Any], task: Mapping[str, Any]) -> bool:
    """Return whether a listed file was last changed while a task ran."""
    return _read_start_time(task) <= int(file.get("ctime") or -1) <= int(task.get("endtime") or 0)


async def refuse_file(work: Work, entry: Entry, identity: str, *, option: str) -> ObjectExistsError:
    """Return the refusal to replace a file that is not known to be ours; the entry says nothing any more.

    Args:
        work: The operation.
        entry: What an interrupted run was about to write.
        identity: `NODE/DATASTORE:CONTENT/NAME`.
        option: The setting that lets the file be replaced.
    """
    await work.session.journal.close(entry)
    return ObjectExistsError(
        f"{identity} exists already. A run that was to write it was interrupted, and nothing shows that "
        "the file is what that run wrote. The file was left as it is.",
        remedy=(
            f"Look whose it is. Import it with the id {identity}, give the new one another name, remove the "
            f"file, or set `{option} = true` to have it replaced."
        ),
    )


def _read_start_time(task: Mapping[str, Any]) -> int:
    return int(task.get("starttime") or 0)
