"""Backup jobs: `/cluster/backup`. They run by their schedules, see `vzdump.scheduled`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.params import properties
from pvelab.server.params.property_formats import PROPERTY_FORMATS
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.calendar_events import CalendarEventError, parse_calendar_event
from pvelab.world.cluster.jobs import BACKUP
from pvelab.world.generate import new_uuid
from pvelab.world.sections import Kind, SectionFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Store

__all__ = ["check_parameters_allowed", "create_job", "delete_job", "list_jobs", "read_job", "update_job"]

_LOCK = "file-jobs_cfg"
_ALL_DAYS = "mon,tue,wed,thu,fri,sat,sun"
_TEXTS = {
    "fleecing": "backup-fleecing",
    "performance": "backup-performance",
    "prune-backups": "prune-backups",
}
_KIND = Kind(
    name="vzdump",
    required=frozenset(("schedule",)),
    optional=frozenset(
        (
            *("all", "bwlimit", "comment", "compress", "dumpdir", "enabled", "exclude", "exclude-path"),
            *("fleecing", "ionice", "lockwait", "mailnotification", "mailto", "mode", "node"),
            *("notes-template", "notification-mode", "pbs-change-detection-mode", "performance", "pigz"),
            *("pool", "protected", "prune-backups", "quiet", "remove", "repeat-missed", "script"),
            *("stdexcludes", "stop", "stopwait", "storage", "tmpdir", "vmid", "zstd"),
        )
    ),
)
_ROOT_ONLY = ("tmpdir", "dumpdir", "script", "job-id")


@route("GET /cluster/backup")
def list_jobs(call: Call) -> Any:
    """List the jobs."""
    return [{**job, "id": ident, **_next_run(call, job)} for ident, job in _file(call.store).all().items()]


def _next_run(call: Call, job: Mapping[str, Any]) -> dict[str, int]:
    """Return when a job would run next; Proxmox says it of one that is not enabled too."""
    try:
        found = parse_calendar_event(str(job.get("schedule", ""))).next_after(call.now())
    except CalendarEventError:
        return {}
    return {} if found is None else {"next-run": found}


@route("GET /cluster/backup/{id}")
def read_job(call: Call) -> Any:
    """Read one job."""
    ident = call.params["id"]
    found = _file(call.store).get(ident)
    if found is None:
        raise bad_parameter("id", f"No such job '{ident}'")
    return {**found, "id": ident}


@route("POST /cluster/backup")
def create_job(call: Call) -> Any:
    """Add a job."""
    given = _settings(call)
    _check_access(call, given)
    call.check(f"/storage/{given.get('storage', 'local')}", "Datastore.Allocate")
    _set_schedule(call, given, required=True)
    ident = call.params.get("id") or new_uuid()
    with call.world.cluster.lock_file(_LOCK):
        if _file(call.store).get(ident) is not None:
            raise PveError(f"Job '{ident}' already exists")
        section = _KIND.validate({"enabled": 1, **_verify_settings(given, complete=True)}, create=True)
        _file(call.store).put(ident, section)


@route("PUT /cluster/backup/{id}")
def update_job(call: Call) -> Any:
    """Change a job; a choice of guests takes the place of another."""
    ident, given = call.params["id"], _settings(call)
    removed = split_list(call.params.get("delete", ""))
    _check_access(call, {**given, **{key: "" for key in removed if key in _ROOT_ONLY}})
    if "storage" in given or "storage" in removed:
        call.check(f"/storage/{given.get('storage', 'local')}", "Datastore.Allocate")
    _set_schedule(call, given, required=False)
    with call.world.cluster.lock_file(_LOCK):
        if not given and not removed:
            raise PveError("no options specified")
        changes = _verify_settings(given, complete=False)
        old = _file(call.store).get(ident)
        if old is None:
            raise PveError("no such vzdump job")
        _check_old(call, old)
        for key in removed:
            if key not in _KIND.optional:
                raise bad_parameter("delete", f"unknown option '{key}'")
        job = {key: value for key, value in old.items() if key not in removed} | changes
        _file(call.store).put(ident, _verify_settings(_with_one_choice(job, changes), complete=True))


@route("DELETE /cluster/backup/{id}")
def delete_job(call: Call) -> Any:
    """Remove a job."""
    ident = call.params["id"]
    with call.world.cluster.lock_file(_LOCK):
        if _file(call.store).get(ident) is None:
            raise bad_parameter("id", f"No such job '{ident}'")
        _file(call.store).remove(ident)


def _file(store: Store) -> SectionFile:
    return SectionFile(store, BACKUP)


def _settings(call: Call) -> dict[str, Any]:
    return {key: value for key, value in call.params.items() if key not in ("id", "delete")}


def check_parameters_allowed(call: Call, given: Mapping[str, Any]) -> None:
    """Refuse options of a backup that the caller may not set.

    Raises:
        PveError: 400 for options that root alone may set, 403 for want of a privilege.
    """
    if call.is_root:
        return
    for key in _ROOT_ONLY:
        if key in given:
            raise bad_parameter(key, "Only root may set this option.")
    if any(key in given for key in ("bwlimit", "ionice", "performance")):
        call.check("/", "Sys.Modify")
    fleecing = properties.parse(PROPERTY_FORMATS["backup-fleecing"], str(given.get("fleecing", "")))
    if fleecing.get("storage"):
        call.check(f"/storage/{fleecing['storage']}", "Datastore.AllocateSpace")


def _check_access(call: Call, given: Mapping[str, Any]) -> None:
    check_parameters_allowed(call, given)
    if given.get("pool") and not call.is_root:
        call.world.pools.require(given["pool"])
        call.check(f"/pool/{given['pool']}", "VM.Backup")


def _check_old(call: Call, job: Mapping[str, Any]) -> None:
    if call.is_root:
        return
    if job.get("dumpdir"):
        raise PveError("only root@pam may edit jobs with a 'dumpdir' option.")
    call.check(f"/storage/{job.get('storage', 'local')}", "Datastore.Allocate")


def _set_schedule(call: Call, given: dict[str, Any], *, required: bool) -> None:
    """Turn the start time and days of old clients into a schedule."""
    start, days = given.pop("starttime", None), given.pop("dow", None)
    if "schedule" in given:
        if start is not None:
            raise bad_parameter("starttime", "'starttime' and 'schedule' cannot both be set")
    elif start is not None:
        listed = ",".join(split_list(days or _ALL_DAYS))
        given["schedule"] = start if listed == _ALL_DAYS else f"{listed} {start}"
    elif required:
        raise bad_parameter("schedule", "neither 'starttime' nor 'schedule' were set")


def _verify_settings(given: Mapping[str, Any], *, complete: bool) -> dict[str, Any]:
    """Return settings as the file keeps them, texts of several values taken apart."""
    for key in ("all", "exclude", "pool"):
        if given.get(key) and given.get("vmid"):
            raise bad_parameter(key, "option conflicts with option 'vmid'")
    job = dict(given)
    for key, name in _TEXTS.items():
        if isinstance(job.get(key), str):
            job[key] = properties.parse(PROPERTY_FORMATS[name], job[key])
    if "exclude" in job and not job.get("pool"):
        job["all"] = 1
    if complete and not any(job.get(key) for key in ("all", "stop", "pool", "vmid")):
        raise bad_parameter("vmid", "property is missing")
    return job


def _with_one_choice(job: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    gone: tuple[str, ...] = ()
    if "vmid" in changes:
        gone = ("all", "exclude", "pool")
    elif changes.get("all"):
        gone = ("vmid", "pool")
    elif job.get("pool"):
        gone = ("vmid", "all", "exclude")
    return {key: value for key, value in job.items() if key not in gone}
