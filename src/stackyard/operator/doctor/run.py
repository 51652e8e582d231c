"""Running every check at once."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import InvalidInputError, StackyardError
from stackyard.operator.doctor.installed import look_at_programs, look_at_python, look_at_stackyard
from stackyard.operator.doctor.model import DoctorReport, DoctorRow, RowStatus
from stackyard.operator.doctor.reachable import describe_problem, look_at_host, look_at_store
from stackyard.sources.site import ConfigResolver
from stackyard.sources.site.discovery import SiteNotFoundError
from stackyard.sources.site.load import Site

if TYPE_CHECKING:
    from stackyard.base.redaction import Redactor

__all__ = ["examine"]

# A large site has hundreds of hosts, and this machine only so many ports.
_AT_ONCE = 32


async def examine(
    said: str | None = None, *, timeout_s: float = 10.0, emit: events.Emit = events.ignore
) -> DoctorReport:
    """Look at everything.

    Args:
        said: The folder of the site; found from the current one when absent.
        timeout_s: How long each check may take.
        emit: Told that it is being looked.

    Raises:
        SiteNotFoundError: A site was named, and is not there.
    """
    site = _find_site(said)
    with events.step(emit, "doctor", "Look at what is installed and reachable"):
        async with asyncio.TaskGroup() as group:
            programs = group.create_task(look_at_programs(timeout_s))
            rest = group.create_task(_look_at_site(site, timeout_s))
    rows = [*look_at_stackyard(), look_at_python(), *programs.result(), *rest.result()]
    return DoctorReport(rows=tuple(rows))


def _find_site(said: str | None) -> Site | None:
    try:
        return Site.open(said)
    except SiteNotFoundError:
        if said is not None:
            raise
        return None


async def _look_at_site(site: Site | None, timeout_s: float) -> list[DoctorRow]:
    if site is None:
        remedy = "For your own Proxmox: stackyard connect https://HOST:8006; for a lab: stackyard init DIR."
        return [DoctorRow(area="site", name="site", seen="none here or in a folder above", remedy=remedy)]
    redact = site.redactor()
    try:
        resolver = ConfigResolver(site)
    except InvalidInputError:
        # Without site.yaml and the secrets nothing is known of the hosts.
        return _redacted([_broken(site), await _look_at_store(site, timeout_s)], redact)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def ask(name: str) -> DoctorRow:
        async with gate:
            return await look_at_host(resolver, name, timeout_s)

    async with asyncio.TaskGroup() as group:
        store = group.create_task(_look_at_store(site, timeout_s))
        hosts_asked = [group.create_task(ask(name)) for name in resolver.list_nodes()]
    whole = _broken(site) if site.found.errors else DoctorRow(area="site", name="site", seen=str(site.root))
    return _redacted([whole, store.result(), *(task.result() for task in hosts_asked)], redact)


async def _look_at_store(site: Site, timeout_s: float) -> DoctorRow:
    try:
        store = site.store
    except StackyardError as err:
        return describe_problem("store", "store", err)
    return await look_at_store(store, timeout_s)


def _broken(site: Site) -> DoctorRow:
    count = len(site.found.errors)
    return DoctorRow(
        area="site",
        name="site",
        seen=f"{site.root}: {count} mistake{'' if count == 1 else 's'} in its files",
        status=RowStatus.PROBLEM,
        remedy="List them: stackyard site validate",
    )


def _redacted(rows: list[DoctorRow], redact: Redactor) -> list[DoctorRow]:
    return [dataclasses.replace(row, seen=redact(row.seen), remedy=redact(row.remedy)) for row in rows]
