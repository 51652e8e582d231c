from __future__ import annotations

import pytest

from stackyard.base.dag import (
    CycleError,
    DuplicateNodeError,
    Graph,
    GraphError,
    SelfLoopError,
    UnknownNodeError,
)
from stackyard.base.errors import ExitStatus, InvalidInputError

CHAIN_LENGTH = 100_000


def diamond() -> Graph[str]:
    """Top depends on left and right, both of these on bottom; alone stands by itself."""
    return Graph.from_dependencies(
        {"top": ["left", "right"], "right": ["bottom"], "left": ["bottom"], "alone": [], "bottom": []}
    )


def chain(length: int = CHAIN_LENGTH) -> Graph[int]:
    return Graph.build(range(length), ((node, node - 1) for node in range(1, length)))


def test_order_puts_each_node_after_what_it_depends_on_and_breaks_ties_by_insertion() -> None:
    assert diamond().order == ("alone", "bottom", "right", "left", "top")


def test_order_without_edges_is_insertion_order() -> None:
    assert Graph.build(["c", "a", "b"]).order == ("c", "a", "b")


def test_order_does_not_depend_on_the_order_of_edges() -> None:
    edges = [("d", "a"), ("c", "a"), ("d", "b"), ("b", "a")]
    forwards = Graph.build("abcd", edges)
    backwards = Graph.build("abcd", edges[::-1])
    assert forwards == backwards
    assert hash(forwards) == hash(backwards)
    assert forwards.order == backwards.order == ("a", "b", "c", "d")


def test_empty_graph_answers_everything() -> None:
    graph: Graph[str] = Graph.build([])
    assert (len(graph), graph.order, graph.edges, graph.roots, graph.leaves) == (0, (), (), (), ())
    assert (graph.ranks, graph.levels, graph.depth) == ({}, (), 0)


def test_direct_neighbours_come_in_insertion_order() -> None:
    graph = diamond()
    assert graph.predecessors("top") == ("right", "left")
    assert graph.successors("bottom") == ("right", "left")
    assert graph.predecessors("bottom") == ()
    assert graph.successors("top") == ()


def test_transitive_neighbours_come_in_insertion_order_without_the_node_itself() -> None:
    graph = diamond()
    assert graph.ancestors("top") == ("right", "left", "bottom")
    assert graph.descendants("bottom") == ("top", "right", "left")
    assert graph.ancestors("alone") == graph.descendants("alone") == ()


def test_neighbours_of_a_node_with_many_come_in_insertion_order() -> None:
    many = range(64)
    graph = Graph.build([*many, "hub"], [*(("hub", node) for node in reversed(many))])
    assert graph.predecessors("hub") == graph.ancestors("hub") == tuple(many)
    assert graph.reversed().descendants("hub") == tuple(many)


def test_answers_with_positions_far_apart_come_in_insertion_order() -> None:
    graph = Graph.build(range(64), [(63, 32), (63, 1), (63, 8), (32, 5)])
    assert graph.predecessors(63) == (1, 8, 32)
    assert graph.ancestors(63) == (1, 5, 8, 32)


def test_transitive_neighbours_of_several_nodes_are_joined() -> None:
    graph = Graph.from_dependencies({"a": [], "b": ["a"], "c": [], "d": ["c"]})
    assert graph.descendants("a", "c") == ("b", "d")
    assert graph.ancestors("b", "d") == ("a", "c")
    assert graph.descendants() == ()


def test_node_that_depends_on_another_one_asked_for_is_among_the_descendants() -> None:
    graph = diamond()
    assert graph.descendants("bottom", "left") == ("top", "right", "left")


def test_roots_depend_on_nothing_and_nothing_depends_on_leaves() -> None:
    graph = diamond()
    assert graph.roots == ("alone", "bottom")
    assert graph.leaves == ("top", "alone")


def test_rank_is_the_longest_way_to_a_root() -> None:
    graph = Graph.from_dependencies({"a": [], "b": ["a"], "c": ["b", "a"], "d": ["a"]})
    assert graph.ranks == {"a": 0, "b": 1, "c": 2, "d": 1}
    assert graph.levels == (("a",), ("b", "d"), ("c",))
    assert graph.depth == 3


def test_edges_are_pairs_of_node_and_predecessor() -> None:
    assert diamond().edges == (
        ("top", "right"),
        ("top", "left"),
        ("right", "bottom"),
        ("left", "bottom"),
    )


def test_repeated_edge_counts_once() -> None:
    graph = Graph.build("ab", [("b", "a"), ("b", "a")])
    assert graph.edges == (("b", "a"),)
    assert graph.order == ("a", "b")


def test_subgraph_keeps_the_edges_between_its_nodes_and_no_other() -> None:
    part = diamond().subgraph(["bottom", "top", "left", "left"])
    assert part.nodes == ("top", "left", "bottom")
    assert part.edges == (("top", "left"), ("left", "bottom"))


