"""Tasks: `/nodes/{node}/tasks` and `/cluster/tasks`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.upid import parse_upid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pvelab.server.call import Call

__all__ = ["index_task", "list_cluster_tasks", "list_tasks", "read_log", "read_task", "stop_task"]

_CLUSTER_LIST = 25
_STATES = frozenset(("ok", "warning", "error", "unknown"))


@route("GET /cluster/tasks")
def list_cluster_tasks(call: Call) -> Any:
    """List the latest tasks of every node."""
    auditor = call.may("/", "Sys.Audit")
    rows: dict[str, list[dict[str, Any]]] = {}
    for task in call.world.tasks.newest_first():
        of_node = rows.setdefault(str(task["node"]), [])
        if len(of_node) < _CLUSTER_LIST and (auditor or _is_own(call, task)):
            of_node.append({**_row(task), "saved": "1" if task.get("status") else "0"})
    return [row for of_node in rows.values() for row in of_node]


@route("GET /nodes/{node}/tasks")
def list_tasks(call: Call) -> Any:
    """List the finished, running or all tasks of a node, the newest first."""
    params = call.params
    start, limit = params.get("start", 0), params.get("limit", 50)
    fits = _filter(call)
    rows: list[dict[str, Any]] = []
    count = 0
    for task in call.world.tasks.newest_first():
        if not fits(task):
            continue
        if start <= count < start + limit:
            rows.append({**_row(task), "status": task.get("status", "RUNNING")})
        count += 1
    call.total = count
    return rows


@route("GET /nodes/{node}/tasks/{upid}")
def index_task(_call: Call) -> Any:
    """List what there is of a task."""
    return [{"name": "log"}, {"name": "status"}]


@route("GET /nodes/{node}/tasks/{upid}/status")
def read_task(call: Call) -> Any:
    """Answer whether a task runs, and how it ended."""
    task = _require(call, "Sys.Audit")
    row = {key: value for key, value in _row(task).items() if key not in ("status", "endtime")}
    if call.world.tasks.is_running(str(task["upid"])):
        return {**row, "status": "running"}
    return {**row, "status": "stopped", "exitstatus": task.get("status", "unexpected status")}


@route("GET /nodes/{node}/tasks/{upid}/log")
def read_log(call: Call) -> Any:
    """Answer lines of a task's log."""
    task = _require(call, "Sys.Audit")
    if call.params.get("download"):
        raise PveError("download of task logs is not implemented in the lab", status=501)
    lines = call.world.tasks.lines(str(task["upid"]))
    start, limit = call.params.get("start", 0), call.params.get("limit", 50)
    call.total = len(lines)
    chosen = lines[start : start + limit] if limit else lines[start:]
    if not lines:
        return [{"n": 1, "t": "no content"}]
    return [{"n": number, "t": text} for number, text in enumerate(chosen, start=start + 1)]


@route("DELETE /nodes/{node}/tasks/{upid}")
async def stop_task(call: Call) -> Any:
    """Interrupt a task and wait for its end."""
    task = _require(call, "Sys.Modify")
    call.world.tasks.stop(str(task["upid"]))
    await call.world.tasks.wait(str(task["upid"]))
    return None


def _require(call: Call, privilege: str) -> Mapping[str, Any]:
    upid = parse_upid(call.params["upid"])
    if upid is None:
        raise bad_parameter("upid", "unable to parse worker upid")
    task = call.world.tasks.get(call.params["upid"])
    if task is None or task["node"] != call.node:
        raise bad_parameter("upid", "no such task")
    if not _is_own(call, task):
        call.check(f"/nodes/{call.node}", privilege)
    return task


def _is_own(call: Call, task: Mapping[str, Any]) -> bool:
    """Return whether the caller started a task: a user sees what its tokens did, a token only its own."""
    user = str(task["user"])
    if "tokenid" in task:
        return call.authid in (user, f"{user}!{task['tokenid']}")
    return call.authid == user


def _row(task: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in task.items() if key != "log"}


def _filter(call: Call) -> Callable[[Mapping[str, Any]], bool]:
    params = call.params
    auditor = call.may(f"/nodes/{call.node}", "Sys.Audit")
    source = params.get("source", "archive")
    states = _STATES
    if params.get("errors"):
        states = _STATES - {"ok"}
    elif "statusfilter" in params:
        states = frozenset(state.lower() for state in split_list(params["statusfilter"]))

    def fits(task: Mapping[str, Any]) -> bool:
        return (
            task["node"] == call.node
            and (source == "all" or (source == "active") == ("status" not in task))
            and (auditor or _is_own(call, task))
            and params.get("userfilter", "").lower() in str(task["user"]).lower()
            and params.get("typefilter", task["type"]) == task["type"]
            and str(params.get("vmid", task["id"])) == task["id"]
            and params.get("since", 0) <= task["starttime"] <= params.get("until", task["starttime"])
            and _state(task.get("status")) in states
        )

    return fits


def _state(status: str | None) -> str:
    if status == "OK":
        return "ok"
    if not status or status == "unexpected status":
        return "unknown"
    return "warning" if status.startswith("WARNINGS: ") else "error"
