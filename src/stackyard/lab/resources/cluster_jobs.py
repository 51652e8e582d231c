"""Jobs of the whole cluster: when a schedule falls due, and taking users over from directories by schedule.

Documents: `realm_sync_jobs/<id>` with the options of a job, `realm_sync_state/<id>` with the time at which it
last ran.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from stackyard.lab.access.directory import ROOT
from stackyard.lab.calendar_events import parse_calendar_event
from stackyard.lab.params.texts import split_list
from stackyard.lab.problems import PveError, bad_parameter
from stackyard.lab.resources.access.realms import unreachable
from stackyard.lab.routing import route
from stackyard.lab.sections import Kind, SectionFile

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from stackyard.lab.call import Call
    from stackyard.lab.store import Document
    from stackyard.lab.tasks import Task, WorkFunction
    from stackyard.lab.world import World

__all__ = [
    "RealmSyncPlan",
    "analyze_schedule",
    "create_job",
    "delete_job",
    "list_jobs",
    "list_kinds",
    "read_job",
    "update_job",
]

JOBS, STATE = "realm_sync_jobs", "realm_sync_state"

_LOCK = "file-jobs_cfg"
_KIND = Kind(
    name="realm-sync",
    required=frozenset(("schedule", "scope", "realm")),
    optional=frozenset(("enabled", "comment", "remove-vanished", "enable-new")),
    fixed=frozenset(("realm",)),
)
_ITERATIONS = 10


@route("GET /cluster/jobs")
def list_kinds(_call: Call) -> Any:
    """List the kinds of jobs."""
    return [{"subdir": "schedule-analyze"}, {"subdir": "realm-sync"}]


@route("GET /cluster/jobs/schedule-analyze")
def analyze_schedule(call: Call) -> Any:
    """Answer the next times of a schedule."""
    moment = int(call.params.get("starttime", call.now()))
    event = parse_calendar_event(call.params["schedule"])
    rows: list[dict[str, Any]] = []
    for _ in range(int(call.params.get("iterations", _ITERATIONS))):
        following = event.next_after(moment)
        if following is None:
            break
        text = time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(following))
        rows.append({"timestamp": following, "utc": text})
        moment = following
    return rows


@route("GET /cluster/jobs/realm-sync")
def list_jobs(call: Call) -> Any:
    """List the jobs with when they ran and will run."""
    rows = []
    for ident, job in call.store.items(JOBS).items():
        last = (call.store.get(STATE, ident) or {}).get("time")
        following = parse_calendar_event(str(job["schedule"])).next_after(last or call.now())
        row = {**job, "id": ident}
        row |= {} if last is None else {"last-run": last}
        rows.append(row if following is None else {**row, "next-run": following})
    return rows


@route("GET /cluster/jobs/realm-sync/{id}")
def read_job(call: Call) -> Any:
    """Answer one job."""
    return dict(_require(call))


@route("POST /cluster/jobs/realm-sync/{id}")
def create_job(call: Call) -> Any:
    """Add a job for a realm that is a directory."""
    ident = str(call.params["id"])
    given = {key: value for key, value in call.params.items() if key != "id"}
    with call.world.cluster.locked(_LOCK):
        if call.store.get(JOBS, ident) is not None or call.store.get("backup_jobs", ident) is not None:
            raise PveError(f"Job '{ident}' already exists")
        settings = _KIND.checked(given, create=True)
        realm = call.store.get("realms", str(settings["realm"]))
        if realm is None:
            raise bad_parameter("realm", f"No such realm '{settings['realm']}'")
        if realm["type"] not in ("ldap", "ad"):
            raise bad_parameter("realm", "Only LDAP/AD realms can be synced.")
        SectionFile(call.store, JOBS).put(ident, settings)
        # The first run is at its time, not at once.
        call.store.put(STATE, ident, {"since": call.now()})


@route("PUT /cluster/jobs/realm-sync/{id}")
def update_job(call: Call) -> Any:
    """Change a job."""
    ident, dropped = str(call.params["id"]), split_list(call.params.get("delete", ""))
    given = {key: value for key, value in call.params.items() if key not in ("id", "delete")}
    if not given:
        raise PveError("no job options specified")
    with call.world.cluster.locked(_LOCK):
        settings = _KIND.checked(given, create=False)
        old = call.store.get(JOBS, ident)
        if old is None:
            raise PveError("no such realm-sync job")
        call.check(f"/access/realm/{old['realm']}", "Realm.AllocateUser")
        kept = _KIND.without(old, dropped, settings)
        SectionFile(call.store, JOBS).put(ident, {**kept, **settings})


@route("DELETE /cluster/jobs/realm-sync/{id}")
def delete_job(call: Call) -> Any:
    """Remove a job."""
    _require(call)
    with call.world.cluster.locked(_LOCK):
        call.store.delete(JOBS, str(call.params["id"]))
        call.store.delete(STATE, str(call.params["id"]))


class RealmSyncPlan:
    """The jobs that take users over from directories."""

    collections = (JOBS, STATE)

    def __init__(self, world: World) -> None:
        self._world = world

    def next_due(self) -> float | None:
        """Return when the next job is due."""
        moments = [self._due(ident, job) for ident, job in self._world.store.items(JOBS).items()]
        return min((moment for moment in moments if moment is not None), default=None)

    def begin(self, now: float) -> Sequence[Coroutine[Any, Any, None]]:
        """Start the tasks of the jobs that are due."""
        world = self._world
        for ident, job in list(world.store.items(JOBS).items()):
            due = self._due(ident, job)
            if due is None or due > now:
                continue
            world.store.put(STATE, ident, {"since": int(now), "time": int(now)})
            work = _syncing(world, str(job["realm"]))
            node = world.cluster.local()
            world.tasks.start(node, "auth-realm-sync", str(job["realm"]), authid=ROOT, work=work)
        return ()

    def _due(self, ident: str, job: Document) -> float | None:
        if not job.get("enabled", 1) or not self._world.cluster.is_quorate:
            return None
        since = (self._world.store.get(STATE, ident) or {}).get("since", self._world.clock.now())
        return parse_calendar_event(str(job["schedule"])).next_after(int(since))


def _syncing(world: World, realm: str) -> WorkFunction:
    async def work(task: Task) -> None:
        task.log(f"starting sync for realm {realm}")
        config = world.store.get("realms", realm)
        raise PveError(f"Realm '{realm}' does not exist.") if config is None else unreachable(config)

    return work


def _require(call: Call) -> Document:
    job = call.store.get(JOBS, str(call.params["id"]))
    if job is None:
        raise bad_parameter("id", f"No such job '{call.params['id']}'")
    return job
