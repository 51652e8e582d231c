from __future__ import annotations

import asyncio
import contextvars
import time

import pytest

from stackyard.base.dag import Graph
from stackyard.base.errors import StackyardError
from stackyard.base.schedule import Done, Failed, Mode, NotStarted, Results, Settled, Skipped, walk


class Bench:
    """Work whose ends the test decides: each node runs until it is let go."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.gates: dict[str, asyncio.Future[None]] = {}

    async def __call__(self, node: str) -> str:
        self.started.append(node)
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.gates[node] = gate
        await gate
        return node.upper()

    def finish(self, node: str) -> None:
        self.gates[node].set_result(None)

    def fail(self, node: str) -> None:
        self.gates[node].set_exception(StackyardError(f"{node} broke"))


async def quiet() -> None:
    """Give every task the turns it can use until all of them wait for the test."""
    for _ in range(10):
        await asyncio.sleep(0)


async def upper(node: str) -> str:
    return node.upper()


def failing(*broken: str) -> FailingWork:
    return FailingWork(frozenset(broken))


class FailingWork:
    def __init__(self, broken: frozenset[str]) -> None:
        self.broken = broken
        self.ran: list[str] = []

    async def __call__(self, node: str) -> str:
        self.ran.append(node)
        if node in self.broken:
            raise StackyardError(f"{node} broke")
        return node


def test_results_hold_every_value_in_insertion_order() -> None:
    graph = Graph.from_dependencies({"c": ["a"], "b": [], "a": ["b"]})
    results = asyncio.run(walk(graph, upper, parallel=2))
    assert results.is_done
    assert list(results.values.items()) == [("c", "C"), ("b", "B"), ("a", "A")]
    assert list(results.settled) == ["c", "b", "a"]
    assert results.errors == {}


def test_empty_graph_is_done_at_once() -> None:
    results = asyncio.run(walk(Graph[str].build([]), upper, parallel=1))
    assert results.is_done
    assert results.settled == {}


def test_one_at_a_time_follows_the_order_of_the_graph() -> None:
    graph = Graph.from_dependencies({"e": ["c"], "d": ["b"], "c": [], "b": ["a"], "a": []})
    work = failing()
    asyncio.run(walk(graph, work, parallel=1))
    assert tuple(work.ran) == graph.order == ("c", "e", "a", "b", "d")


def test_node_starts_as_soon_as_its_own_predecessors_are_done() -> None:
    graph = Graph.from_dependencies({"slow": [], "quick": [], "next": ["quick"], "last": ["next", "slow"]})
    work = Bench()

    async def scenario() -> Results[str, str]:
        walking = asyncio.create_task(walk(graph, work, parallel=4))
        await quiet()
        assert work.started == ["slow", "quick"]
        work.finish("quick")
        await quiet()
        assert work.started == ["slow", "quick", "next"]
        work.finish("next")
        await quiet()
        assert "last" not in work.started
        work.finish("slow")
        await quiet()
        work.finish("last")
        return await walking

    assert asyncio.run(scenario()).is_done


def test_no_more_than_parallel_run_at_once_and_a_free_place_is_taken_at_once() -> None:
    graph = Graph.build("abcde")
    work = Bench()

    async def scenario() -> None:
        walking = asyncio.create_task(walk(graph, work, parallel=2))
        await quiet()
        assert work.started == ["a", "b"]
        work.finish("b")
        await quiet()
        assert work.started == ["a", "b", "c"]
        for node in "acde":
            work.finish(node)
            await quiet()
        assert (await walking).is_done

    asyncio.run(scenario())
    assert work.started == ["a", "b", "c", "d", "e"]


def test_failed_node_skips_only_its_dependents() -> None:
    graph = Graph.from_dependencies(
        {"bad": [], "good": [], "child": ["bad"], "grandchild": ["child", "good"], "other": ["good"]}
    )
    work = failing("bad")
    results = asyncio.run(walk(graph, work, parallel=3))
    assert sorted(work.ran) == ["bad", "good", "other"]
    assert sorted(results.values) == ["good", "other"]
    assert not results.is_done


def test_skip_names_the_failed_node_and_not_the_skipped_ones_between() -> None:
    graph = Graph.from_dependencies({"bad": [], "child": ["bad"], "grandchild": ["child"]})
    results = asyncio.run(walk(graph, failing("bad"), parallel=1))
    assert results.settled["child"] == Skipped(because=("bad",))
    assert results.settled["grandchild"] == Skipped(because=("bad",))


def test_skip_names_every_root_cause_in_insertion_order_even_one_that_fails_later() -> None:
    graph = Graph.from_dependencies(
        {"late": [], "early": [], "between": ["early"], "end": ["between", "late"]}
    )
    work = Bench()

    async def scenario() -> Results[str, str]:
        walking = asyncio.create_task(walk(graph, work, parallel=2))
        await quiet()
        work.fail("early")
        await quiet()
        work.fail("late")
        return await walking

    results = asyncio.run(scenario())
    assert results.settled["between"] == Skipped(because=("early",))
    assert results.settled["end"] == Skipped(because=("late", "early"))


@pytest.mark.parametrize(
    "error", [StackyardError("refused"), ValueError("odd"), TimeoutError(), OSError(5, "io")]
)
def test_any_exception_fails_the_node_and_is_handed_on_unchanged(error: Exception) -> None:
    async def work(node: str) -> None:
        raise error

    results = asyncio.run(walk(Graph.build("a"), work, parallel=1))
    assert results.errors == {"a": error}


def test_work_that_raises_before_it_can_be_awaited_fails_the_node() -> None:
    error = LookupError("no such handler")

    def work(node: str) -> asyncio.Future[None]:
        raise error

    results = asyncio.run(walk(Graph.build("ab"), work, parallel=1))
    assert results.errors == {"a": error, "b": error}


def test_timeout_inside_work_is_a_failure_of_that_node_alone() -> None:
    async def work(node: str) -> str:
        if node == "slow":
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        return node

    graph = Graph.from_dependencies({"slow": [], "after": ["slow"], "other": []})
    results = asyncio.run(walk(graph, work, parallel=1))
    assert list(results.errors) == ["slow"]
    assert isinstance(results.errors["slow"], TimeoutError)
    assert results.values == {"other": "other"}


def test_elapsed_time_is_that_of_the_work() -> None:
    async def work(node: str) -> float:
        began_s = time.monotonic()
        await asyncio.sleep(0)
        return time.monotonic() - began_s

    began_s = time.monotonic()
    results = asyncio.run(walk(Graph.build("ab"), work, parallel=1))
    total_s = time.monotonic() - began_s
    for end in results.settled.values():
        assert isinstance(end, Done)
        assert end.value <= end.elapsed_s <= total_s


def test_each_node_is_told_once_as_it_settles_and_after_its_predecessors() -> None:
    graph = Graph.from_dependencies({"d": ["c"], "c": ["a"], "b": ["a"], "a": [], "e": []})
    told: list[tuple[str, Settled[str, str]]] = []
    results = asyncio.run(
        walk(graph, failing("c"), parallel=1, on_settled=lambda node, end: told.append((node, end)))
    )
    assert [node for node, _ in told] == ["a", "c", "d", "b", "e"]
    assert dict(told) == dict(results.settled)
    assert [type(end) for _, end in told] == [Done, Failed, Skipped, Done, Done]


def test_each_node_runs_in_the_context_of_the_walk_and_not_of_another_node() -> None:
    mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="nobody's")

    async def work(node: str) -> str:
        seen = mark.get()
        mark.set(node)
        return seen

    async def scenario() -> Results[str, str]:
        mark.set("the walk's")
        graph = Graph.from_dependencies({"a": [], "b": ["a"], "c": ["b"], "d": []})
        return await walk(graph, work, parallel=1)

    assert set(asyncio.run(scenario()).values.values()) == {"the walk's"}


def test_results_cannot_be_changed() -> None:
    results = asyncio.run(walk(Graph.build("a"), upper, parallel=1))
    with pytest.raises(TypeError):
        results.settled["a"] = NotStarted(because=())  # type: ignore[index]


def test_skips_run_down_a_chain_of_100000_nodes() -> None:
    length = 100_000
    graph = Graph.build(range(length), ((node, node - 1) for node in range(1, length)))

    async def work(node: int) -> None:
        raise StackyardError("broke")

    results = asyncio.run(walk(graph, work, parallel=8, mode=Mode.CONTINUE))
    assert list(results.errors) == [0]
    assert results.settled[length - 1] == Skipped(because=(0,))
    assert results.settled[length - 1] is results.settled[1]
    assert len(results.settled) == length
