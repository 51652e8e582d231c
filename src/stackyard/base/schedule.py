"""An async walk over a `dag.Graph`: each node's work starts as soon as all its predecessors are done.

Failures are values. A node whose work failed skips its dependents and only these, and each skip names the
nodes that failed, not the ones skipped in between. How many nodes run at once is bounded, in all and per
resource. Of the nodes that could start, the one inserted first in the graph does; with one at a time that
gives `Graph.order`. Nothing here knows what a node is, prints, or waits for a clock.
"""

from __future__ import annotations

import asyncio
import contextvars
import enum
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from stackyard.base.errors import InvalidInputError

if TYPE_CHECKING:
    from stackyard.base.dag import Graph

__all__ = [
    "Done",
    "Failed",
    "LimitError",
    "Mode",
    "NotStarted",
    "Results",
    "ScheduleLimits",
    "Settled",
    "Skipped",
    "UnknownResourceError",
    "walk",
]

V = TypeVar("V", bound=Hashable)
R = TypeVar("R")


class LimitError(InvalidInputError):
    """A limit leaves no room for a node: nothing at once, or a capacity below what a node needs."""

    code = "E-SCHEDULE-LIMIT"
    summary = "A limit leaves no room to run"
    default_remedy = "Raise the limit; each must allow at least one, and whatever a single node needs."


class UnknownResourceError(LimitError):
    """A node needs a resource for which no capacity is given."""

    code = "E-SCHEDULE-RESOURCE"
    summary = "A node needs a resource without a limit"
    default_remedy = "Correct the name of the resource, or give it a capacity."


