"""The ways a walk ends early: a failure in stop mode, a request, a cancellation, an error of no node."""

from __future__ import annotations

import asyncio

import pytest

from stackyard.base.dag import Graph
from stackyard.base.errors import StackyardError
from stackyard.base.schedule import Done, Mode, NotStarted, Results, ScheduleLimits, Settled, Skipped, walk


class Ledger:
    """Work that waits for the test and writes down what happens to it."""

    def __init__(self, *, swallows: bool = False) -> None:
        self.lines: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.broken: set[str] = set()
        self._swallows = swallows

    async def __call__(self, node: str) -> str:
        self.lines.append(f"{node} began")
        gate = self.gates.setdefault(node, asyncio.Event())
        try:
            await gate.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # Cleaning up takes turns of its own.
            self.lines.append(f"{node} cleaned up")
            if not self._swallows:
                raise
        if node in self.broken:
            raise StackyardError(f"{node} broke")
        self.lines.append(f"{node} ended")
        return node

    def let_go(self, *nodes: str) -> None:
        for node in nodes:
            self.gates.setdefault(node, asyncio.Event()).set()


async def quiet() -> None:
    """Give every task the turns it can use until all of them wait for the test."""
    for _ in range(10):
        await asyncio.sleep(0)


def only_task_left() -> bool:
    return asyncio.all_tasks() == {asyncio.current_task()}


def test_stop_mode_starts_nothing_after_the_first_failure_and_finishes_what_runs() -> None:
    graph = Graph.from_dependencies({"bad": [], "runs": [], "waits": [], "after": ["runs"], "child": ["bad"]})

    async def scenario() -> tuple[list[str], Results[str, str]]:
        work = Ledger()
        work.broken.add("bad")
        walking = asyncio.create_task(walk(graph, work, parallel=2, mode=Mode.STOP))
        await quiet()
        work.let_go("bad")
        await quiet()
        assert not walking.done()
        work.let_go("runs")
        return work.lines, await walking

    lines, results = asyncio.run(scenario())
    assert lines == ["bad began", "runs began", "runs ended"]
    assert list(results.errors) == ["bad"]
    assert results.values == {"runs": "runs"}
    assert results.settled["waits"] == NotStarted(because=("bad",))
    assert results.settled["after"] == NotStarted(because=("bad",))
    assert results.settled["child"] == Skipped(because=("bad",))


def test_stop_mode_holds_back_nodes_that_were_due_in_the_same_turn_as_the_failure() -> None:
    ran: list[str] = []

    async def work(node: str) -> None:
        ran.append(node)
        raise StackyardError("broke at once")

    results = asyncio.run(walk(Graph.build("abcd"), work, parallel=4, mode=Mode.STOP))
    assert ran == ["a"]
    assert [results.settled[node] for node in "bcd"] == [NotStarted(because=("a",))] * 3


def test_stop_mode_skips_the_dependents_of_a_second_failure_by_its_own_name() -> None:
    graph = Graph.from_dependencies(
        {"first": [], "second": [], "child": ["second"], "both": ["first", "child"]}
    )

    async def scenario() -> Results[str, str]:
        work = Ledger()
        work.broken |= {"first", "second"}
        walking = asyncio.create_task(walk(graph, work, parallel=2, mode=Mode.STOP))
        await quiet()
        work.let_go("first")
        await quiet()
        work.let_go("second")
        return await walking

    results = asyncio.run(scenario())
    assert list(results.errors) == ["first", "second"]
    assert results.settled["child"] == Skipped(because=("second",))
    assert results.settled["both"] == Skipped(because=("first", "second"))


def test_what_never_started_names_the_failure_that_stopped_the_walk_and_not_a_later_one() -> None:
    graph = Graph.from_dependencies({"first": [], "second": [], "runs": [], "after": ["runs"]})

    async def scenario() -> Results[str, str]:
        work = Ledger()
        work.broken |= {"first", "second"}
        walking = asyncio.create_task(walk(graph, work, parallel=3, mode=Mode.STOP))
        for node in ("second", "first", "runs"):
            await quiet()
            work.let_go(node)
        return await walking

    results = asyncio.run(scenario())
    assert list(results.errors) == ["first", "second"]
    assert results.settled["after"] == NotStarted(because=("second",))


