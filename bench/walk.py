"""What a walk costs, beside a bare `asyncio.gather` that runs the same work without order or limit."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from bench.figure import Figure
from stackyard.base.dag import Graph
from stackyard.base.schedule import ScheduleLimits, walk

__all__ = ["measure"]

NODES = 10_000
EDGES = 30_000
ROUNDS = 7
AIM_RATIO = 5.0
HOSTS = 8


async def _nothing(node: int) -> None:
    """Do no work, so that all that is measured is ours."""


def _random_graph() -> Graph[int]:
    """Return a graph of the same shape in every run."""
    draw = random.Random(NODES)  # noqa: S311 - a shape, not a secret
    edges: set[tuple[int, int]] = set()
    while len(edges) < EDGES:
        one, other = draw.sample(range(NODES), 2)
        edges.add((max(one, other), min(one, other)))
    return Graph.build(range(NODES), edges)


def _time_s(run: Callable[[], Awaitable[object]]) -> float:
    """Run once on a fresh event loop and return how long it took, without the loop's own start and end."""

    async def timed() -> float:
        began_s = time.perf_counter()
        await run()
        return time.perf_counter() - began_s

    return asyncio.run(timed())


def measure() -> list[Figure]:
    """Return the cost of a walk: few at once, all at once, and with a limit for each of some hosts."""
    graph = _random_graph()
    limits: ScheduleLimits[int] = ScheduleLimits(
        parallel=16,
        capacity={f"host{number}": 4 for number in range(HOSTS)},
        needs=lambda node: (f"host{node % HOSTS}",),
    )
    size = f"walk of {NODES:,} nodes, {EDGES:,} edges"
    floor = "asyncio.gather of as many"
    runs: dict[str, Callable[[], Awaitable[object]]] = {
        floor: lambda: asyncio.gather(*(_nothing(node) for node in graph.nodes)),
        f"{size}, 16 at once": lambda: walk(graph, _nothing, parallel=16),
        f"{size}, all at once": lambda: walk(graph, _nothing, parallel=NODES),
        f"{size}, {HOSTS} resources": lambda: walk(graph, _nothing, parallel=limits),
    }
    best_s = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        # In turn, not one after the other: a busy moment of the machine then hits all of them.
        for name, run in runs.items():
            best_s[name] = min(best_s[name], _time_s(run))
    floor_s = best_s.pop(floor)
    return [
        Figure(name=name, measured_s=measured_s, floor_name=floor, floor_s=floor_s, aim_ratio=AIM_RATIO)
        for name, measured_s in best_s.items()
    ]
