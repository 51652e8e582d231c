"""Random walks against a brute-force model.

The test holds every running node and lets them end one by one, in a drawn order. After each end the model
says, from the definitions alone, which nodes must have started since; the walk must have started exactly
these, in that order. At the end it says how each node must have settled.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stackyard.base.dag import Graph
from stackyard.base.errors import StackyardError
from stackyard.base.schedule import (
    Done,
    Failed,
    Mode,
    NotStarted,
    Results,
    ScheduleLimits,
    Settled,
    Skipped,
    walk,
)

CAPACITY = {"one": 1, "two": 2}
NEEDS = [(), ("one",), ("two",), ("two", "two"), ("one", "two"), ("two", "one"), ("two", "one", "two")]
# How long drawing takes says something about the machine, not about us.
QUICK = settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
# Counted in turns of the event loop: one for the node that ends, one for those that it lets start.
TURNS_TO_QUIET = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A graph, the rules, and what happens."""

    dependencies: Mapping[str, frozenset[str]]
    needs: Mapping[str, tuple[str, ...]]
    parallel: int
    mode: Mode
    broken: frozenset[str]
    end_order: tuple[str, ...]
    stop_after: int | None

    @property
    def limits(self) -> ScheduleLimits[str]:
        return ScheduleLimits(parallel=self.parallel, capacity=CAPACITY, needs=self.needs.__getitem__)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names = [chr(ord("a") + index) for index in range(draw(st.integers(0, 8)))]
    pairs = [(node, needed) for node in names for needed in names if node > needed]
    edges = draw(st.sets(st.sampled_from(pairs), max_size=12)) if pairs else set()
    inserted = draw(st.permutations(names))
    return Case(
        dependencies={node: frozenset(b for a, b in edges if a == node) for node in inserted},
        needs={node: draw(st.sampled_from(NEEDS)) for node in inserted},
        parallel=draw(st.integers(1, 4)),
        mode=draw(st.sampled_from(Mode)),
        broken=frozenset(draw(st.sets(st.sampled_from(names), max_size=3)) if names else ()),
        end_order=tuple(draw(st.permutations(names))),
        stop_after=draw(st.sampled_from([None, None, 0, 1, 2, 3, 4])),
    )


@dataclass(slots=True)
class Model:
    """What must happen, by the definitions: no indices, no queues, everything searched again each time."""

    case: Case
    started: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    is_asked_to_stop: bool = False

    @property
    def running(self) -> list[str]:
        return [node for node in self.started if node not in self.ended]

    @property
    def failed(self) -> list[str]:
        return [node for node in self.ended if node in self.case.broken]

    def ancestors(self, node: str) -> set[str]:
        direct = self.case.dependencies[node]
        return set(direct).union(*(self.ancestors(needed) for needed in direct))

    def may_start(self, node: str) -> bool:
        taken = Counter(name for other in [*self.running, node] for name in self.case.needs[other])
        return (
            node not in self.started
            and all(n in self.ended and n not in self.case.broken for n in self.case.dependencies[node])
            and len(self.running) < self.case.parallel
            and all(slots <= CAPACITY[name] for name, slots in taken.items())
            and not self.is_asked_to_stop
            and not (self.case.mode is Mode.STOP and self.failed)
        )

    def start_all_that_may(self) -> None:
        while possible := [node for node in self.case.dependencies if self.may_start(node)]:
            self.started.append(possible[0])

    def stop_cause(self) -> tuple[str, ...]:
        """Return what ended the walk early: in stop mode the first failure, unless we were asked before."""
        asked_at = self.case.stop_after if self.is_asked_to_stop else None
        first_failed_at = self.ended.index(self.failed[0]) if self.failed else None
        if self.case.mode is Mode.STOP and first_failed_at is not None:
            return () if asked_at is not None and asked_at <= first_failed_at else (self.failed[0],)
        return ()

    def check(self, node: str, end: Settled[str, str]) -> None:
        causes = tuple(n for n in self.case.dependencies if n in self.failed and n in self.ancestors(node))
        if node in self.failed:
            assert isinstance(end, Failed)
            assert str(end.error) == f"{node} broke"
        elif node in self.ended:
            assert isinstance(end, Done)
            assert end.value == node
        elif causes:
            assert end == Skipped(because=causes)
        else:
            assert end == NotStarted(because=self.stop_cause())


class HeldWork:
    """Work that ends when the test says so."""

    def __init__(self, broken: frozenset[str]) -> None:
        self.broken = broken
        self.started: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    async def __call__(self, node: str) -> str:
        self.started.append(node)
        self.gates[node] = asyncio.Event()
        await self.gates[node].wait()
        if node in self.broken:
            raise StackyardError(f"{node} broke")
        return node


async def play(case: Case, told: list[str]) -> tuple[Model, Results[str, str]]:
    """Walk and model side by side, and compare after every step."""
    model, work, stop = Model(case), HeldWork(case.broken), asyncio.Event()
    walking = asyncio.create_task(
        walk(
            Graph.from_dependencies(case.dependencies),
            work,
            parallel=case.limits,
            mode=case.mode,
            stop=stop,
            on_settled=lambda node, end: told.append(node),
        )
    )
    while True:
        if len(model.ended) == case.stop_after:
            stop.set()
            model.is_asked_to_stop = True
        for _ in range(TURNS_TO_QUIET):
            await asyncio.sleep(0)
        model.start_all_that_may()
        assert work.started == model.started
        if not model.running:
            return model, await walking
        assert not walking.done()
        ending = next(node for node in case.end_order if node in model.running)
        work.gates[ending].set()
        model.ended.append(ending)


@QUICK
@given(cases())
def test_walk_does_what_the_model_says(case: Case) -> None:
    told: list[str] = []
    model, results = asyncio.run(play(case, told))
    assert list(results.settled) == list(case.dependencies)
    for node, end in results.settled.items():
        model.check(node, end)
    assert sorted(told) == sorted(case.dependencies)
    for place, node in enumerate(told):
        assert case.dependencies[node] <= set(told[:place])
