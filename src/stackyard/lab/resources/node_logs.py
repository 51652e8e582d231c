"""The journal of a node: `/nodes/{node}/syslog` and `/nodes/{node}/journal`.

It tells what a node of the lab really did: its start, and its tasks as the daemons log them.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.lab.routing import route

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.lab.call import Call
    from stackyard.lab.world import World

__all__ = ["node_entries", "read_journal", "read_syslog"]

_DEFAULT_LIMIT = 50
_BOOT = (
    ("kernel", "Linux version 6.17.2-1-pve"),
    ("systemd", "Started pve-cluster.service - The Proxmox VE cluster filesystem."),
    ("systemd", "Started pvedaemon.service - PVE API Daemon."),
    ("systemd", "Started pveproxy.service - PVE API Proxy Server."),
)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class _Entry:
    time: int
    unit: str
    text: str

    def printed(self, node: str) -> str:
        when = datetime.datetime.fromtimestamp(self.time, datetime.UTC).strftime("%b %d %H:%M:%S")
        return f"{when} {node} {self.unit}: {self.text}"


def node_entries(world: World, node: str) -> list[_Entry]:
    """Return the journal of a node, the oldest entry first."""
    return sorted(_entries(world, node), key=lambda entry: entry.time)


def _entries(world: World, node: str) -> Iterator[_Entry]:
    started = int(world.cluster.nodes()[node]["started"])
    for unit, text in _BOOT:
        yield _Entry(time=started, unit=unit, text=text)
    for task in world.tasks.newest_first():
        if task["node"] != node:
            continue
        unit = f"pvedaemon[{task['pid']}]"
        user = f"{task['user']}!{task['tokenid']}" if "tokenid" in task else task["user"]
        upid = task["upid"]
        yield _Entry(time=int(task["starttime"]), unit=unit, text=f"<{user}> starting task {upid}")
        if task.get("status"):
            ended = int(task.get("endtime", task["starttime"]))
            yield _Entry(time=ended, unit=unit, text=f"<{user}> end task {upid} {task['status']}")


@route("GET /nodes/{node}/syslog")
def read_syslog(call: Call) -> Any:
    """Answer a page of the journal as numbered lines."""
    params, node = call.params, call.node
    since, until = _seconds(params.get("since")), _seconds(params.get("until"))
    service = params.get("service")
    lines = [
        entry.printed(node)
        for entry in node_entries(call.world, node)
        if (since is None or entry.time >= since)
        and (until is None or entry.time <= until)
        and (service is None or entry.unit.partition("[")[0] == service.removesuffix(".service"))
    ]
    first, count = int(params.get("start", 0)), int(params.get("limit", _DEFAULT_LIMIT)) or len(lines)
    call.total = len(lines)
    page = lines[first : first + count]
    return [{"n": number, "t": text} for number, text in enumerate(page, start=first + 1)]


@route("GET /nodes/{node}/journal")
def read_journal(call: Call) -> Any:
    """Answer the journal as lines between two cursors."""
    params, node = call.params, call.node
    entries = [
        entry
        for entry in node_entries(call.world, node)
        if params.get("since", 0) <= entry.time <= params.get("until", entry.time)
    ]
    numbered = list(enumerate(entries))
    if "startcursor" in params:
        numbered = [pair for pair in numbered if pair[0] > _cursor(params["startcursor"])]
    if "endcursor" in params:
        numbered = [pair for pair in numbered if pair[0] < _cursor(params["endcursor"])]
    if params.get("lastentries"):
        numbered = numbered[-params["lastentries"] :]
    ends = [_named(numbered[0][0]), _named(numbered[-1][0])] if numbered else ["", ""]
    return [ends[0], *(entry.printed(node) for _, entry in numbered), ends[1]]


def _named(number: int) -> str:
    return f"s=lab;i={number:x}"


def _cursor(text: str) -> int:
    _, _, digits = str(text).rpartition("i=")
    try:
        return int(digits, 16)
    except ValueError:
        return -1


def _seconds(text: str | None) -> int | None:
    if text is None:
        return None
    for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"):
        try:
            return int(datetime.datetime.strptime(f"{text}+0000", f"{form}%z").timestamp())
        except ValueError:
            continue
    return None
