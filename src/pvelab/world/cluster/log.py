"""The log that all nodes of a cluster share: who logged in, which tasks began and how they ended.

The tasks are known anyway; the rest is in memory, as on Proxmox, where it goes with the last node.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from pvelab.world.access.directory import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pvelab.world.tasks import Tasks

__all__ = ["ClusterLog"]

_MOST_KEPT = 500
_ERR, _INFO = 3, 6


@dataclass(slots=True)
class ClusterLog:
    """Messages of the cluster."""

    _kept: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_MOST_KEPT))
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def add(self, moment: float, node: str, message: str) -> None:
        """Note a message of the daemon that answers calls."""
        entry = {"time": int(moment), "pri": _INFO, "tag": "pvedaemon", "pid": 1000}
        self._kept.append(
            {**entry, "node": node, "user": ROOT, "msg": message, "number": next(self._numbers)}
        )

    def newest_first(self, tasks: Tasks, most: int) -> list[dict[str, Any]]:
        """Return the last messages, those of tasks among them."""
        entries = [*self._kept, *islice(_of_tasks(tasks), 2 * most)]
        ordered = sorted(entries, key=lambda entry: (entry["time"], entry["number"]), reverse=True)[:most]
        rows = []
        for position, entry in enumerate(ordered):
            uid = len(ordered) - position
            row = {key: value for key, value in entry.items() if key != "number"}
            rows.append({"uid": uid, **row, "id": f"{uid}:{entry['node']}"})
        return rows


def _of_tasks(tasks: Tasks) -> Iterator[dict[str, Any]]:
    for task in tasks.newest_first():
        user = f"{task['user']}!{task['tokenid']}" if "tokenid" in task else task["user"]
        entry = {"tag": "pvedaemon", "pid": task["pid"], "node": task["node"], "user": user}
        status = task.get("status")
        if status:
            good = status == "OK" or status.startswith("WARNINGS")
            text = f"end task {task['upid']} {status}"
            pri = _INFO if good else _ERR
            yield {**entry, "time": task["endtime"], "pri": pri, "msg": text, "number": task["pid"] + 0.5}
        text = f"starting task {task['upid']}"
        yield {**entry, "time": task["starttime"], "pri": _INFO, "msg": text, "number": task["pid"]}
