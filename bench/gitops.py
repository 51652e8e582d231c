"""What GitOps costs: from a webhook to a status and to the comment, many pull requests, an idle server.

The forge is one in memory, its commits are in a real repository; the store, the queue, the runs and the
engine are the real ones. The floor of a comment is the plan by hand of the same files, in turn with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
from tests.support.memory_forge import sign
from tests.support.soak_forge import SoakForge

from bench.figure import Figure, MemoryFigure
from stackyard.base import serving
from stackyard.clients.forge.model import MergeMethod
from stackyard.gitops.actions import FlowActions
from stackyard.gitops.checkout import open_checkouts
from stackyard.gitops.context import GitopsContext
from stackyard.gitops.receiver import WEBHOOK
from stackyard.gitops.serve import ServicePlan, gitops_service
from stackyard.sources.store import ChosenStore

__all__ = ["measure"]

ROUNDS = 5
PULLS = 100
# Those that are merged too: some of each target.
MERGED = 30
WORKERS = 2
IDLE_S = 10.0
PATIENCE_S = 900.0
SECRET = "secret-of-the-bench"  # noqa: S105 - opens nothing else
STACK = "stacks/web"
_MAIN = 'terraform {\n  backend "http" {}\n}\n'
_ADDED = 'resource "terraform_data" "n%d" {\n  input = "v%d"\n}\n'


class _Actions:
    """The work of the server, noted where it is an apply."""

    def __init__(self, context: GitopsContext) -> None:
        self.flow, self.begun = FlowActions(context), list[int]()

    async def plan(self, number: int, *, force: bool) -> None:
        await self.flow.plan(number, force=force)

    async def apply(self, number: int, targets: frozenset[str] | None) -> None:
        self.begun.append(number)
        await self.flow.apply(number, targets)

    async def unlock(self, number: int) -> None:
        await self.flow.unlock(number)


class _Yard:
    """A server and its forge, for the length of a block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.forge = SoakForge(folder=folder / "origin")
        self.forge.begin({f"{STACK}/main.tf": _MAIN, "stackyard.yaml": "gitops: {approvals: 0}\n"})
        self.deliveries = itertools.count(1)
        self.actions: _Actions
        self.url = ""

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[aiohttp.ClientSession]:
        url, cache = self.forge.clone_access.url, self.folder / "cache"
        checkouts = open_checkouts(url, cache=cache, may_be_local=True)
        store = ChosenStore(base=self.folder / "control" / ".stackyard")
        self.actions = _Actions(GitopsContext(forge=self.forge, checkouts=checkouts, store=store))
        plan = ServicePlan(
            repository=self.forge.name,
            forge=self.forge,
            store=store,
            actions=self.actions,
            secrets=(SECRET,),
            at_once=WORKERS,
        )
        async with (
            gitops_service(plan) as service,
            serving.serve(service.handle) as server,
            aiohttp.ClientSession() as client,
        ):
            self.url, self.queue = server.url, service.queue
            await self.idle()
            yield client

    async def tell(self, client: aiohttp.ClientSession, number: int) -> None:
        body = self.forge.delivery(number)
        headers = sign(body, SECRET, delivery=f"d-{next(self.deliveries)}")
        async with client.post(self.url + WEBHOOK, data=body, headers=headers) as answer:
            assert answer.status < 300, answer.status  # noqa: S101 - else nothing is measured

    async def idle(self) -> None:
        began_s = time.monotonic()
        while await self.queue.pending():
            await asyncio.sleep(0.01)
            _require_patience(began_s)

    def push(self, number: int, stack: str) -> None:
        text = _ADDED % (number, number)
        files = {f"{stack}/main.tf": _MAIN, f"{stack}/n{number}.tf": text}
        self.forge.push(number, files, is_forced=False)


def measure() -> Iterator[Figure | MemoryFigure]:
    """Yield everything that is promised of GitOps."""
    with tempfile.TemporaryDirectory(prefix="stackyard-bench-") as name:
        folder = Path(name)
        yield from asyncio.run(_latency(folder / "latency"))
        yield asyncio.run(_hundred(folder / "hundred"))
        yield from _idle_server(folder / "idle")


# --- From a webhook to what is seen of it


async def _latency(folder: Path) -> list[Figure]:
    yard = _Yard(folder)
    statuses, comments, plans = [], [], []
    async with yard.serving() as client:
        for number in range(1, ROUNDS + 1):
            yard.push(number, STACK)
            head = yard.forge.all_pulls[number].head
            # In turn, not one after the other: a busy moment of the machine then hits both.
            plans.append(await asyncio.to_thread(_plan_by_hand, yard, head))
            began_s = time.perf_counter()
            await yard.tell(client, number)
            statuses.append(await _until(yard.forge.all_statuses, head, began_s))
            comments.append(await _until(yard.forge.all_comments, number, began_s))
            await yard.idle()
    status = Figure(
        name="webhook to first status",
        measured_s=statistics.median(statuses),
        floor_name="a second",
        floor_s=1.0,
        aim_ratio=1.0,
    )
    comment = Figure(
        name="webhook to comment",
        measured_s=statistics.median(comments),
        floor_name="`stackyard plan --out store:` by hand",
        floor_s=statistics.median(plans),
        aim_ratio=1.15,
        allowance_s=1.0,
    )
    return [status, comment]