def test_subgraph_does_not_join_what_was_joined_through_a_node_left_out() -> None:
    part = diamond().subgraph(["top", "bottom"])
    assert part.edges == ()


def test_reversed_turns_every_edge_and_keeps_the_nodes() -> None:
    graph = diamond()
    turned = graph.reversed()
    assert turned.nodes == graph.nodes
    assert turned.order == ("top", "right", "left", "alone", "bottom")
    assert turned.reversed() == graph


def test_graphs_with_other_edges_are_not_equal() -> None:
    assert Graph.build("ab", [("b", "a")]) != Graph.build("ab")


def test_membership_and_position() -> None:
    graph = diamond()
    assert "left" in graph
    assert "nowhere" not in graph
    assert [graph.position(node) for node in graph.nodes] == [0, 1, 2, 3, 4]


def test_built_graph_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        diamond().nodes = ()  # type: ignore[misc]


def test_every_duplicate_node_is_named_once() -> None:
    with pytest.raises(DuplicateNodeError) as caught:
        Graph.build(["b", "a", "b", "c", "a", "b"])
    assert caught.value.nodes == ("b", "a")
    assert caught.value.detail == "b is listed more than once. a is listed more than once."


def test_every_unknown_end_of_an_edge_is_named_with_its_edge() -> None:
    with pytest.raises(UnknownNodeError) as caught:
        Graph.build(["a", "b"], [("a", "x"), ("b", "a"), ("y", "b"), ("b", "x")])
    assert caught.value.nodes == ("x", "y")
    assert "x, y" in caught.value.detail
    assert "a -> x, y -> b, b -> x" in caught.value.detail


def test_every_self_loop_is_named_and_is_a_cycle() -> None:
    with pytest.raises(SelfLoopError) as caught:
        Graph.build(["a", "b", "c"], [("c", "c"), ("a", "a"), ("b", "a")])
    assert caught.value.nodes == ("a", "c")
    assert caught.value.cycle == ("a", "a")
    assert caught.value.detail == "a depends on itself. c depends on itself."
    assert isinstance(caught.value, CycleError)


def test_cycle_is_named_node_by_node_along_depends_on() -> None:
    with pytest.raises(CycleError) as caught:
        Graph.from_dependencies({"x": ["c"], "a": ["b"], "b": ["c", "free"], "c": ["a"], "free": []})
    assert caught.value.cycle == ("a", "b", "c", "a")
    assert caught.value.detail == "The dependencies form a cycle: a -> b -> c -> a."


def test_same_graph_names_the_same_cycle_whatever_the_order_of_edges() -> None:
    edges = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("b", "c")]
    named = set()
    for turn in range(len(edges)):
        with pytest.raises(CycleError) as caught:
            Graph.build("abcd", edges[turn:] + edges[:turn])
        named.add(caught.value.cycle)
    assert named == {("a", "b", "a")}


@pytest.mark.parametrize("ask", ["predecessors", "successors", "ancestors", "descendants", "position"])
def test_question_about_an_unknown_node_names_it(ask: str) -> None:
    with pytest.raises(UnknownNodeError, match=r"^nowhere is not in the graph\.$"):
        getattr(diamond(), ask)("nowhere")


def test_subgraph_of_unknown_nodes_names_all_of_them() -> None:
    with pytest.raises(UnknownNodeError) as caught:
        diamond().subgraph(["top", "nowhere", "elsewhere"])
    assert caught.value.nodes == ("nowhere", "elsewhere")


def test_graph_errors_are_invalid_input_with_codes_of_their_own() -> None:
    classes: list[type[GraphError]] = [
        GraphError,
        DuplicateNodeError,
        UnknownNodeError,
        CycleError,
        SelfLoopError,
    ]
    assert len({cls.code for cls in classes}) == len(classes)
    for cls in classes:
        assert issubclass(cls, InvalidInputError)
        assert cls.exit_status is ExitStatus.INVALID
        assert cls.default_remedy


def test_long_chain_is_ordered_ranked_searched_and_turned() -> None:
    graph = chain()
    assert graph.order == tuple(range(CHAIN_LENGTH))
    assert graph.depth == CHAIN_LENGTH
    assert len(graph.descendants(0)) == len(graph.ancestors(CHAIN_LENGTH - 1)) == CHAIN_LENGTH - 1
    assert graph.reversed().order == tuple(reversed(range(CHAIN_LENGTH)))


def test_long_cycle_is_found() -> None:
    edges = [(node, (node + 1) % CHAIN_LENGTH) for node in range(CHAIN_LENGTH)]
    with pytest.raises(CycleError) as caught:
        Graph.build(range(CHAIN_LENGTH), edges)
    assert caught.value.cycle == (*range(CHAIN_LENGTH), 0)