def test_what_never_started_is_told_in_insertion_order() -> None:
    told: list[str] = []

    async def scenario() -> None:
        stop = asyncio.Event()
        stop.set()
        limits: ScheduleLimits[str] = ScheduleLimits(
            parallel=1, capacity={"odd": 1}, needs=lambda node: ["odd"] if node in "ace" else []
        )
        await walk(
            Graph.build("abcdef"),
            Ledger(),
            parallel=limits,
            stop=stop,
            on_settled=lambda node, end: told.append(node),
        )

    asyncio.run(scenario())
    assert "".join(told) == "abcdef"


def test_request_to_stop_starts_nothing_new_and_finishes_what_runs() -> None:
    graph = Graph.from_dependencies({"runs": [], "after": ["runs"], "waits": []})

    async def scenario() -> tuple[list[str], Results[str, str]]:
        work = Ledger()
        stop = asyncio.Event()
        walking = asyncio.create_task(walk(graph, work, parallel=1, stop=stop))
        await quiet()
        stop.set()
        await quiet()
        assert not walking.done()
        work.let_go("runs")
        return work.lines, await walking

    lines, results = asyncio.run(scenario())
    assert lines == ["runs began", "runs ended"]
    assert isinstance(results.settled["runs"], Done)
    assert results.settled["after"] == results.settled["waits"] == NotStarted(because=())
    assert not results.is_done


def test_request_to_stop_that_came_before_the_walk_starts_nothing() -> None:
    async def scenario() -> tuple[list[str], Results[str, str]]:
        work = Ledger()
        stop = asyncio.Event()
        stop.set()
        return work.lines, await walk(Graph.build("ab", [("b", "a")]), work, parallel=1, stop=stop)

    lines, results = asyncio.run(scenario())
    assert lines == []
    assert set(results.settled.values()) == {NotStarted(because=())}


def test_failure_after_a_request_to_stop_still_skips_its_dependents() -> None:
    graph = Graph.from_dependencies({"bad": [], "child": ["bad"], "waits": []})

    async def scenario() -> Results[str, str]:
        work = Ledger()
        work.broken.add("bad")
        stop = asyncio.Event()
        walking = asyncio.create_task(walk(graph, work, parallel=1, stop=stop))
        await quiet()
        stop.set()
        work.let_go("bad")
        return await walking

    results = asyncio.run(scenario())
    assert results.settled["child"] == Skipped(because=("bad",))
    assert results.settled["waits"] == NotStarted(because=())


def test_cancellation_waits_for_running_work_to_clean_up_and_leaves_no_task_behind() -> None:
    async def scenario() -> list[str]:
        work = Ledger()
        walking = asyncio.create_task(walk(Graph.build("abc"), work, parallel=2))
        await quiet()
        walking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await walking
        assert only_task_left()
        return work.lines

    lines = asyncio.run(scenario())
    assert lines[:2] == ["a began", "b began"]
    assert sorted(lines[2:]) == ["a cleaned up", "b cleaned up"]


def test_cancellation_starts_nothing_even_if_work_carries_on_and_still_ends_cancelled() -> None:
    told: dict[str, Settled[str, str]] = {}

    async def scenario() -> list[str]:
        work = Ledger(swallows=True)
        graph = Graph.from_dependencies({"a": [], "b": ["a"], "c": []})
        walking = asyncio.create_task(walk(graph, work, parallel=1, on_settled=told.__setitem__))
        await quiet()
        walking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await walking
        assert only_task_left()
        return work.lines

    assert asyncio.run(scenario()) == ["a began", "a cleaned up", "a ended"]
    assert isinstance(told["a"], Done)
    assert told["b"] == told["c"] == NotStarted(because=())