async def _until(found: Mapping[Any, object], key: str | int, began_s: float) -> float:
    waited_since_s = time.monotonic()
    while not found.get(key):
        await asyncio.sleep(0.002)
        _require_patience(waited_since_s)
    return time.perf_counter() - began_s


def _require_patience(began_s: float) -> None:
    if time.monotonic() - began_s > PATIENCE_S:
        raise TimeoutError("The server does not end its work.")


def _plan_by_hand(yard: _Yard, head: str) -> float:
    """Return how long the verb takes in a clone of the same commit, with a store of its own."""
    place = yard.folder / "by-hand"
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run(
        ["git", "-c", "advice.detachedHead=false", "clone", "--quiet", str(yard.forge.folder), str(place)],
        check=True,
    )
    subprocess.run(["git", "-C", str(place), "fetch", "--quiet", "origin", head], check=True)
    subprocess.run(["git", "-C", str(place), "checkout", "--quiet", "--detach", head], check=True)
    began_s = time.perf_counter()
    argv = [sys.executable, "-m", "stackyard", "plan", "stack:web", "--json", "--out", "store:"]
    subprocess.run(argv, cwd=place, check=True, capture_output=True)
    return time.perf_counter() - began_s


# --- Many at once


async def _hundred(folder: Path) -> Figure:
    """Plan and apply many pull requests of ten targets; each is applied once, in the order of the merges."""
    yard = _Yard(folder)
    numbers = range(1, PULLS + 1)
    async with yard.serving() as client:
        for number in numbers:
            yard.push(number, f"stacks/s{number % 10}")
        alone_s = await asyncio.to_thread(_plan_other, yard)
        began_s = time.perf_counter()
        await asyncio.gather(*(yard.tell(client, number) for number in numbers))
        await yard.idle()
        took_s = time.perf_counter() - began_s
        lost = [number for number in numbers if not yard.forge.shown(number)]
        merged = list(numbers)[:MERGED]
        for number in merged:
            assert yard.forge.join(number, MergeMethod.MERGE)  # noqa: S101 - they touch files of their own
            await yard.tell(client, number)
        await yard.idle()
    order = list(dict.fromkeys(yard.actions.begun))
    lost += [number for number in merged if "applied: 1 created" not in yard.forge.shown(number)]
    if lost or order != merged:
        raise RuntimeError(f"lost {lost}; applied in the order {order}")
    return Figure(
        name=f"each of {PULLS} pull requests at once, none lost, {MERGED} applied in order",
        measured_s=took_s / PULLS,
        floor_name=f"one plan by hand, {WORKERS} at once",
        floor_s=alone_s / WORKERS,
        aim_ratio=1.5,
        allowance_s=1.0,
    )


def _plan_other(yard: _Yard) -> float:
    place = yard.folder / "by-hand"
    subprocess.run(
        ["git", "-c", "advice.detachedHead=false", "clone", "--quiet", str(yard.forge.folder), str(place)],
        check=True,
    )
    (place / "stacks/web/n1.tf").write_text(_ADDED % (1, 1))
    began_s = time.perf_counter()
    argv = [sys.executable, "-m", "stackyard", "plan", "stack:web", "--json", "--out", "store:"]
    subprocess.run(argv, cwd=place, check=True, capture_output=True)
    return time.perf_counter() - began_s


# --- A server with nothing to do


def _idle_server(folder: Path) -> Iterator[Figure | MemoryFigure]:
    floor = [sys.executable, "-c", "import aiohttp.web, pydantic, orjson, yaml, click, time; time.sleep(60)"]
    ours = [sys.executable, "-m", "bench.gitops", str(folder)]
    used_s, memory = _watch(ours)
    _, floor_memory = _watch(floor)
    yield Figure(
        name=f"CPU of an idle server in {IDLE_S:g} s",
        measured_s=used_s,
        floor_name="1 % of a core",
        floor_s=IDLE_S / 100,
        aim_ratio=1.0,
    )
    yield MemoryFigure(
        name="memory of an idle server",
        measured_bytes=memory,
        floor_name="a Python that imports the same libraries",
        floor_bytes=floor_memory,
        aim_ratio=2.0,
    )


def _watch(argv: list[str]) -> tuple[float, int]:
    """Return the CPU that a program uses while it has nothing to do, and its memory."""
    with subprocess.Popen(argv) as process:
        try:
            time.sleep(8.0)
            before_s = _cpu_s(process.pid)
            time.sleep(IDLE_S)
            assert process.poll() is None, argv  # noqa: S101 - else nothing is measured
            pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
            return _cpu_s(process.pid) - before_s, pages * os.sysconf("SC_PAGE_SIZE")
        finally:
            process.kill()


def _cpu_s(pid: int) -> float:
    said = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(said[11]) + int(said[12])) / os.sysconf("SC_CLK_TCK")


async def _serve(folder: Path) -> None:
    async with _Yard(folder).serving():
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
