"""Jobs: schedules that run at some time, backups that say what is backed up, and time zones."""

from __future__ import annotations

import functools
import re
import time
import zoneinfo
from typing import TYPE_CHECKING

from stackyard.base.calendar_events import CalendarEventError, parse_calendar_event
from stackyard.base.diagnostics import Kind, Severity
from stackyard.base.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.hypervisor.files import HypervisorFile, SiteFacts

__all__ = ["NEVER_RUNS", "check_jobs"]

NEVER_RUNS = Kind(
    code="E-HYPERVISOR-SCHEDULE",
    summary="A schedule never runs",
    remedy="Write a calendar event as Proxmox takes it: `02:30`, `mon..fri 22:00`, `*/15`, `daily`.",
)
BAD_ZONE = Kind(
    code="W-HYPERVISOR-TIME-ZONE",
    summary="A time zone is not known",
    remedy="Write one of `timedatectl list-timezones` of the node, such as Europe/Vienna. It may "
    "know older names that this machine does not.",
    severity=Severity.WARNING,
)
BAD_SELECTION = Kind(
    code="E-HYPERVISOR-BACKUP",
    summary="It is not clear what is backed up",
    remedy="Write one of `all: true`, `pool: NAME` and `vmid: [ID, ...]`.",
)
_GUEST_ID = re.compile(r"[1-9]\d{2,8}")


def check_jobs(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    """Check the backup jobs and replications of every cluster."""
    del site
    for file in files:
        for entry in file.section("backups", "replications"):
            schedule = entry.values.get("schedule")
            problem = None if schedule is None else _find_problem(schedule)
            if problem is not None:
                detail = f"The schedule '{schedule}' of '{entry.name}' {problem}."
                found.add(NEVER_RUNS, detail, file.place(entry, "schedule"))
        for entry in file.section("time"):
            zone = entry.values.get("time_zone")
            known = _list_time_zones()
            if zone is not None and known and zone not in known:
                detail = f"There is no time zone '{zone}'.{did_you_mean(zone, known)}"
                found.add(BAD_ZONE, detail, file.place(entry, "time_zone"))
        for job in file.section("backups"):
            _check_selection(file, job, found)
            for index, vmid in enumerate(job.values.get("vmid") or ()):
                if not _GUEST_ID.fullmatch(vmid):
                    detail = f"'{vmid}' of '{job.name}' is no id of a guest: they are from 100 to 999999999."
                    found.add(BAD_SELECTION, detail, file.place(job, "vmid", index))


@functools.cache
def _list_time_zones() -> frozenset[str]:
    """Return the time zones that this machine knows; none where it has no list of them."""
    return frozenset(zoneinfo.available_timezones())


def _find_problem(schedule: str) -> str | None:
    try:
        event = parse_calendar_event(schedule)
    except CalendarEventError as err:
        return f"is no calendar event: {err}"
    return "names no time that is still to come" if event.next_after(time.time()) is None else None


def _check_selection(file: HypervisorFile, job: Entry, found: Diagnostics) -> None:
    said = [key for key in ("all", "pool", "vmid") if job.values.get(key)]
    if len(said) != 1 and not file.is_lost(*job.path):
        words = " and ".join(f"`{key}`" for key in said) or "none of `all`, `pool` and `vmid`"
        found.add(BAD_SELECTION, f"The backup job '{job.name}' has {words}.", file.place(job))