def test_second_cancellation_does_not_cut_the_cleaning_up_short() -> None:
    async def scenario() -> list[str]:
        lines: list[str] = []
        may_clean_up = asyncio.Event()

        async def work(node: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await may_clean_up.wait()
                lines.append("cleaned up")

        walking = asyncio.create_task(walk(Graph.build("a"), work, parallel=1))
        await quiet()
        walking.cancel()
        await quiet()
        walking.cancel()
        await quiet()
        assert not walking.done()
        may_clean_up.set()
        with pytest.raises(asyncio.CancelledError):
            await walking
        assert only_task_left()
        return lines

    assert asyncio.run(scenario()) == ["cleaned up"]


def test_walk_can_clean_up_in_a_task_that_was_cancelled_before() -> None:
    async def work(node: str) -> str:
        return node

    async def cleans_up() -> Results[str, str]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return await walk(Graph.build("ab", [("b", "a")]), work, parallel=1)
        raise AssertionError("was not cancelled")

    async def scenario() -> Results[str, str]:
        cleaning = asyncio.create_task(cleans_up())
        await quiet()
        cleaning.cancel()
        return await cleaning

    assert asyncio.run(scenario()).is_done


def test_timeout_around_a_walk_ends_it_as_a_timeout() -> None:
    async def scenario() -> list[str]:
        ledger = Ledger()
        limit = asyncio.timeout(None)

        async def work(node: str) -> str:
            limit.reschedule(asyncio.get_running_loop().time())
            return await ledger(node)

        async def limited_walk() -> None:
            async with limit:
                await walk(Graph.build("ab"), work, parallel=1)

        with pytest.raises(TimeoutError):
            await limited_walk()
        assert only_task_left()
        return ledger.lines

    assert asyncio.run(scenario()) == ["a began", "a cleaned up"]


def test_work_cancelled_on_its_own_is_no_failure_and_ends_the_walk_cancelled() -> None:
    told: dict[str, Settled[str, str]] = {}

    async def scenario() -> list[str]:
        ledger = Ledger()

        async def work(node: str) -> str:
            if node == "cancelled":
                raise asyncio.CancelledError
            return await ledger(node)

        graph = Graph.from_dependencies({"runs": [], "cancelled": [], "child": ["cancelled"], "waits": []})
        walking = asyncio.create_task(walk(graph, work, parallel=2, on_settled=told.__setitem__))
        await quiet()
        assert not walking.done()
        ledger.let_go("runs")
        with pytest.raises(asyncio.CancelledError):
            await walking
        assert only_task_left()
        return ledger.lines

    assert asyncio.run(scenario()) == ["runs began", "runs ended"]
    assert list(told) == ["runs", "waits"]


@pytest.mark.parametrize("swallows", [False, True])
def test_error_of_on_settled_cancels_the_walk_and_is_raised_by_its_own_name(swallows: bool) -> None:
    def broken_view(node: str, end: Settled[str, str]) -> None:
        raise OSError("the screen is gone")

    async def scenario() -> list[str]:
        work = Ledger(swallows=swallows)
        walking = asyncio.create_task(walk(Graph.build("abc"), work, parallel=2, on_settled=broken_view))
        await quiet()
        work.let_go("a")
        with pytest.raises(OSError, match="the screen is gone"):
            await walking
        assert only_task_left()
        return work.lines

    lines = asyncio.run(scenario())
    assert "b cleaned up" in lines
    assert "c began" not in lines


def test_base_exception_of_work_cancels_the_walk_and_is_raised_by_its_own_name() -> None:
    class PowerCutError(BaseException):
        pass

    async def scenario() -> list[str]:
        ledger = Ledger()

        async def work(node: str) -> str:
            if node == "b":
                raise PowerCutError
            return await ledger(node)

        with pytest.raises(PowerCutError):
            await walk(Graph.build("ab"), work, parallel=2)
        assert only_task_left()
        return ledger.lines

    assert asyncio.run(scenario()) == ["a began", "a cleaned up"]
