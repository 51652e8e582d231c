"""How guests are protected, held against the site: backup jobs, security groups, names of the firewall.

A guest never writes into an object that a file of `hypervisors/` owns: a job takes its guests by `pool`, and
a guest that names the job is put into that pool.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.calendar_events import parse_calendar_event
from stackyard.base.diagnostics import Kind, Severity
from stackyard.base.suggestions import did_you_mean
from stackyard.desired.firewall_words import name_in
from stackyard.sources.hypervisor.build import list_entries
from stackyard.sources.hypervisor.checks.jobs import NEVER_RUNS
from stackyard.sources.site.guest_rule_order import check_rule_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.desired import Firewall, Guest
    from stackyard.sources.site.document import Key
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.load import Site

__all__ = ["check_firewall", "check_schedules", "join_backups", "node_names"]

NO_JOB = Kind(
    code="E-SITE-BACKUP-JOB",
    summary="A backup job is not there",
    remedy="Correct the name, or write the job under `backups` of a file of hypervisors/.",
)
NOT_TAKEN = Kind(
    code="E-SITE-BACKUP",
    summary="A guest is not in the backups that it asks for",
    remedy="Let the job take a `pool` and name the job here, or let it take `all`.",
)
TAKEN = Kind(
    code="E-SITE-BACKUP-ROOT",
    summary="A container that should have no backups has them",
    remedy="Take it out of the pool of the job, or let the job take a `pool` instead of `all`.",
)
CONTRADICTORY = Kind(
    code="E-SITE-BACKUP-DISK",
    summary="A guest without backups has a disk with them",
    remedy="Remove `backup: false` of the guest, or `backup: true` of its disk.",
)
UNKNOWN_BACKUPS = Kind(
    code="W-SITE-BACKUP-UNKNOWN",
    summary="Nothing says which guests are backed up",
    remedy="Write the jobs under `backups` of a file of hypervisors/; until then this is not checked.",
    severity=Severity.WARNING,
)
JOB_OFF = Kind(
    code="W-SITE-BACKUP-OFF",
    summary="A backup job does not run",
    remedy="Remove `enabled: false` of the job when it should.",
    severity=Severity.WARNING,
)
UNKNOWN_NAME = Kind(
    code="W-SITE-FIREWALL-NAME",
    summary="A rule names something that no file describes",
    remedy="Correct it, or write it under `firewall` of the guest or of a file of hypervisors/.",
    severity=Severity.WARNING,
)
NO_CARD = Kind(
    code="W-SITE-FIREWALL-CARD",
    summary="The firewall of a guest has no effect",
    remedy="Write `firewall: true` to the cards of the guest that should be behind it.",
    severity=Severity.WARNING,
)
# What of a guest says for each disk whether it is backed up.
_DRIVES = ("disks", "mounts")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """A backup job of a cluster's file."""

    name: str
    values: Mapping[str, Any]

    def takes(self, *, pool: str | None, vm_id: int | None, node: str) -> bool:
        """Return whether a guest is in it."""
        if self.values.get("node") not in (None, node):
            return False
        if self.values.get("all"):
            return True
        listed = [str(one) for one in self.values.get("vmid") or ()]
        return str(vm_id) in listed or (pool is not None and self.values.get("pool") == pool)

    @property
    def selection(self) -> str:
        """Which guests it takes, in words."""
        if self.values.get("all"):
            words = "all guests"
        elif self.values.get("pool"):
            words = f"the pool {self.values['pool']}"
        else:
            words = f"the ids {', '.join(map(str, self.values.get('vmid') or ())) or 'of nobody'}"
        return f"{words} of {self.values['node']}" if self.values.get("node") else words


def _list_jobs(site: Site) -> tuple[_Job, ...]:
    return tuple(
        _Job(name=entry.name, values=entry.values)
        for loaded in site.hypervisors.values()
        for entry in list_entries(loaded.model)
        if entry.section.name == "backups"
    )


def join_backups(site: Site, guest: GuestEntry, fields: dict[str, Any], found: Diagnostics) -> None:
    """Do what a guest says of its backups to its fields: its pool, or its disks.

    Args:
        site: The site, whose files of `hypervisors/` have the jobs.
        guest: The guest as it is written.
        fields: Its fields as they are built.
        found: Takes the findings.
    """
    said = guest.values.get("backup")
    if said is None:
        return
    jobs = _list_jobs(site)
    if said is False:
        _leave_out(guest, fields, jobs, found)
        return
    if said is not True:
        _join_named(site, guest, fields, found)
        return
    where = guest.place(("backup",))
    if not jobs:
        found.add(UNKNOWN_BACKUPS, f"'{guest.name}' has to be backed up, and no file has a job.", where)
    elif not any(_is_taken(job, fields) for job in jobs):
        text = "; ".join(f"{job.name} takes {job.selection}" for job in jobs)
        found.add(NOT_TAKEN, f"No backup job takes '{guest.name}': {text}.", where)


def _is_taken(job: _Job, fields: Mapping[str, Any]) -> bool:
    return job.takes(pool=fields.get("pool"), vm_id=fields.get("vm_id"), node=fields["node"])


