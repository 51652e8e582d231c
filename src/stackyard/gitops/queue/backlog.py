"""The jobs of a `StoredQueue` as one value, and its text in the store."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import OUTSIDE
from stackyard.clients.objects import StoreDamagedError
from stackyard.gitops.queue.protocol import JobLostError, NewJob, Put, QueuedJob

__all__ = ["Backlog", "read_backlog", "write_backlog"]

_FORMAT = 1
# A forge sends a delivery again within days; a repetition behind so many others only costs one look.
_DELIVERIES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The jobs that wait or run.

    Attributes:
        last_id: The number of the newest job that there ever was.
        jobs: The jobs, in their order.
        deliveries: The deliveries that were received last.
    """

    last_id: int = 0
    jobs: tuple[QueuedJob, ...] = ()
    deliveries: tuple[str, ...] = ()

    def put(self, job: NewJob, delivery: str) -> tuple[Backlog, Put]:
        """Add a job, unless it is there."""
        if delivery and delivery in self.deliveries:
            return self, Put.REPEATED
        seen = (*self.deliveries, delivery)[-_DELIVERIES:] if delivery else self.deliveries
        if job.key and any(one.job.key == job.key and not one.is_running for one in self.jobs):
            return dataclasses.replace(self, deliveries=seen), Put.MERGED
        id_ = self.last_id + 1
        queued = QueuedJob(id=id_, job=job)
        return Backlog(last_id=id_, jobs=(*self.jobs, queued), deliveries=seen), Put.QUEUED

    def take(self, worker: str, now: float) -> tuple[Backlog, QueuedJob | None]:
        """Give the first job whose lock is free to a worker."""
        taken: set[str] = {one.job.lock for one in self.jobs if one.is_running}
        for one in self.jobs:
            if one.job.lock in taken:
                continue
            if one.not_before <= now:
                given = dataclasses.replace(one, is_running=True, worker=worker, not_before=0.0)
                return self._replace(one.id, given), given
            taken.add(one.job.lock)
        return self, None

    def end(self, job: QueuedJob) -> tuple[Backlog, None]:
        """Remove a job that its worker ended.

        Raises:
            JobLostError: Another worker has it.
        """
        self._require(job)
        return self._replace(job.id, None), None

    def retry(self, job: QueuedJob, not_before: float) -> tuple[Backlog, None]:
        """Have a job wait for its next attempt.

        Raises:
            JobLostError: Another worker has it.
        """
        self._require(job)
        return self._give_back(job, not_before), None

    def recover(self) -> tuple[Backlog, int]:
        """Give the jobs back that workers of earlier had, and return how many there were."""
        left = [one for one in self.jobs if one.is_running]
        backlog = self
        for one in left:
            backlog = backlog._give_back(one, 0.0)
        return backlog, len(left)

    def next_due(self, now: float) -> float | None:
        """Return in how many seconds a job becomes due; None where none waits for its time."""
        due = [one.not_before - now for one in self.jobs if not one.is_running and one.not_before > now]
        return min(due, default=None)

    def _give_back(self, job: QueuedJob, not_before: float) -> Backlog:
        same = (one for one in self.jobs if one.job.key == job.job.key and not one.is_running)
        if job.job.key and any(same):
            return self._replace(job.id, None)
        waiting = dataclasses.replace(
            job, is_running=False, worker="", attempts=job.attempts + 1, not_before=not_before
        )
        return self._replace(job.id, waiting)

    def _require(self, job: QueuedJob) -> None:
        found = next((one for one in self.jobs if one.id == job.id), None)
        if found is None or not found.is_running or found.worker != job.worker:
            raise JobLostError(f"Job {job.id} ({job.job.kind}) is no longer that of this worker.")

    def _replace(self, id_: int, new: QueuedJob | None) -> Backlog:
        jobs = (new if one.id == id_ else one for one in self.jobs)
        return dataclasses.replace(self, jobs=tuple(one for one in jobs if one is not None))


def read_backlog(data: bytes | None, key: str) -> Backlog:
    """Return what an object says.

    Raises:
        StoreDamagedError: It says something else.
    """
    if data is None:
        return Backlog()
    try:
        document: dict[str, Any] = parse_json(data, OUTSIDE)
        if document["format"] > _FORMAT:
            raise StoreDamagedError(
                f"The queue {key} was written by a newer stackyard.",
                remedy="Update stackyard on this machine.",
            )
        jobs = tuple(QueuedJob(**{**one, "job": NewJob(**one["job"])}) for one in document["jobs"])
        return Backlog(last_id=document["last_id"], jobs=jobs, deliveries=tuple(document["deliveries"]))
    except (JsonError, KeyError, TypeError) as err:
        raise StoreDamagedError(
            f"The queue {key} is damaged.",
            remedy="Remove the object with the tools of the store: what is to be done is found again.",
        ) from err


def write_backlog(backlog: Backlog) -> bytes:
    """Return the text of an object."""
    document = {
        "format": _FORMAT,
        "last_id": backlog.last_id,
        "jobs": [_write_job(one) for one in backlog.jobs],
        "deliveries": backlog.deliveries,
    }
    return orjson.dumps(document)


def _write_job(one: QueuedJob) -> dict[str, Any]:
    fields = {item.name: getattr(one, item.name) for item in dataclasses.fields(one)}
    inner = {item.name: getattr(one.job, item.name) for item in dataclasses.fields(one.job)}
    return {**fields, "job": {**inner, "args": dict(one.job.args)}}
