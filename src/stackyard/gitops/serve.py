"""The GitOps server: webhooks are queued, workers do what they ask for, and what they missed is found.

Nothing of it is only in the memory of this process: what was received is in the queue, what was done is in
the store, and what is true is asked of the forge.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.gitops.jobs import JobKind, drift_job, reconcile_job
from stackyard.gitops.looks import Look, Looks
from stackyard.gitops.queue.open_queue import open_queue
from stackyard.gitops.receiver import WebhookReceiver
from stackyard.gitops.reconcile import Reconciliation
from stackyard.gitops.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from aiohttp import web

    from stackyard.base.calendar_events import CalendarEvent
    from stackyard.clients.forge.protocol import Forge
    from stackyard.clients.objects import Objects
    from stackyard.gitops.looks import PullActions
    from stackyard.gitops.queue.protocol import JobQueue, NewJob, QueuedJob
    from stackyard.sources.store import ChosenStore

__all__ = ["BaseActions", "GitopsService", "ServicePlan", "gitops_service"]

_RECONCILE_EVERY_S = 300.0
_LONGEST_SLEEP_S = 600.0


class BaseActions(Protocol):
    """What is done about the base branch, whatever pull requests there are."""

    async def targets(self) -> Sequence[str]:
        """Return the targets that are looked at for drift."""
        ...

    async def check(self, target: str) -> None:
        """Look at a target for drift, and keep its issue."""
        ...

    async def report(self) -> None:
        """Report newer versions of providers and modules."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    """What a server looks after, and with what.

    Attributes:
        repository: `owner/name`.
        forge: The repository on its forge, open.
        store: Where the queue is, and everything that is known of pull requests.
        actions: What is done with a pull request.
        secrets: What the forge and we know; several while one replaces another.
        emit: Told of what happens.
        at_once: How many jobs are done at the same time.
        reconcile_every_s: How often the forge is asked for what webhooks did not tell.
        base: What is done about the base branch.
        times: When that is done: jobs by what their time is.
        first_pause_s: After how long what failed is tried again for the first time.
    """

    repository: str
    forge: Forge
    store: ChosenStore
    actions: PullActions
    secrets: Sequence[str] = field(repr=False)
    emit: events.Emit = events.ignore
    at_once: int = 2
    reconcile_every_s: float = _RECONCILE_EVERY_S
    base: BaseActions | None = None
    times: Sequence[tuple[CalendarEvent, NewJob]] = ()
    first_pause_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GitopsService:
    """A service that runs; made by `gitops_service`."""

    queue: JobQueue
    receiver: WebhookReceiver

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request: a webhook, or whether we are well."""
        return await self.receiver.handle(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """Does the jobs of the queue."""

    plan: ServicePlan
    objects: Objects
    look: Look
    reconciliation: Reconciliation

    async def do(self, job: QueuedJob) -> None:
        """Do one job.

        Raises:
            StackyardError: It cannot be done now, or at all.
        """
        # After a move of the store, what this process knows is no longer what counts.
        await asyncio.to_thread(self.plan.store.require_here, self.objects)
        args = job.job.args
        match job.job.kind:
            case JobKind.LOOK:
                await self.look.look(int(args["number"]))
            case JobKind.APPLY:
                names = args.get("targets")
                targets = None if names is None else frozenset(map(str, names))
                await self.plan.actions.apply(int(args["number"]), targets)
            case JobKind.RECONCILE:
                await self._reconcile()
            case JobKind.DRIFT if self.plan.base is not None:
                await self._look_for_drift(self.plan.base, str(args["target"]))
            case JobKind.REPORT if self.plan.base is not None:
                await self.plan.base.report()
            case _:
                self._tell(f"A job of the kind {job.job.kind} is of another version, and is left out.")

    async def _reconcile(self) -> None:
        found = await self.reconciliation.reconcile()
        if found:
            self._tell(f"{found} pull requests have to be looked at.")

    async def _look_for_drift(self, base: BaseActions, target: str) -> None:
        if target:
            await base.check(target)
            return
        for one in await base.targets():
            await self.look.queue.put(drift_job(one))

    def _tell(self, text: str) -> None:
        self.plan.emit(events.LogLine(level=events.LogLevel.INFO, source="gitops", text=text))


@contextlib.asynccontextmanager
async def gitops_service(plan: ServicePlan) -> AsyncIterator[GitopsService]:
    """Run workers and reconciliation for the length of the block.

    What is being done at its end is stopped, and left to the next worker.

    Raises:
        StoreError: The store cannot be used.
    """
    objects = await asyncio.to_thread(plan.store.open)
    with contextlib.closing(objects):
        async with open_queue(objects, plan.store.address, plan.repository) as queue:
            receiver = WebhookReceiver(
                queue=queue,
                kind=plan.forge.kind,
                repository=plan.repository,
                secrets=plan.secrets,
                emit=plan.emit,
            )
            worker = Worker(
                queue=queue,
                work=_make_work(plan, objects, queue).do,
                emit=plan.emit,
                at_once=plan.at_once,
                first_pause_s=plan.first_pause_s,
            )
            works = [worker.run(), _reconcile_often(plan, queue)]
            works += [_put_at_times(plan, queue, event, job) for event, job in plan.times]
            running = [asyncio.create_task(work) for work in works]
            try:
                yield GitopsService(queue=queue, receiver=receiver)
            finally:
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)


def _make_work(plan: ServicePlan, objects: Objects, queue: JobQueue) -> _Work:
    looks = Looks(objects, plan.repository)
    return _Work(
        plan=plan,
        objects=objects,
        look=Look(forge=plan.forge, actions=plan.actions, queue=queue, looks=looks),
        reconciliation=Reconciliation(forge=plan.forge, queue=queue, looks=looks),
    )


async def _reconcile_often(plan: ServicePlan, queue: JobQueue) -> None:
    """Ask for a reconciliation now and every few minutes, once for all machines."""
    every_s = plan.reconcile_every_s
    delivery = ""
    while True:
        await _put(plan, queue, reconcile_job(), delivery)
        now = time.time()
        turn = int(now // every_s) + 1
        await asyncio.sleep(turn * every_s - now)
        delivery = f"reconcile-{every_s:g}-{turn}"


async def _put_at_times(plan: ServicePlan, queue: JobQueue, event: CalendarEvent, job: NewJob) -> None:
    """Put a job whenever it is time, once for all machines."""
    due = event.next_after(time.time())
    while due is not None:
        left_s = due - time.time()
        if left_s > 0:
            # In pieces: the clock of the machine may be set.
            await asyncio.sleep(min(left_s, _LONGEST_SLEEP_S))
            continue
        await _put(plan, queue, job, f"{job.kind}-{due}")
        due = event.next_after(time.time())


async def _put(plan: ServicePlan, queue: JobQueue, job: NewJob, delivery: str) -> None:
    try:
        await queue.put(job, delivery=delivery)
    except StackyardError as err:
        text = f"The queue cannot be used: {err.detail}"
        plan.emit(events.LogLine(level=events.LogLevel.ERROR, source="gitops", text=text))
