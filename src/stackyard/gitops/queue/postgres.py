"""A queue in PostgreSQL, kept by procrastinate, for any number of worker machines.

procrastinate keeps the jobs, their locks, the workers and their heartbeats. A delivery and its job are
written in one transaction. Before a job is ended or given back, the same transaction checks whose it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import hashlib
import time
from typing import TYPE_CHECKING, Any, Self

from procrastinate import PsycopgConnector, exceptions, jobs, manager, sql
from procrastinate.sync_psycopg_connector import wrap_exceptions

from stackyard.gitops.queue.protocol import JobLostError, NewJob, Put, QueuedJob
from stackyard.gitops.queue.tables import FORGET, RECEIVE, WORKER_OF, describe_failure, make_tables

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from stackyard.clients.objects.postgres import PostgresAddress

__all__ = ["PostgresQueue"]

_BEAT_EVERY_S = 5.0
_SILENT_S = 20.0
# Workers are notified of a new job, and not of a lock that became free on another machine.
_LOOK_EVERY_S = 1.0
_CONNECTIONS = 8
_CONNECT_S = 10.0
_DURABLE = (
    "SELECT CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')"
    " THEN set_config('synchronous_commit', 'on', false) END"
)


class PostgresQueue:
    """A queue of jobs in PostgreSQL.

    Args:
        address: The database, and the schema of the store.
        repository: The repository on the forge.
        beat_every_s: How often this worker shows that it is alive.
        silent_s: How long a worker may be silent before others continue its jobs.
        connect_s: How long to wait for a connection.
    """

    def __init__(
        self,
        address: PostgresAddress,
        repository: str,
        *,
        beat_every_s: float = _BEAT_EVERY_S,
        silent_s: float = _SILENT_S,
        connect_s: float = _CONNECT_S,
    ) -> None:
        self._address = address
        # The name is also a part of the channel of notices, which has at most 63 bytes.
        own = hashlib.sha256(f"{address.schema} {repository}".encode()).hexdigest()[:16]
        self._queue = f"gitops-{own}"
        self._beat_every_s = beat_every_s
        self._silent_s = silent_s
        self._worker: int | None = None
        self._beaten_at = 0.0
        self._recovered_at = 0.0
        self._new = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._connector = PsycopgConnector(
            kwargs=dict(address.parameters),
            configure=self._configure,
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=connect_s,
        )
        self._manager = manager.JobManager(self._connector)

    async def _configure(self, connection: Any) -> None:
        await connection.execute(f"SET search_path TO {self._address.schema}")
        await connection.execute(_DURABLE)
        await connection.commit()

    async def __aenter__(self) -> Self:
        """Connect, and make the tables where they are not there yet."""
        with self._failures(), wrap_exceptions():
            await self._connector.open_async()
        try:
            with self._failures():
                await make_tables(self._connector)
                await self._connector.execute_query_async(FORGET)
        except BaseException:
            await self._connector.close_async()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Leave what was taken to the next worker, and disconnect."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(exceptions.ConnectorException):
            if self._worker is not None:
                await self._manager.unregister_worker(self._worker)
        await self._connector.close_async()

    @property
    def waits_for(self) -> str:
        """Which other worker has to end first: none, they work side by side."""
        return ""

    async def put(self, job: NewJob, *, delivery: str = "") -> Put:
        """Add a job; when this returns it is durable."""
        async with self._transaction() as connection:
            if delivery:
                received = await self._connector.execute_query_all_async_with_connection(
                    connection, RECEIVE, queue=self._queue, delivery=delivery
                )
                if not received:
                    return Put.REPEATED
            try:
                async with connection.transaction():
                    await self._manager.defer_job_async(self._as_theirs(job), connection=connection)
            except exceptions.AlreadyEnqueued:
                return Put.MERGED
        return Put.QUEUED

    async def take(self, timeout_s: float) -> QueuedJob | None:
        """Return the next job whose lock is free; None where there is none for that long."""
        until = time.monotonic() + timeout_s
        while True:
            self._new.clear()
            with self._failures():
                worker = await self._register()
                await self._recover()
                found = await self._fetch(worker)
            left_s = until - time.monotonic()
            if found is not None or left_s <= 0:
                return None if found is None else self._as_ours(found)
            with contextlib.suppress(TimeoutError):
                # Not `wait_for`, which loses a cancellation that comes together with the event.
                async with asyncio.timeout(min(left_s, _LOOK_EVERY_S)):
                    await self._new.wait()

    async def done(self, job: QueuedJob) -> None:
        """Remove a job that was taken."""
        async with self._transaction() as connection:
            await self._require(connection, job)
            await self._finish(connection, job.id)

    async def retry(self, job: QueuedJob, *, after_s: float) -> None:
        """Give a job that was taken back, to be tried again after a while."""
        async with self._transaction() as connection:
            await self._require(connection, job)
            await self._give_back(connection, job.id, after_s)

    async def pending(self) -> Sequence[QueuedJob]:
        """Return the jobs that wait or run."""
        with self._failures():
            found = [
                one
                for status in (jobs.Status.TODO, jobs.Status.DOING)
                for one in await self._manager.list_jobs_async(queue=self._queue, status=status.value)
            ]
        # A job that was taken between the two looks is there twice; the later look counts.
        latest = {one.id: self._as_ours(one) for one in found}
        return sorted(latest.values(), key=lambda one: one.id)

    # --- Workers

    async def _register(self) -> int:
        """Return our number, and keep the others told that we are alive."""
        if self._worker is not None and time.monotonic() - self._beaten_at < self._silent_s:
            return self._worker
        # One that was silent for so long may have been removed by the others.
        await self._manager.prune_stalled_workers(self._silent_s * 10)
        self._worker = await self._manager.register_worker()
        self._beaten_at = time.monotonic()
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._beat()), asyncio.create_task(self._listen())]
        return self._worker

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._beat_every_s)
            began = time.monotonic()
            with contextlib.suppress(exceptions.ConnectorException):
                if self._worker is not None and began - self._beaten_at < self._silent_s:
                    await self._manager.update_heartbeat(self._worker)
                    self._beaten_at = began

    async def _listen(self) -> None:
        """Have `take` look at once where a job is added; without it, it looks every second."""

        async def wake(*, channel: str, notification: jobs.Notification) -> None:
            del channel, notification
            self._new.set()

        while True:
            with contextlib.suppress(exceptions.ConnectorException):
                await self._manager.listen_for_jobs(on_notification=wake, queues=[self._queue])
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _recover(self) -> None:
        """Give back the jobs of workers that ended, or that were silent for too long."""
        if time.monotonic() - self._recovered_at < min(self._beat_every_s, _LOOK_EVERY_S):
            return
        self._recovered_at = time.monotonic()
        left = await self._manager.get_stalled_jobs(queue=self._queue, seconds_since_heartbeat=self._silent_s)
        for one in left:
            job = self._as_ours(one)
            with contextlib.suppress(JobLostError):
                async with self._transaction() as connection:
                    # Another worker may do the same now.
                    await self._require(connection, job)
                    await self._give_back(connection, job.id, 0.0)

    async def _fetch(self, worker: int) -> jobs.Job | None:
        try:
            return await self._manager.fetch_job(queues=[self._queue], worker_id=worker)
        except exceptions.UniqueViolation:
            # Another worker took one with the same lock in this moment.
            return None

    # --- Statements

    @contextlib.asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        with self._failures(), wrap_exceptions():
            async with self._connector.pool.connection() as connection:
                yield connection

    async def _require(self, connection: Any, job: QueuedJob) -> None:
        """Refuse to end a job that is not that of the worker that took it, and hold it until we did."""
        rows = await self._connector.execute_query_all_async_with_connection(connection, WORKER_OF, id=job.id)
        if not rows or _text(rows[0]["worker_id"]) != job.worker:
            raise JobLostError(f"Job {job.id} ({job.job.kind}) is no longer that of this worker.")

    async def _finish(self, connection: Any, id_: int) -> None:
        await self._connector.execute_query_all_async_with_connection(
            connection,
            sql.queries["finish_job"],
            job_id=id_,
            status=jobs.Status.SUCCEEDED.value,
            delete_job=True,
        )

    async def _give_back(self, connection: Any, id_: int, after_s: float) -> None:
        retry_at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=after_s)
        unchanged = {"new_priority": None, "new_queue_name": None, "new_lock": None}
        try:
            async with connection.transaction():
                await self._connector.execute_query_all_async_with_connection(
                    connection, sql.queries["retry_job"], job_id=id_, retry_at=retry_at, **unchanged
                )
        except exceptions.UniqueViolation:
            # One with its key waits, and does the same.
            await self._finish(connection, id_)

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Have what the database says be one of our errors."""
        try:
            yield
        except exceptions.ConnectorException as err:
            raise describe_failure(err, self._address.label) from err

    # --- Jobs

    def _as_theirs(self, job: NewJob) -> jobs.Job:
        return jobs.Job(
            queue=self._queue,
            task_name=job.kind,
            lock=f"{self._queue}/{job.lock}",
            queueing_lock=f"{self._queue}/{job.key}" if job.key else None,
            task_kwargs=dict(job.args),
        )

    def _as_ours(self, found: jobs.Job) -> QueuedJob:
        start = len(self._queue) + 1
        job = NewJob(
            kind=found.task_name,
            lock=(found.lock or "")[start:],
            key=(found.queueing_lock or "")[start:],
            args=found.task_kwargs,
        )
        is_running = found.status == jobs.Status.DOING.value
        due = found.scheduled_at
        return QueuedJob(
            id=found.id or 0,
            job=job,
            is_running=is_running,
            attempts=found.attempts,
            not_before=0.0 if due is None or is_running else due.timestamp(),
            worker=_text(found.worker_id) if is_running else "",
        )


def _text(worker: int | None) -> str:
    return "" if worker is None else str(worker)