class Mode(enum.StrEnum):
    """What a failure does to nodes that do not depend on it."""

    CONTINUE = "continue"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Generic[R]):
    """The work of a node returned."""

    value: R
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The work of a node raised."""

    error: Exception
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped(Generic[V]):
    """A node never started, because of every failed node that it depends on, in insertion order."""

    because: tuple[V, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStarted(Generic[V]):
    """A node never started because the walk stopped first; nothing that it depends on failed.

    Attributes:
        because: The node whose failure stopped the walk (`Mode.STOP`), or nothing when it was asked to stop.
    """

    because: tuple[V, ...]


Settled: TypeAlias = Skipped[V] | NotStarted[V] | Done[R] | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleLimits(Generic[V]):
    """How many nodes run at once, in all and per resource.

    A node starts when it gets everything it needs, and holds nothing while it waits; so nodes cannot block
    each other for good, and one that waits for a resource holds up no one who does not need it.

    Attributes:
        parallel: How many nodes run at once in all.
        capacity: For each resource, how many slots it has.
        needs: The resources that a node takes a slot of while it runs; named twice, it takes two.
    """

    parallel: int
    capacity: Mapping[str, int]
    needs: Callable[[V], Iterable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Results(Generic[V, R]):
    """How each node of a walk ended; `settled` has every node of the graph, in insertion order."""

    settled: Mapping[V, Settled[V, R]]

    @property
    def is_done(self) -> bool:
        """Whether the work of every node returned."""
        return all(isinstance(end, Done) for end in self.settled.values())

    @property
    def values(self) -> dict[V, R]:
        """What the work of each done node returned."""
        return {node: end.value for node, end in self.settled.items() if isinstance(end, Done)}

    @property
    def errors(self) -> dict[V, Exception]:
        """What the work of each failed node raised."""
        return {node: end.error for node, end in self.settled.items() if isinstance(end, Failed)}


async def walk(
    graph: Graph[V],
    work: Callable[[V], Awaitable[R]],
    *,
    parallel: int | ScheduleLimits[V],
    mode: Mode = Mode.CONTINUE,
    stop: asyncio.Event | None = None,
    on_settled: Callable[[V, Settled[V, R]], None] | None = None,
) -> Results[V, R]:
    """Run the work of every node, each after all it depends on, and return how each ended.

    Each node runs in a task and context of its own. Cancelling the walk cancels what runs, waits until it has
    cleaned up and raises `CancelledError`; `on_settled` has then told all there is. Work that ends cancelled
    on its own ends the walk alike, once the nodes that run have ended.

    Args:
        graph: What to walk.
        work: What to do with a node. An `Exception` that it raises makes the node `Failed`.
        parallel: How many nodes run at once, or this and limits per resource.
        mode: What a failure does to nodes that do not depend on it: they continue, or nothing new starts.
        stop: Once this is set nothing new starts; what runs continues to its end.
        on_settled: Told of each node as it settles, always after its predecessors. If it raises, the walk is
            cancelled and raises the same.

    Raises:
        LimitError: A limit leaves no room for some node; nothing was started.
    """
    ready = _Ready.within(parallel, graph.nodes)
    is_over = _make_stop_check(stop)
    state = _Walk(graph=graph, work=work, ready=ready, mode=mode, is_over=is_over, on_settled=on_settled)
    return await state.run()


def _make_stop_check(stop: asyncio.Event | None) -> Callable[[], bool]:
    """Return a check whether the walk that begins now was asked to stop, or its task cancelled."""
    task = asyncio.current_task()
    # A walk that cleans up after a cancellation begins in a task that was cancelled before.
    earlier = task.cancelling() if task else 0
    return lambda: bool((stop and stop.is_set()) or (task and task.cancelling() > earlier))


# What a node needs, as (resource, slots) sorted by resource.
_Needs: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(slots=True)
class _Queue:
    """The ready nodes with the same needs, as a heap of positions."""

    needs: _Needs
    heap: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Ready:
    """The nodes that could start now, and the room to run them.

    There is one queue for each set of needs: if its first does not fit, none of it does, so that a long line
    for a busy resource costs the others nothing.
    """

    room: int
    free: dict[str, int]
    queues: tuple[_Queue, ...]
    queue_of: tuple[_Queue, ...]

    @classmethod
    def within(cls, limits: int | ScheduleLimits[V], nodes: tuple[V, ...]) -> _Ready:
        """Check the limits against the nodes and return a line with no one in it."""
        parallel = limits if isinstance(limits, int) else limits.parallel
        if parallel < 1:
            raise LimitError(f"{parallel} nodes at once were allowed; it takes at least 1.")
        if isinstance(limits, int):
            capacity: Mapping[str, int] = {}
            needs_of: list[_Needs] = [()] * len(nodes)
        else:
            capacity = limits.capacity
            needs_of = [tuple(sorted(Counter(limits.needs(node)).items())) for node in nodes]
            _check_needs(capacity, nodes, needs_of)
        queues = {needs: _Queue(needs) for needs in needs_of}
        queue_of = tuple([queues[needs] for needs in needs_of])
        return cls(room=parallel, free=dict(capacity), queues=tuple(queues.values()), queue_of=queue_of)

    def add(self, position: int) -> None:
        """Put a node in line."""
        heappush(self.queue_of[position].heap, position)

    def take(self) -> int | None:
        """Take the first node that there is room for, and the room with it."""
        first: _Queue | None = None
        for queue in self.queues if self.room else ():
            if queue.heap and (first is None or queue.heap[0] < first.heap[0]) and self._fits(queue.needs):
                first = queue
        if first is None:
            return None
        self.room -= 1
        for name, slots in first.needs:
            self.free[name] -= slots
        return heappop(first.heap)

    def give_back(self, position: int) -> None:
        """Free the room of a node that was taken."""
        self.room += 1
        for name, slots in self.queue_of[position].needs:
            self.free[name] += slots

    def drain(self) -> list[int]:
        """Take everyone out of line, in order."""
        waiting: list[int] = []
        for queue in self.queues:
            waiting += queue.heap
            queue.heap.clear()
        return sorted(waiting)

    def _fits(self, needs: _Needs) -> bool:
        return all(self.free[name] >= slots for name, slots in needs)


def _check_needs(capacity: Mapping[str, int], nodes: Iterable[object], needs_of: Iterable[_Needs]) -> None:
    """Refuse needs that could never be met, naming all of them."""
    unknown: list[str] = []
    excess: list[str] = []
    for node, needs in zip(nodes, needs_of, strict=True):
        for name, slots in needs:
            if name not in capacity:
                unknown.append(f"{node} needs {name}, which has no limit.")
            elif slots > capacity[name]:
                excess.append(f"{node} needs {slots} of {name}, which has {capacity[name]}.")
    if unknown:
        raise UnknownResourceError(" ".join(unknown))
    if excess:
        raise LimitError(" ".join(excess))


@dataclass(slots=True, kw_only=True)
class _Walk(Generic[V, R]):
    """A walk under way; nodes are positions in `graph.nodes`.

    Every node settles exactly once, after all its predecessors. So a skip knows all its causes, whatever the
    timing, and when nothing runs any more everything has settled.
    """

    graph: Graph[V]
    work: Callable[[V], Awaitable[R]]
    ready: _Ready
    mode: Mode
    is_over: Callable[[], bool]
    on_settled: Callable[[V, Settled[V, R]], None] | None
    group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    settled: dict[int, Settled[V, R]] = field(default_factory=dict)
    # How many predecessors of each node have not settled.
    missing: list[int] = field(init=False)
    # What each failed or skipped node makes of its dependents.
    skips: dict[int, Skipped[V]] = field(default_factory=dict)
    # What becomes of all that has not started, once nothing new may start.
    stopped: NotStarted[V] | None = None

    def __post_init__(self) -> None:
        self.missing = [len(needed) for needed in self.graph.predecessor_positions]
        for position, count in enumerate(self.missing):
            if not count:
                self.ready.add(position)

    async def run(self) -> Results[V, R]:
        """Walk to the end."""
        try:
            async with self.group:
                self.start_ready()
        except BaseExceptionGroup as ended:
            # A failed node is a value; this ended the walk itself: `on_settled` raised, or work did with
            # something that is no `Exception`. The caller knows either by its own name, not in a group.
            raise ended.exceptions[0] from None
        if len(self.settled) < len(self.graph):
            raise asyncio.CancelledError("the work of a node was cancelled")
        by_node = {node: self.settled[position] for position, node in enumerate(self.graph.nodes)}
        return Results(settled=MappingProxyType(by_node))

    def check_stop(self) -> NotStarted[V] | None:
        """Return how nodes that have not started settle from now on, if the walk is stopped."""
        if self.stopped is None and self.is_over():
            self.stopped = NotStarted(because=())
        return self.stopped

    def start_ready(self) -> None:
        """Start all that there is room for, or settle all that waits once the walk is stopped."""
        if (stopped := self.check_stop()) is not None:
            for position in self.ready.drain():
                self.settle(position, stopped)
            return
        while (taken := self.ready.take()) is not None:
            # We may be in the task of the node before; its context variables are none of the next one's.
            self.group.create_task(self.run_node(taken), context=self.context.copy())

    async def run_node(self, position: int) -> None:
        """Take one node from its start to what its end makes possible."""
        end = await self.attempt(self.graph.nodes[position])
        self.ready.give_back(position)
        self.settle(position, end)
        self.start_ready()

    async def attempt(self, node: V) -> Settled[V, R]:
        """Do the work of a node and return how that ended."""
        if (stopped := self.check_stop()) is not None:
            return stopped  # The walk was stopped after this task was created, before its first turn.
        began_s = time.monotonic()
        try:
            value = await self.work(node)
        except asyncio.CancelledError:
            # Not a failure of the node: the walk is over, no matter who cancelled it.
            self.stopped = self.stopped or NotStarted(because=())
            raise
        except Exception as err:
            # The edge to work of any kind: whatever goes wrong in one node must not take down the others. It
            # is handed on unchanged to the caller, who knows what may be raised.
            return Failed(error=err, elapsed_s=time.monotonic() - began_s)
        return Done(value=value, elapsed_s=time.monotonic() - began_s)

    def settle(self, position: int, end: Settled[V, R]) -> None:
        """Record how a node ended, and settle or make ready whatever waited for that alone."""
        settling: deque[tuple[int, Settled[V, R]]] = deque([(position, end)])
        while settling:
            position, end = settling.popleft()
            self.record(position, end)
            for following in self.graph.successor_positions[position]:
                self.missing[following] -= 1
                if self.missing[following]:
                    continue
                if (verdict := self.judge(following)) is None:
                    self.ready.add(following)
                else:
                    settling.append((following, verdict))

    def record(self, position: int, end: Settled[V, R]) -> None:
        """Keep the end of a node and tell of it; a failure becomes the skip of its dependents."""
        node = self.graph.nodes[position]
        self.settled[position] = end
        if isinstance(end, Failed):
            self.skips[position] = Skipped(because=(node,))
            if self.mode is Mode.STOP and self.stopped is None:
                self.stopped = NotStarted(because=(node,))
        elif isinstance(end, Skipped):
            self.skips[position] = end
        if self.on_settled is not None:
            self.on_settled(node, end)

    def judge(self, position: int) -> Skipped[V] | NotStarted[V] | None:
        """Return why a node whose predecessors have all settled must not start, or nothing if it may."""
        needed = self.graph.predecessor_positions[position] if self.skips else ()
        skips = [self.skips[predecessor] for predecessor in needed if predecessor in self.skips]
        if not skips:
            return self.stopped
        causes = {cause for skip in skips for cause in skip.because}
        if len(causes) == len(skips[0].because):
            return skips[0]  # Mostly there is one cause, and then all that is behind it shares one value.
        return Skipped(because=tuple(sorted(causes, key=self.graph.position)))