def _leave_out(guest: GuestEntry, fields: dict[str, Any], jobs: Sequence[_Job], found: Diagnostics) -> None:
    for drives in _DRIVES:
        for place, drive in enumerate(fields.get(drives) or ()):
            if drive.get("backup"):
                detail = f"'{guest.name}' has `backup: false`, and its disk has `backup: true`."
                found.add(CONTRADICTORY, detail, guest.place((drives, place, "backup")))
            drive["backup"] = False
    if not guest.is_container:
        return
    for job in jobs:
        if _is_taken(job, fields):
            # Proxmox has nothing to leave the root disk of a container out with.
            detail = f"The job {job.name} takes {job.selection}, and so the root disk of '{guest.name}'."
            found.add(TAKEN, detail, guest.place(("backup",)))


def _join_named(site: Site, guest: GuestEntry, fields: dict[str, Any], found: Diagnostics) -> None:
    said, jobs = guest.values["backup"], _list_jobs(site)
    names: list[tuple[str, tuple[Key, ...]]] = [(said, ("backup",))] if isinstance(said, str) else []
    names = names or [(name, ("backup", place)) for place, name in enumerate(said)]
    for name, path in names:
        named = [job for job in jobs if job.name == name]
        where = guest.place(path)
        if not named:
            hint = did_you_mean(name, {job.name for job in jobs})
            if site.broken["hypervisors"]:
                hint = f" {', '.join(sorted(site.broken['hypervisors']))} there cannot be read."
            found.add(NO_JOB, f"There is no backup job '{name}' in hypervisors/.{hint}", where)
            continue
        pools = {job.values.get("pool") for job in named} - {None}
        if fields.get("pool") is None and len(pools) == 1:
            fields["pool"] = pools.pop()
        taking = next((job for job in named if _is_taken(job, fields)), None)
        if taking is None:
            detail = f"The job {name} takes {named[0].selection}, and not '{guest.name}'"
            found.add(NOT_TAKEN, f"{detail}{_describe_pool(fields)}.", where)
        elif taking.values.get("enabled") is False:
            found.add(JOB_OFF, f"The job {name} of '{guest.name}' is off.", where)


def _describe_pool(fields: Mapping[str, Any]) -> str:
    """Say why a guest is in no other pool."""
    return f", which is in the pool {fields['pool']}" if fields.get("pool") else ""


def node_names(site: Site, replication: Any) -> Any:
    """Return replications with the nodes that are named by their files as Proxmox calls them."""
    if isinstance(replication, list):
        return [node_names(site, job) for job in replication]
    if isinstance(replication, dict):
        return {**replication, "target": node_names(site, replication.get("target"))}
    node = site.nodes.get(replication) if isinstance(replication, str) else None
    return replication if node is None else (node.model.node or node.name)


def check_firewall(site: Site, entry: GuestEntry, guest: Guest, found: Diagnostics) -> None:
    """Report a firewall that has no effect, and names in it that nothing describes.

    Args:
        site: The site.
        entry: The guest as it is written.
        guest: The guest as it is built.
        found: Takes the findings.
    """
    firewall = guest.firewall
    if firewall is None:
        return
    if firewall.options.enabled and not any(nic.firewall for nic in guest.nics):
        detail = f"No card of '{guest.name}' has `firewall: true`."
        found.add(NO_CARD, detail, entry.place(("firewall",)))
    check_rule_order(site, entry, firewall, found)
    known: dict[str, set[str]] | None = None
    for what, name, path in _list_names(firewall):
        known = known or _list_known(site, firewall)
        if name.lower() not in known[what]:
            hint = did_you_mean(name, known[what])
            detail = f"No file describes the {_WORDS[what]} '{name}' of a rule of '{guest.name}'.{hint}"
            # A set may be written as its list alone.
            short = tuple(key for key in path if key != "entries")
            found.add(UNKNOWN_NAME, detail, entry.place(("firewall", *path), ("firewall", *short)))


def check_schedules(entry: GuestEntry, guest: Guest, found: Diagnostics) -> None:
    """Report replications whose time is over."""
    for place, job in enumerate(guest.replication):
        if parse_calendar_event(job.schedule).next_after(time.time()) is None:
            detail = f"The schedule '{job.schedule}' of '{guest.name}' names no time that is still to come."
            paths = (("replication", place, "schedule"), ("replication", "schedule"), ("replication",))
            found.add(NEVER_RUNS, detail, entry.place(*paths))


_WORDS = {"aliases": "alias", "ipsets": "IP set", "groups": "security group"}


def _list_names(firewall: Firewall) -> Iterator[tuple[str, str, tuple[Key, ...]]]:
    """Return what the rules and sets name: the kind, the name and the place; the guest's own by its word."""
    for place, rule in enumerate(firewall.rules):
        if rule.security_group is not None:
            yield "groups", rule.security_group, ("rules", place, "security_group")
        for field in ("source", "dest"):
            named = name_in(getattr(rule, field) or "")
            # Those of the guest are checked with the model, and those of the SDN make themselves.
            if named is not None and named.scope in ("", "dc"):
                yield "ipsets" if named.is_set else "aliases", named.name, ("rules", place, field)
    for name, ipset in firewall.ipsets.items():
        for place, entry in enumerate(ipset.entries):
            named = name_in(entry.name)
            if named is not None and named.scope in ("", "dc"):
                yield "aliases", named.name, ("ipsets", name, "entries", place)


def _list_known(site: Site, firewall: Firewall) -> dict[str, set[str]]:
    known: dict[str, set[str]] = {
        "aliases": {name.lower() for name in firewall.aliases},
        "ipsets": set(firewall.ipsets),
        "groups": set(),
    }
    for loaded in site.hypervisors.values():
        for entry in list_entries(loaded.model):
            first, _, kind = entry.section.name.partition(".")
            if first == "firewall" and kind in known:
                known[kind].add(entry.name.lower())
    return known
