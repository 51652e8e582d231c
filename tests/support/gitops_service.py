"""A GitOps server on a forge in memory, whose work is written down."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from tests.support.memory_forge import MemoryForge, sign

from stackyard.base import events, serving
from stackyard.base.calendar_events import parse_calendar_event
from stackyard.gitops.jobs import drift_job, report_job
from stackyard.gitops.receiver import WEBHOOK
from stackyard.gitops.serve import GitopsService, ServicePlan, gitops_service
from stackyard.sources.store import ChosenStore

__all__ = ["Actions", "Drift", "Rig", "run_service", "until"]

SECRET = "webhook secret"
PATIENCE_S = 20.0


@dataclass
class Actions:
    """Writes down what is done, and plays what the work meets.

    Attributes:
        done: What was done.
        work_s: How long each takes.
        fail: What the next ones raise.
    """

    done: list[tuple[str, int]] = field(default_factory=list)
    begun: list[tuple[str, int]] = field(default_factory=list)
    applied: list[frozenset[str] | None] = field(default_factory=list)
    forced: list[int] = field(default_factory=list)
    work_s: float = 0.0
    fail: list[Exception] = field(default_factory=list)

    async def plan(self, number: int, *, force: bool) -> None:
        await self._do("plan", number)
        if force:
            self.forced.append(number)

    async def apply(self, number: int, targets: frozenset[str] | None) -> None:
        await self._do("apply", number)
        self.applied.append(targets)

    async def unlock(self, number: int) -> None:
        await self._do("unlock", number)

    async def _do(self, what: str, number: int) -> None:
        self.begun.append((what, number))
        await asyncio.sleep(self.work_s)
        if self.fail:
            raise self.fail.pop(0)
        self.done.append((what, number))


@dataclass
class Drift:
    """Writes down which targets were looked at for drift."""

    found: tuple[str, ...]
    checked: list[str] = field(default_factory=list)

    async def targets(self) -> tuple[str, ...]:
        return self.found

    async def check(self, target: str) -> None:
        self.checked.append(target)

    async def report(self) -> None:
        self.checked.append("report")


@dataclass
class Rig:
    """A server that runs.

    Attributes:
        url: Where webhooks go.
        told: What it said.
    """

    url: str
    service: GitopsService
    client: aiohttp.ClientSession
    told: list[str]

    async def idle(self) -> None:
        """Wait until nothing is left to do."""
        end = time.monotonic() + PATIENCE_S
        while await self.service.queue.pending():
            assert time.monotonic() < end
            await asyncio.sleep(0.01)

    async def post(self, body: bytes, headers: dict[str, str] | None = None, **more: str) -> tuple[int, str]:
        given = sign(body, SECRET, **more) if headers is None else headers
        async with self.client.post(self.url + WEBHOOK, data=body, headers=given) as response:
            return response.status, await response.text()


async def until(is_true: Callable[[], bool]) -> None:
    """Wait for what reports nothing."""
    end = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def run_service(
    folder: Path,
    forge: MemoryForge,
    actions: Actions,
    *,
    reconcile_every_s: float = 3600.0,
    secrets: tuple[str, ...] = (SECRET,),
    address: str | None = None,
    drift: Drift | None = None,
) -> AsyncIterator[Rig]:
    """Run a server for the length of a block."""
    told: list[str] = []

    def emit(event: events.Event) -> None:
        if isinstance(event, events.LogLine):
            told.append(event.text)

    plan = ServicePlan(
        repository=forge.name,
        forge=forge,
        store=ChosenStore(base=folder, address=address),
        actions=actions,
        secrets=secrets,
        emit=emit,
        reconcile_every_s=reconcile_every_s,
        first_pause_s=0.05,
        base=drift,
        times=()
        if drift is None
        else [(parse_calendar_event("*:*:*"), job) for job in (drift_job(), report_job())],
    )
    async with (
        gitops_service(plan) as service,
        serving.serve(service.handle) as server,
        aiohttp.ClientSession() as client,
    ):
        yield Rig(url=server.url, service=service, client=client, told=told)
