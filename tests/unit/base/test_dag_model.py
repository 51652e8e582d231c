"""Random graphs against a brute-force model that follows the definitions and nothing else."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stackyard.base.dag import CycleError, Graph, SelfLoopError

# How long drawing takes says something about the machine, not about us.
QUICK = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Nodes in insertion order and edges (node, predecessor), which may form cycles or not."""

    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]

    def predecessors(self, node: str) -> set[str]:
        return {needed for depending, needed in self.edges if depending == node}

    def reaches(self) -> set[tuple[str, str]]:
        """Close the edges transitively, by joining pairs until nothing is new."""
        closed = set(self.edges)
        while True:
            joined = {(a, d) for a, b in closed for c, d in closed if b == c}
            if joined <= closed:
                return closed
            closed |= joined

    def order(self) -> tuple[str, ...]:
        """Take the first node that lacks nothing, again and again."""
        order: list[str] = []
        while len(order) < len(self.nodes):
            order.append(next(n for n in self.nodes if n not in order and self.predecessors(n) <= set(order)))
        return tuple(order)

    def rank(self, node: str) -> int:
        return max((self.rank(needed) + 1 for needed in self.predecessors(node)), default=0)


@st.composite
def drawn_graphs(draw: st.DrawFn, *, acyclic: bool, fewest: int = 0) -> Drawn:
    count = draw(st.integers(fewest, 7))
    names = [chr(ord("a") + index) for index in range(count)]
    pairs = [(x, y) for x in names for y in names if (x > y if acyclic else x != y)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else []
    return Drawn(nodes=tuple(draw(st.permutations(names))), edges=tuple(edges))


@QUICK
@given(drawn_graphs(acyclic=True))
def test_order_is_the_one_that_takes_the_first_possible_node_each_time(drawn: Drawn) -> None:
    assert Graph.build(drawn.nodes, drawn.edges).order == drawn.order()


@QUICK
@given(drawn_graphs(acyclic=True))
def test_queries_answer_as_their_definitions_say(drawn: Drawn) -> None:
    graph = Graph.build(drawn.nodes, drawn.edges)
    reaches = drawn.reaches()
    for node in drawn.nodes:
        assert set(graph.predecessors(node)) == drawn.predecessors(node)
        assert graph.ancestors(node) == tuple(n for n in drawn.nodes if (node, n) in reaches)
        assert graph.descendants(node) == tuple(n for n in drawn.nodes if (n, node) in reaches)
        assert graph.ranks[node] == drawn.rank(node)
        assert node in graph.levels[graph.ranks[node]]
        assert (node in graph.roots) == (not drawn.predecessors(node))
        assert (node in graph.leaves) == (not graph.successors(node))
    assert graph.depth == len(graph.levels) == max((drawn.rank(n) + 1 for n in drawn.nodes), default=0)
    assert set(graph.edges) == set(drawn.edges)


@QUICK
@given(drawn_graphs(acyclic=True, fewest=1), st.data())
def test_subgraph_is_induced(drawn: Drawn, data: st.DataObject) -> None:
    graph = Graph.build(drawn.nodes, drawn.edges)
    kept = data.draw(st.sets(st.sampled_from(drawn.nodes)))
    part = graph.subgraph(kept)
    assert part.nodes == tuple(node for node in drawn.nodes if node in kept)
    assert part.edges == tuple((a, b) for a, b in graph.edges if a in kept and b in kept)


@QUICK
@given(drawn_graphs(acyclic=True))
def test_reversing_exchanges_ancestors_and_descendants(drawn: Drawn) -> None:
    graph = Graph.build(drawn.nodes, drawn.edges)
    turned = graph.reversed()
    for node in drawn.nodes:
        assert turned.ancestors(node) == graph.descendants(node)
        assert turned.successors(node) == graph.predecessors(node)
    assert turned.reversed() == graph


@QUICK
@given(drawn_graphs(acyclic=False))
def test_graph_is_refused_exactly_when_it_has_a_cycle_and_the_one_named_is_there(
    drawn: Drawn,
) -> None:
    has_cycle = any((node, node) in drawn.reaches() for node in drawn.nodes)
    if not has_cycle:
        assert len(Graph.build(drawn.nodes, drawn.edges)) == len(drawn.nodes)
        return
    with pytest.raises(CycleError) as caught:
        Graph.build(drawn.nodes, drawn.edges)
    cycle = caught.value.cycle
    assert cycle[0] == cycle[-1]
    assert len(set(cycle)) == len(cycle) - 1
    assert set(itertools.pairwise(cycle)) <= set(drawn.edges)
    with pytest.raises(CycleError) as again:
        Graph.build(drawn.nodes, drawn.edges[::-1])
    assert again.value.cycle == cycle


@QUICK
@given(drawn_graphs(acyclic=True, fewest=1), st.data())
def test_any_self_loop_is_refused_by_name(drawn: Drawn, data: st.DataObject) -> None:
    node = data.draw(st.sampled_from(drawn.nodes))
    with pytest.raises(SelfLoopError) as caught:
        Graph.build(drawn.nodes, [*drawn.edges, (node, node)])
    assert caught.value.nodes == (node,)
