"""Affinity rules joined and compiled, and the choice of a node that follows."""

from __future__ import annotations

from typing import Any

import pytest

from pvelab.world.ha.placement import PlacementRequest, choose_node
from pvelab.world.ha.rules import Rule, check_rules, compile_rules, parse_nodes, print_nodes

NODES = ["a", "b", "c"]


def together(*resources: str) -> Rule:
    return Rule(type="resource-affinity", resources=set(resources), positive=True)


def apart(*resources: str) -> Rule:
    return Rule(type="resource-affinity", resources=set(resources), positive=False)


def on(nodes: str, *resources: str, strict: bool = False) -> Rule:
    return Rule(type="node-affinity", resources=set(resources), nodes=parse_nodes(nodes), strict=strict)


def started(**nodes: str) -> dict[str, dict[str, Any]]:
    return {name: {"state": "started", "node": node} for name, node in nodes.items()}


def test_who_belongs_together_shares_places_and_enemies() -> None:
    rules = {"r1": together("x", "y"), "r2": together("y", "z"), "r3": apart("x", "w"), "r4": on("a", "z")}
    affinity = compile_rules(rules, NODES)
    assert affinity.together["x"] == {"y", "z"}
    assert affinity.apart["w"] == {"x", "y", "z"}
    assert affinity.nodes["x"] == {"a": 0, "b": -1, "c": -1}


@pytest.mark.parametrize(
    ("rules", "broken"),
    [
        ({"r1": together("x")}, {"r1"}),
        ({"r1": apart("w", "x", "y", "z")}, {"r1"}),
        ({"r1": together("x", "y"), "r2": apart("x", "y")}, {"r1", "r2"}),
        ({"r1": on("a", "x"), "r2": on("b", "x")}, {"r1", "r2"}),
        ({"r1": on("a:1,b", "x"), "r2": together("x", "y")}, {"r1", "r2"}),
        ({"r1": on("a", "x"), "r2": on("b", "y"), "r3": together("x", "y")}, {"r1", "r2", "r3"}),
        ({"r1": on("a", "x", "y"), "r2": apart("x", "y")}, {"r1", "r2"}),
        ({"r1": on("a,b", "x", "y"), "r2": apart("x", "y")}, set[str]()),
    ],
)
def test_rules_that_cannot_be_kept_are_found(rules: dict[str, Rule], broken: set[str]) -> None:
    assert set(check_rules(rules, NODES)) == broken
    affinity = compile_rules(rules, NODES)
    if broken == set(rules):
        assert not affinity.nodes
        assert not affinity.together
        assert not affinity.apart


@pytest.mark.parametrize(
    ("rules", "services", "wish", "chosen"),
    [
        ({}, started(x="a"), PlacementRequest.STAY, "a"),
        ({}, started(x="a", y="a", z="b"), PlacementRequest.BEST, "c"),
        ({"r1": on("b,c:2", "x")}, started(x="a"), PlacementRequest.STAY, "c"),
        ({"r1": on("b", "x")}, started(x="a"), PlacementRequest.STAY, "b"),
        ({"r1": together("x", "y")}, started(x="a", y="b"), PlacementRequest.STAY, "b"),
        ({"r1": apart("x", "y")}, started(x="a", y="a"), PlacementRequest.STAY, "b"),
        (
            {},
            {"x": {"state": "started", "node": "a", "failed_nodes": ["a", "b"]}},
            PlacementRequest.NEXT,
            "c",
        ),
        (
            {},
            {"x": {"state": "started", "node": "a", "failed_nodes": ["a", "b", "c"]}},
            PlacementRequest.NEXT,
            None,
        ),
    ],
)
def test_a_node_is_chosen(
    rules: dict[str, Rule], services: dict[str, dict[str, Any]], wish: PlacementRequest, chosen: str | None
) -> None:
    affinity = compile_rules(rules, NODES)
    assert choose_node(affinity, NODES, services, "x", failback=True, wish=wish) == chosen


def test_without_failback_a_resource_stays_where_it_is_allowed() -> None:
    affinity = compile_rules({"r1": on("b", "x")}, NODES)
    assert (
        choose_node(affinity, NODES, started(x="a"), "x", failback=False, wish=PlacementRequest.STAY) == "a"
    )
    strict = compile_rules({"r1": on("b", "x", strict=True)}, NODES)
    assert choose_node(strict, NODES, started(x="a"), "x", failback=False, wish=PlacementRequest.STAY) == "b"
    assert (
        choose_node(strict, ["a", "c"], started(x="a"), "x", failback=True, wish=PlacementRequest.BEST)
        is None
    )


def test_nodes_are_printed_in_order_with_their_priorities() -> None:
    assert print_nodes(parse_nodes("c,a:3,b:0")) == "a:3,b,c"
