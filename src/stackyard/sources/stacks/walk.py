"""The order in which some of the stacks are worked on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.dag import Graph

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["order_stacks"]


def order_stacks(
    graph: Graph[str], names: Collection[str], *, is_ordered: bool = True, is_reversed: bool = False
) -> Graph[str]:
    """Return the graph of some stacks; what is joined only through stacks left out stays joined.

    Args:
        graph: All stacks.
        names: Some of them.
        is_ordered: Whether their order matters; a plan changes nothing for the next one.
        is_reversed: Whether what comes last goes first, as when everything is destroyed.
    """
    wanted = set(names)
    edges = [
        (name, before)
        for name in graph.nodes
        if is_ordered and name in wanted
        for before in graph.ancestors(name)
        if before in wanted
    ]
    found = Graph.build([name for name in graph.nodes if name in wanted], edges)
    return found.reversed() if is_reversed else found
