"""Backup jobs run by their schedules, on every node that has guests of theirs.

Documents: `backup_runs/<id>` with `last`, when a job was last begun; a job that never was begins at the first
time of its schedule after it came or changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.vzdump.job import BackupJob
from pvelab.api.nodes.vzdump.start import command_line
from pvelab.world.access.directory import ROOT
from pvelab.world.cluster.jobs import BACKUP
from pvelab.world.guests.backup_scope import list_included_guests
from stackyard.base.calendar_events import CalendarEventError, parse_calendar_event

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["RUNS", "BackupPlan"]

RUNS = "backup_runs"


class BackupPlan:
    """The backup jobs of the cluster.

    Args:
        world: The lab.
    """

    collections = (BACKUP, "nodes")

    def __init__(self, world: World) -> None:
        self._world = world

    def next_due(self) -> float | None:
        """Return when the next job is due."""
        moments = [moment for ident, job in self._jobs() if (moment := self._next(ident, job)) is not None]
        return min(moments, default=None)

    def begin(self, now: float) -> Sequence[Coroutine[Any, Any, None]]:
        """Begin the jobs that are due, each as a task on every node that has guests of it."""
        store = self._world.store
        known = {ident for ident, _ in self._jobs()}
        for ident in [ident for ident in store.items(RUNS) if ident not in known]:
            store.delete(RUNS, ident)
        for ident, job in self._jobs():
            run, schedule = store.get(RUNS, ident), str(job.get("schedule", ""))
            if run is None or run["schedule"] != schedule:
                store.put(RUNS, ident, {"last": int(now), "schedule": schedule})
                continue
            due = self._next(ident, job)
            if due is not None and due <= now:
                store.put(RUNS, ident, {"last": int(now), "schedule": schedule})
                self._start(ident, job)
        # All work is that of tasks.
        return []

    def _jobs(self) -> list[tuple[str, Document]]:
        if not self._world.cluster.is_quorate:
            return []
        jobs = self._world.store.items(BACKUP).items()
        return [(ident, job) for ident, job in jobs if job.get("enabled", 1)]

    def _next(self, ident: str, job: Document) -> int | None:
        run = self._world.store.get(RUNS, ident)
        try:
            event = parse_calendar_event(str(job.get("schedule", "")))
        except CalendarEventError:
            return None
        last = self._world.clock.now() if run is None else int(run["last"])
        return event.next_after(last)

    def _start(self, ident: str, job: Document) -> None:
        world, by_node = self._world, list_included_guests(self._world, job)
        gone = by_node.pop("", [])
        for node in sorted(world.cluster.nodes()):
            vmids = by_node.get(node, [])
            if not world.cluster.is_online(node) or job.get("node", node) != node or not (vmids or gone):
                continue
            others = [vmid for other, found in by_node.items() if other != node for vmid in found]
            work = BackupJob(
                world=world,
                node=node,
                # What does not exist any more fails once, not on every node.
                vmids=[*vmids, *gone],
                options={**job, "job-id": ident},
                command=command_line({key: value for key, value in job.items() if key != "schedule"}),
                skipped=others,
            )
            named = str(vmids[0]) if len(vmids) == 1 else ""
            world.tasks.start(node, "vzdump", named, authid=ROOT, work=work.run)
            gone = []
