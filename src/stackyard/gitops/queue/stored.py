"""A queue in one object of a store of any kind, for one worker machine.

Any number of processes may put jobs. One of them, which has the lease of the worker, takes them; the next one
takes over when that has ended. Changes that come together are written together.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from typing import TYPE_CHECKING, Any, Self, TypeVar

from stackyard.clients.objects import (
    ABSENT,
    ConflictError,
    LeaseWatch,
    Objects,
    StoreBusyError,
    StoreError,
    acquire,
    read_lease,
)
from stackyard.clients.objects.heartbeat import Heartbeat
from stackyard.clients.objects.holders import describe_process
from stackyard.gitops.queue.backlog import read_backlog, write_backlog
from stackyard.state import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stackyard.clients.objects import Lease
    from stackyard.gitops.queue.backlog import Backlog
    from stackyard.gitops.queue.protocol import NewJob, Put, QueuedJob

    Step = Callable[[Backlog], tuple[Backlog, Any]]

__all__ = ["StoredQueue"]

T = TypeVar("T")

# Of another machine that vanished nothing but its silence is seen; one of this machine is looked at.
_PROMISE_S = 30.0
# What another process put is seen after this time at the latest.
_LOOK_EVERY_S = 2.0
_ATTEMPTS = 20


class StoredQueue:
    """A queue of jobs in an object store.

    Args:
        objects: The store; whoever opened it closes it.
        repository: The repository on the forge.
        promise_s: How long the worker may be silent before another one takes over.
        look_every_s: How often the store is asked what other processes put.
    """

    def __init__(
        self,
        objects: Objects,
        repository: str,
        *,
        promise_s: float = _PROMISE_S,
        look_every_s: float = _LOOK_EVERY_S,
    ) -> None:
        self._objects = objects
        self._key = layout.gitops(repository, "queue", "jobs")
        self._lease_key = layout.gitops(repository, "queue", "worker")
        self._promise_s = promise_s
        self._look_every_s = look_every_s
        self._worker = uuid.uuid4().hex
        self._seen = LeaseWatch()
        self._lease: Lease | None = None
        self._heartbeat: Heartbeat | None = None
        self._waits_for = ""
        self._steps: list[tuple[Step, asyncio.Future[Any]]] = []
        self._writing = asyncio.Lock()
        self._leasing = asyncio.Lock()
        # Set, and replaced, by each change of ours.
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Open the queue."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Give the lease back."""
        await self._leave()

    @property
    def waits_for(self) -> str:
        """Which other worker has to end first; empty for none."""
        return self._waits_for

    async def put(self, job: NewJob, *, delivery: str = "") -> Put:
        """Add a job; when this returns it is durable."""
        put: Put = await self._change(lambda backlog: backlog.put(job, delivery))
        self._wake()
        return put

    async def take(self, timeout_s: float) -> QueuedJob | None:
        """Return the next job whose lock is free; None where there is none for that long."""
        until = time.monotonic() + timeout_s
        while True:
            # Before the look: a change behind it ends the wait.
            changed = self._changed
            job, due_s = await self._take_now()
            left_s = until - time.monotonic()
            if job is not None or left_s <= 0:
                return job
            wait_s = min(left_s, self._look_every_s, self._look_every_s if due_s is None else due_s)
            with contextlib.suppress(TimeoutError):
                # Not `wait_for`, which loses a cancellation that comes together with the event.
                async with asyncio.timeout(wait_s):
                    await changed.wait()

    async def done(self, job: QueuedJob) -> None:
        """Remove a job that was taken."""
        await self._change(lambda backlog: backlog.end(job))
        self._wake()

    async def retry(self, job: QueuedJob, *, after_s: float) -> None:
        """Give a job that was taken back, to be tried again after a while."""
        not_before = time.time() + after_s
        await self._change(lambda backlog: backlog.retry(job, not_before))
        self._wake()

    async def pending(self) -> Sequence[QueuedJob]:
        """Return the jobs that wait or run."""
        backlog, _ = await asyncio.to_thread(self._read)
        return backlog.jobs

    # --- Taking

    async def _take_now(self) -> tuple[QueuedJob | None, float | None]:
        """Return a job that can run now; else in how many seconds one may be due."""
        if not await self._lead():
            return None, None
        backlog, _ = await asyncio.to_thread(self._read)
        now = time.time()
        if backlog.take(self._worker, now)[1] is None:
            # Nothing is written where nothing changes.
            return None, backlog.next_due(now)
        return await self._change(lambda found: found.take(self._worker, now)), None

    async def _lead(self) -> bool:
        """Return whether we are the worker; become it where there is none."""
        async with self._leasing:
            if self._heartbeat is not None and self._heartbeat.explain_loss() is None:
                return True
            await self._leave()
            if not await self._begin():
                return False
            # What a worker before us had is ours to continue; it can change nothing of it any more.
            self._worker = uuid.uuid4().hex
            await self._change(lambda backlog: backlog.recover())
            return True

    async def _begin(self) -> bool:
        """Take the lease and keep it, also where the caller gives up meanwhile: `_leave` gives it back."""
        acquiring = asyncio.get_running_loop().create_task(asyncio.to_thread(self._acquire))
        try:
            lease = await asyncio.shield(acquiring)
        except asyncio.CancelledError:
            if (late := await acquiring) is not None:
                await asyncio.to_thread(late.release)
            raise
        if lease is not None:
            self._lease, self._heartbeat = lease, Heartbeat(lease)
        return lease is not None

    def _acquire(self) -> Lease | None:
        facts = describe_process()
        lease = acquire(
            self._objects,
            self._lease_key,
            owner=f"the GitOps worker on {facts['host']}, process {facts['pid']}",
            promise_s=self._promise_s,
            facts=facts,
            watch=self._seen,
        )
        known = None if lease is not None else read_lease(self._objects, self._lease_key)
        self._waits_for = "" if known is None else known.owner
        return lease

    async def _leave(self) -> None:
        heartbeat, lease = self._heartbeat, self._lease
        self._heartbeat = self._lease = None
        if heartbeat is not None and lease is not None:
            await asyncio.to_thread(heartbeat.stop)
            with contextlib.suppress(StoreError, StoreBusyError):
                await asyncio.to_thread(lease.release)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # --- Changing

    async def _change(self, step: Callable[[Backlog], tuple[Backlog, T]]) -> T:
        """Change the jobs; what others change meanwhile is written together."""
        wanted: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._steps.append((step, wanted))
        async with self._writing:
            if not wanted.done():
                steps, self._steps = self._steps, []
                await self._write(steps)
        return await wanted

    async def _write(self, steps: list[tuple[Step, asyncio.Future[Any]]]) -> None:
        work = asyncio.to_thread(self._write_all, [step for step, _ in steps])
        writing = asyncio.get_running_loop().create_task(work)
        try:
            # Others wait for it too: one that gives up does not end it.
            results = await asyncio.shield(writing)
        except asyncio.CancelledError:
            results = await writing
            _tell(steps, results)
            raise
        _tell(steps, results)

    def _write_all(self, steps: list[Step]) -> list[object]:
        """Do the steps in one write, and return for each its result or its error."""
        try:
            for _ in range(_ATTEMPTS):
                backlog, tag = self._read()
                changed, results = _apply(backlog, steps)
                try:
                    if changed != backlog:
                        self._objects.put(
                            self._key, write_backlog(changed), expect=ABSENT if tag is None else tag
                        )
                except ConflictError:
                    continue
                return results
            raise ConflictError(self._key)
        except Exception as err:
            return [err] * len(steps)

    def _read(self) -> tuple[Backlog, Any]:
        stored = self._objects.get(self._key)
        if stored is None:
            return read_backlog(None, self._key), None
        return read_backlog(stored.data, self._key), stored.tag


def _apply(backlog: Backlog, steps: list[Step]) -> tuple[Backlog, list[object]]:
    results: list[object] = []
    for step in steps:
        try:
            backlog, result = step(backlog)
        except Exception as err:
            result = err
        results.append(result)
    return backlog, results


def _tell(steps: list[tuple[Step, asyncio.Future[Any]]], results: list[object]) -> None:
    for (_, wanted), result in zip(steps, results, strict=True):
        if wanted.done():
            continue
        if isinstance(result, Exception):
            wanted.set_exception(result)
        else:
            wanted.set_result(result)
