"""Runs of replication jobs: a snapshot of each volume, what changed since the last one goes to the target."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.replication.replicas import replicatable_volumes
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError
from pvelab.world.cluster.jobs import REPLICATION, REPLICATION_STATE
from pvelab.world.storage import images
from stackyard.base.calendar_events import parse_calendar_event

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["ReplicationPlan", "job_state", "local_jobs", "next_sync"]

_DEFAULT_SCHEDULE = "*/15"
_NAMES = {"qemu": "VM", "lxc": "CT"}


def job_state(world: World, ident: str) -> dict[str, Any]:
    """Return how the runs of a job went."""
    fresh: dict[str, Any] = {"last_try": 0, "last_sync": 0, "fail_count": 0}
    return {**fresh, **(world.store.get(REPLICATION_STATE, ident) or {})}


def local_jobs(world: World, node: str, *, disabled: bool = True) -> dict[str, Document]:
    """Return the jobs of the guests on a node: those that it runs."""
    found = {}
    for ident, job in sorted(world.store.items(REPLICATION).items()):
        guest = world.guests.get(job["guest"])
        if guest is None or guest["node"] != node:
            continue
        if not job.get("remove_job") and (job["target"] == node or (job.get("disable") and not disabled)):
            continue
        found[ident] = job
    return found


def next_sync(world: World, ident: str, job: Document) -> int:
    """Return when a job runs next, 0 if never as things are."""
    if job.get("remove_job"):
        return 1
    state = job_state(world, ident)
    failures = int(state["fail_count"])
    if failures:
        if not world.cluster.is_online(str(job["target"])):
            return 0
        return int(state["last_try"]) + 60 * (5 * failures if failures <= 3 else 30)
    event = parse_calendar_event(str(job.get("schedule", _DEFAULT_SCHEDULE)))
    return event.next_after(int(state["last_try"])) or 0


class ReplicationPlan:
    """The replication jobs of all nodes."""

    collections = (REPLICATION, REPLICATION_STATE, "nodes")

    def __init__(self, world: World) -> None:
        self._world = world
        self._running: set[str] = set()

    def next_due(self) -> float | None:
        """Return when the next job is due."""
        moments = [
            moment
            for ident, job in self._jobs().items()
            if ident not in self._running and (moment := next_sync(self._world, ident, job))
        ]
        return min(moments, default=None)

    def begin(self, now: float) -> Sequence[Coroutine[Any, Any, None]]:
        """Begin the runs that are due."""
        due = [
            (ident, job)
            for ident, job in self._jobs().items()
            if ident not in self._running and 0 < next_sync(self._world, ident, job) <= now
        ]
        for ident, _ in due:
            self._running.add(ident)
        return [self._run(ident, job) for ident, job in due]

    def _jobs(self) -> dict[str, Document]:
        if not self._world.cluster.is_quorate:
            return {}
        return {
            ident: job
            for node in self._world.cluster.nodes()
            if self._world.cluster.is_online(node)
            for ident, job in local_jobs(self._world, node, disabled=False).items()
        }

    async def _run(self, ident: str, job: Document) -> None:
        world = self._world
        try:
            run = _Run(world, ident, job)
            with world.store.transaction():
                run.record(pid=run.pid)
            await world.clock.sleep(world.latency.seconds(Work.REPLICATE))
        finally:
            self._running.discard(ident)
        with world.store.transaction():
            # Meanwhile the job may be gone.
            if world.store.get(REPLICATION, ident) is not None:
                run.finish()


class _Run:
    """One run of a job."""

    def __init__(self, world: World, ident: str, job: Document) -> None:
        self._world = world
        self._ident = ident
        self._job = job
        self._began = world.clock.now()
        self._state = job_state(world, ident)
        self._log: list[str] = []
        self.pid = 2000 + int(self._began) % 30_000
        self._log_line("start replication job")

    def record(self, **fields: Any) -> None:
        """Write down how the job is, in the running transaction."""
        document = {**self._state, "last_try": int(self._began), "log": list(self._log), **fields}
        self._world.store.put(REPLICATION_STATE, self._ident, document)

    def finish(self) -> None:
        """Do the work and write down how it went, in the running transaction."""
        try:
            if self._job.get("remove_job"):
                self._remove()
                return
            volumes = self._replicate()
        except PveError as err:
            self._log_line(f"end replication job with error: {err.text}")
            failures = int(self._state["fail_count"]) + 1
            self.record(fail_count=failures, error=err.text, duration=self._duration())
            return
        self._log_line("end replication job")
        self._state.pop("error", None)
        synced = {"last_sync": int(self._began), "fail_count": 0, "volumes": volumes}
        self.record(**synced, duration=self._duration())

    def _replicate(self) -> list[str]:
        world, target = self._world, str(self._job["target"])
        guest = self._guest()
        node, volumes = str(guest["node"]), replicatable_volumes(world, guest)
        running = int(guest["status"] == "running")
        self._log_line(f"guest => {_NAMES[str(guest['type'])]} {guest['vmid']}, running => {running}")
        self._log_line(f"volumes => {','.join(volumes)}")
        self._reach(target)
        old, new = self._snapshot(int(self._state["last_sync"])), self._snapshot(int(self._began))
        for volid in volumes:
            world.storages.require(volid.partition(":")[0], target)
            self._log_line(f"create snapshot '{new}' on {volid}")
        rate = self._job.get("rate")
        self._log_line(f"using secure transmission, rate limit: {f'{rate} MByte/s' if rate else 'none'}")
        for volid in volumes:
            self._sync(volid, node, old, new)
        return volumes

    def _sync(self, volid: str, node: str, old: str, new: str) -> None:
        world, target = self._world, str(self._job["target"])
        volume = world.volumes.require(volid, node)
        replica = world.volumes.find(volid, target)
        if replica is None:
            self._log_line(f"full sync '{volid}' ({new})")
            size = int(volume["size"])
            storage = volid.partition(":")[0]
            if size > world.storages.total(storage, target) - world.storages.used(storage, target):
                raise PveError(f"storage '{storage}' on node '{target}' has not enough free space")
            fields = {key: volume.get(key) for key in ("content", "format", "vmid", "parent", "image")}
            world.volumes.add(volid, target, size, **fields)
        else:
            if old not in images.snapshots_of(world, volid, target):
                raise PveError(
                    f"No common base snapshot on volume(s) {volid}\nPlease remove the problematic volume(s)"
                    f" from the replication target or delete and re-create the whole job {self._ident}"
                )
            self._log_line(f"incremental sync '{volid}' ({old} => {new})")
            world.volumes.resize(volid, target, int(volume["size"]))
        images.take_snapshot(world, volid, node, new)
        if old in images.snapshots_of(world, volid, node):
            self._log_line(f"delete previous replication snapshot '{old}' on {volid}")
            images.drop_snapshot(world, volid, node, old)
        images.copy_snapshots(world, (volid, node), (volid, target))

    def _remove(self) -> None:
        world, mark, target = self._world, str(self._job["remove_job"]), str(self._job["target"])
        guest = self._guest()
        node = str(guest["node"])
        self._log_line(f"start job removal - mode '{mark}'")
        if mark == "full" and target != node:
            self._reach(target)
            for volid in self._state.get("volumes", ()):
                world.volumes.free(volid, target)
        prefix = f"__replicate_{self._ident}_"
        for volid in self._state.get("volumes", ()):
            for name in images.snapshots_of(world, volid, node):
                if name.startswith(prefix):
                    images.drop_snapshot(world, volid, node, name)
        world.store.delete(REPLICATION, self._ident)
        world.store.delete(REPLICATION_STATE, self._ident)

    def _guest(self) -> Mapping[str, Any]:
        guest = self._world.guests.get(self._job["guest"])
        if guest is None:
            raise PveError(f"no such guest '{self._job['guest']}'")
        return guest

    def _reach(self, target: str) -> None:
        if not self._world.cluster.is_online(target):
            address = self._world.cluster.nodes().get(target, {}).get("ip", target)
            raise PveError(
                f"command '/usr/bin/ssh -e none -o 'BatchMode=yes' -o 'HostKeyAlias={target}' root@{address}"
                f" -- pvesr prepare-local-job {self._ident}' failed: exit code 255"
            )

    def _snapshot(self, moment: int) -> str:
        return f"__replicate_{self._ident}_{moment}__"

    def _duration(self) -> float:
        return round(self._world.clock.now() - self._began, 6)

    def _log_line(self, text: str) -> None:
        now = datetime.datetime.fromtimestamp(self._world.clock.now(), datetime.UTC)
        self._log += [f"{now:%Y-%m-%d %H:%M:%S} {self._ident}: {line}" for line in text.split("\n")]
