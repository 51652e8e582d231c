"""How replication jobs are doing on a node: `/nodes/{node}/replication`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.replication.runs import job_state, local_jobs, next_sync
from pvelab.server.problems import PveError, not_permitted
from pvelab.server.routing import route
from pvelab.world.cluster.jobs import REPLICATION, REPLICATION_STATE

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = ["index_job", "list_status", "read_log", "read_status", "schedule_now"]

_SHOWN = ("last_sync", "last_try", "fail_count", "error", "duration", "pid")
_DEFAULT_LIMIT = 50


@route("GET /nodes/{node}/replication")
def list_status(call: Call) -> Any:
    """List the jobs of the guests on a node with how they are doing."""
    wanted = call.params.get("guest")
    return [
        _format_status(call, ident, job)
        for ident, job in local_jobs(call.world, call.node).items()
        if wanted in (None, job["guest"]) and call.may(f"/vms/{job['guest']}", "VM.Audit")
    ]


@route("GET /nodes/{node}/replication/{id}")
def index_job(_call: Call) -> Any:
    """List what there is of a job."""
    return [{"name": name} for name in ("schedule_now", "log", "status")]


@route("GET /nodes/{node}/replication/{id}/status")
def read_status(call: Call) -> Any:
    """Answer how a job is doing."""
    ident = str(call.params["id"])
    job = local_jobs(call.world, call.node).get(ident)
    if job is None:
        raise PveError(f"no such replication job '{ident}'")
    call.check(f"/vms/{job['guest']}", "VM.Audit")
    return _format_status(call, ident, job)


@route("GET /nodes/{node}/replication/{id}/log")
def read_log(call: Call) -> Any:
    """Answer the log of the last run of a job."""
    job = _require(call)
    if not call.may(f"/vms/{job['guest']}", "VM.Audit") and not call.may(f"/nodes/{call.node}", "Sys.Audit"):
        raise not_permitted()
    lines = list((call.store.get(REPLICATION_STATE, call.params["id"]) or {}).get("log", ()))
    start, limit = int(call.params.get("start", 0)), int(call.params.get("limit", _DEFAULT_LIMIT))
    call.total = max(1, len(lines))
    if not lines:
        return [{"n": 1, "t": "no content"}]
    last = len(lines) if limit == 0 else start + limit
    return [{"n": number + 1, "t": lines[number]} for number in range(start, min(last, len(lines)))]


@route("POST /nodes/{node}/replication/{id}/schedule_now")
def schedule_now(call: Call) -> Any:
    """Let a job run as soon as possible."""
    ident = str(call.params["id"])
    call.check(f"/vms/{ident.split('-')[0]}", "VM.Replicate")
    _require(call)
    # A job that has never run is due anyway.
    if call.store.get(REPLICATION_STATE, ident) is not None:
        with call.store.edit(REPLICATION_STATE, ident) as state:
            state["last_try"] = 0


def _require(call: Call) -> Document:
    ident = str(call.params["id"])
    job = call.store.get(REPLICATION, ident)
    if job is None:
        raise PveError(f"no such replication job '{ident}'")
    return job


def _format_status(call: Call, ident: str, job: Document) -> dict[str, Any]:
    state = job_state(call.world, ident)
    guest = call.world.guests.get(job["guest"]) or {}
    return {
        **job,
        "id": ident,
        "jobnum": int(ident.split("-")[1]),
        "vmtype": guest.get("type"),
        "next_sync": next_sync(call.world, ident, job),
        **{key: state[key] for key in _SHOWN if key in state},
    }
