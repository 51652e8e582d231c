from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from stackyard.base.dag import Graph
from stackyard.base.errors import ExitStatus
from stackyard.base.schedule import LimitError, ScheduleLimits, UnknownResourceError, walk


class Recorder:
    """Work that gives every other task a turn and records who ran together with whom."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.started: list[str] = []
        self.together: list[frozenset[str]] = []

    async def __call__(self, node: str) -> None:
        self.running.add(node)
        self.started.append(node)
        self.together.append(frozenset(self.running))
        for _ in range(3):
            await asyncio.sleep(0)
        self.running.remove(node)

    def most_at_once(self, *nodes: str) -> int:
        return max(len(running & set(nodes)) for running in self.together)


def limits(parallel: int, capacity: Mapping[str, int], needs: Mapping[str, list[str]]) -> ScheduleLimits[str]:
    return ScheduleLimits(parallel=parallel, capacity=capacity, needs=lambda node: needs.get(node, []))


def test_resource_is_never_shared_by_more_nodes_than_its_capacity() -> None:
    work = Recorder()
    needs = {node: ["disk"] for node in "abcdef"}
    results = asyncio.run(walk(Graph.build("abcdefgh"), work, parallel=limits(8, {"disk": 2}, needs)))
    assert results.is_done
    assert work.most_at_once(*"abcdef") == 2


def test_node_that_waits_for_a_resource_does_not_hold_up_the_others() -> None:
    work = Recorder()
    needs = {"a": ["disk"], "b": ["disk"], "c": ["disk"]}
    asyncio.run(walk(Graph.build("abcdef"), work, parallel=limits(3, {"disk": 1}, needs)))
    assert work.started[:3] == ["a", "d", "e"]
    assert frozenset("ade") in work.together


def test_waiting_node_goes_first_once_its_resource_is_free() -> None:
    work = Recorder()
    needs = {"a": ["disk"], "b": ["disk"]}
    asyncio.run(walk(Graph.build("abcdef"), work, parallel=limits(2, {"disk": 1}, needs)))
    assert work.started.index("b") < work.started.index("d")


def test_nodes_that_need_the_same_resources_in_opposite_order_do_not_deadlock() -> None:
    work = Recorder()
    needs = {node: ["left", "right"] if node in "ace" else ["right", "left"] for node in "abcdef"}
    results = asyncio.run(
        walk(Graph.build("abcdef"), work, parallel=limits(6, {"left": 1, "right": 1}, needs))
    )
    assert results.is_done
    assert work.most_at_once(*"abcdef") == 1


def test_node_that_waits_for_one_resource_does_not_hold_another() -> None:
    work = Recorder()
    needs = {"a": ["left"], "b": ["left", "right"], "c": ["right"]}
    asyncio.run(walk(Graph.build("abc"), work, parallel=limits(3, {"left": 1, "right": 1}, needs)))
    assert work.started == ["a", "c", "b"]
    assert frozenset("ac") in work.together


def test_resource_named_twice_takes_two_slots() -> None:
    work = Recorder()
    needs = {"a": ["disk", "disk"], "b": ["disk"], "c": ["disk"]}
    asyncio.run(walk(Graph.build("abc"), work, parallel=limits(3, {"disk": 2}, needs)))
    assert work.most_at_once("a", "b") == work.most_at_once("a", "c") == 1
    assert work.most_at_once("b", "c") == 2


def test_failed_node_gives_its_resource_back() -> None:
    async def work(node: str) -> None:
        if node == "a":
            raise OSError("broke")

    needs = {"a": ["disk"], "b": ["disk"]}
    results = asyncio.run(walk(Graph.build("ab"), work, parallel=limits(2, {"disk": 1}, needs)))
    assert list(results.values) == ["b"]


def test_unused_capacity_is_no_error() -> None:
    results = asyncio.run(walk(Graph.build("a"), Recorder(), parallel=limits(1, {"disk": 0}, {})))
    assert results.is_done


def test_every_unknown_resource_is_named_before_anything_starts() -> None:
    work = Recorder()
    needs = {"b": ["disc"], "c": ["disk", "tape"]}
    with pytest.raises(UnknownResourceError) as caught:
        asyncio.run(walk(Graph.build("abc"), work, parallel=limits(1, {"disk": 1}, needs)))
    assert caught.value.detail == "b needs disc, which has no limit. c needs tape, which has no limit."
    assert work.started == []


def test_every_need_above_capacity_is_named_before_anything_starts() -> None:
    work = Recorder()
    needs = {"b": ["disk", "disk"], "c": ["tape"]}
    with pytest.raises(LimitError) as caught:
        asyncio.run(walk(Graph.build("abc"), work, parallel=limits(1, {"disk": 1, "tape": 0}, needs)))
    assert caught.value.detail == "b needs 2 of disk, which has 1. c needs 1 of tape, which has 0."
    assert work.started == []


@pytest.mark.parametrize("parallel", [0, -1, limits(0, {}, {})])
def test_no_room_for_any_node_is_refused_before_anything_starts(parallel: int | ScheduleLimits[str]) -> None:
    work = Recorder()
    with pytest.raises(LimitError, match="at least 1"):
        asyncio.run(walk(Graph.build("a"), work, parallel=parallel))
    assert work.started == []


def test_limit_errors_are_invalid_input_with_codes_of_their_own() -> None:
    assert LimitError.exit_status is UnknownResourceError.exit_status is ExitStatus.INVALID
    assert LimitError.code != UnknownResourceError.code
