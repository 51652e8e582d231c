"""What every queue of jobs promises, wherever it keeps them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

from stackyard.base.errors import BusyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["JobLostError", "JobQueue", "NewJob", "Put", "QueuedJob"]


class JobLostError(BusyError):
    """Another worker has the job: ours was silent for too long, so that it counted as dead."""

    code = "E-GITOPS-JOB-LOST"
    summary = "Another worker took over a job"
    default_remedy = "Nothing needs to be done: the other worker continues it."


class Put(enum.StrEnum):
    """What became of a job that was put into the queue."""

    QUEUED = "queued"
    # One with the same key waits already; it sees what is new when it runs.
    MERGED = "merged"
    # This delivery was received before.
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """Something to do.

    Attributes:
        kind: What is to be done.
        lock: Jobs with the same lock run one after another, in the order in which they were queued.
        key: Of jobs with the same key only one waits at a time; empty for a job that is never merged.
        args: What the job is about; no secrets.
    """

    kind: str
    lock: str
    key: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """A job in the queue.

    Attributes:
        id: Its number; a later job has a higher one.
        job: What is to be done.
        is_running: Whether a worker has it.
        attempts: How many times it was tried before, those that ended with their worker included.
        not_before: When it is tried again, in seconds since 1970; 0 for at once.
        worker: Which worker has it; empty for none.
    """

    id: int
    job: NewJob
    is_running: bool = False
    attempts: int = 0
    not_before: float = 0.0
    worker: str = ""


class JobQueue(Protocol):
    """The jobs of one repository; used in an `async with` block.

    A job that was put is run, whatever is killed: one whose worker ended is given to the next worker, at its
    old place. So a job may run more than once, and what it does has to find out what is already done.

    Every method raises `StoreError` where the store cannot be used.
    """

    async def __aenter__(self) -> Self:
        """Open the queue."""
        ...

    async def __aexit__(self, *exc: object) -> None:
        """Close the queue. Jobs that were taken and not ended are given to the next worker at once."""
        ...

    @property
    def waits_for(self) -> str:
        """Which other worker has to end before this one gets jobs; empty for none."""
        ...

    async def put(self, job: NewJob, *, delivery: str = "") -> Put:
        """Add a job; when this returns it is durable.

        Args:
            job: What is to be done.
            delivery: What the forge calls the webhook that it comes from. The same one again adds nothing.
        """
        ...

    async def take(self, timeout_s: float) -> QueuedJob | None:
        """Return the next job whose lock is free; None where there is none for that long.

        A job that waits for its next attempt keeps its place: later ones with its lock wait for it.
        """
        ...

    async def done(self, job: QueuedJob) -> None:
        """Remove a job that was taken.

        Raises:
            JobLostError: Another worker has it.
        """
        ...

    async def retry(self, job: QueuedJob, *, after_s: float) -> None:
        """Give a job that was taken back, to be tried again after a while.

        Where another one with its key waits, it is removed: that one does the same.

        Raises:
            JobLostError: Another worker has it.
        """
        ...

    async def pending(self) -> Sequence[QueuedJob]:
        """Return the jobs that wait or run, in their order."""
        ...
