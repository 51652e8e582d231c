"""The loop that takes jobs from the queue and does them, again where what they need is away."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import BusyError, StackyardError, UnreachableError
from stackyard.clients.forge.failures import ForgeRateLimitedError, ForgeUnreachableError
from stackyard.clients.objects import ConflictError
from stackyard.gitops.queue.protocol import JobLostError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stackyard.gitops.queue.protocol import JobQueue, QueuedJob

__all__ = ["Worker"]

# What passes by itself: the forge, the store, Proxmox or a lock is away for a while.
_PASSING = (UnreachableError, BusyError, ForgeUnreachableError, ForgeRateLimitedError, ConflictError)
_TAKE_S = 30.0
_LONGEST_PAUSE_S = 300.0
# Reconciliation finds again what is given up.
_MOST_ATTEMPTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Does the jobs of a queue.

    Attributes:
        queue: The queue.
        work: Does one job.
        emit: Told of what goes wrong.
        at_once: How many jobs are done at the same time.
        first_pause_s: After how long a job is tried again for the first time.
    """

    queue: JobQueue
    work: Callable[[QueuedJob], Awaitable[None]]
    emit: events.Emit = events.ignore
    at_once: int = 2
    first_pause_s: float = 5.0

    async def run(self) -> None:
        """Do jobs until this is cancelled; what is not done then is left to the next worker."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self.at_once):
                tasks.create_task(self._run_one())

    async def _run_one(self) -> None:
        failures, told = 0, ""
        while True:
            try:
                job = await self.queue.take(_TAKE_S)
                if job is not None:
                    await self._do(job)
                failures = 0
            except JobLostError as err:
                self._log(events.LogLevel.WARNING, err.detail)
            except Exception as err:
                # Whatever it was: the jobs are in the store, and wait until it can be used again.
                failures += 1
                text = err.detail if isinstance(err, StackyardError) else f"{type(err).__name__}: {err}"
                self._log(events.LogLevel.ERROR, f"The queue cannot be used: {text}")
                await asyncio.sleep(self._pause_s(failures))
            if self.queue.waits_for != told:
                told = self.queue.waits_for
                text = f"Waiting for {told} to end: one machine works at a time." if told else "Working."
                self._log(events.LogLevel.INFO, text)

    async def _do(self, job: QueuedJob) -> None:
        """Do a job, and end it or have it tried again.

        Raises:
            StackyardError: The queue cannot be used.
        """
        name = " ".join((job.job.kind, *(str(value) for value in job.job.args.values() if value)))
        try:
            await self.work(job)
        except _PASSING as err:
            await self._try_again(job, name, err)
        except StackyardError as err:
            self._log(events.LogLevel.ERROR, f"{name} failed: {err.code} {err.detail}")
            await self.queue.done(job)
        except Exception as err:
            # A mistake of ours in one job must not be the end of all others.
            self._log(events.LogLevel.ERROR, f"{name} failed by a defect: {type(err).__name__}: {err}")
            await self._try_again(job, name, None)
        else:
            await self.queue.done(job)

    async def _try_again(self, job: QueuedJob, name: str, err: StackyardError | None) -> None:
        if job.attempts + 1 >= _MOST_ATTEMPTS:
            self._log(events.LogLevel.ERROR, f"{name} is given up after {job.attempts + 1} attempts.")
            await self.queue.done(job)
            return
        pause_s = self._pause_s(job.attempts + 1)
        if isinstance(err, ForgeRateLimitedError):
            pause_s = max(pause_s, err.retry_after_s)
        if err is not None:
            text = f"{name} is tried again in {pause_s:g} s: {err.code} {err.detail}"
            self._log(events.LogLevel.WARNING, text)
        await self.queue.retry(job, after_s=pause_s)

    def _pause_s(self, attempt: int) -> float:
        return float(min(self.first_pause_s * 2 ** (attempt - 1), _LONGEST_PAUSE_S))

    def _log(self, level: events.LogLevel, text: str) -> None:
        self.emit(events.LogLine(level=level, source="gitops", text=text))
