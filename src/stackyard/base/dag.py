"""A directed acyclic graph of any hashable nodes; it knows no domain word.

An edge says "node depends on predecessor". A `Graph` is checked and frozen once built: it has no cycle, and
each answer comes in a fixed order (insertion order, or topological order with ties in insertion order), so
that the same graph always reads the same. Nothing here recurses: a chain of 100,000 nodes is fine.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Generic, TypeVar

from stackyard.base.errors import InvalidInputError

__all__ = [
    "CycleError",
    "DuplicateNodeError",
    "Graph",
    "GraphError",
    "SelfLoopError",
    "UnknownNodeError",
]

V = TypeVar("V", bound=Hashable)

# For each node, by position, the positions of its neighbours in one direction, lowest first.
Links = tuple[tuple[int, ...], ...]


class GraphError(InvalidInputError):
    """Nodes and dependencies do not make a graph that can be ordered."""

    code = "E-GRAPH"
    summary = "The dependencies do not make a graph"
    default_remedy = "Correct the dependencies named and run the command again; nothing was changed."


class DuplicateNodeError(GraphError):
    """Two nodes of a graph have the same name."""

    code = "E-GRAPH-DUPLICATE"
    summary = "A node is listed more than once"
    default_remedy = "Give each node a name of its own."

    def __init__(self, nodes: Sequence[object]) -> None:
        super().__init__(" ".join(f"{node} is listed more than once." for node in nodes))
        self.nodes = tuple(nodes)


class UnknownNodeError(GraphError):
    """A dependency or a question names a node that the graph does not have."""

    code = "E-GRAPH-UNKNOWN"
    summary = "A node that does not exist is named"
    default_remedy = "Correct the name, or add the node."

    def __init__(self, detail: str, nodes: Sequence[object]) -> None:
        super().__init__(detail)
        self.nodes = tuple(nodes)


class CycleError(GraphError):
    """Nodes depend on each other in a circle, so none of them can be first.

    Args:
        cycle: The circle along "depends on", with its first node again at the end.
    """

    code = "E-GRAPH-CYCLE"
    summary = "The dependencies form a cycle"
    default_remedy = "Remove one of the dependencies in the cycle."

    def __init__(self, cycle: Sequence[object], detail: str | None = None) -> None:
        super().__init__(detail or f"The dependencies form a cycle: {' -> '.join(map(str, cycle))}.")
        self.cycle = tuple(cycle)


class SelfLoopError(CycleError):
    """A node depends on itself: the shortest cycle, and mostly a slip of the pen."""

    code = "E-GRAPH-SELF-LOOP"
    summary = "A node depends on itself"
    default_remedy = "Remove the node from its own dependencies."

    def __init__(self, nodes: Sequence[object]) -> None:
        super().__init__((nodes[0], nodes[0]), " ".join(f"{node} depends on itself." for node in nodes))
        self.nodes = tuple(nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph(Generic[V]):
    """A frozen graph without cycles; make one with `Graph.build` or `Graph.from_dependencies`.

    Two graphs are equal when they have the same nodes in the same insertion order and the same dependencies.

    Attributes:
        nodes: All nodes in insertion order. The *position* of a node is its index here.
        predecessor_positions: By position, the positions of what each node depends on, lowest first.
        successor_positions: By position, the positions of what depends on each node, lowest first.
    """

    nodes: tuple[V, ...]
    predecessor_positions: Links
    successor_positions: Links = field(compare=False, repr=False)
    _order: tuple[int, ...] = field(compare=False, repr=False)
    _position: Mapping[V, int] = field(compare=False, repr=False)

    @classmethod
    def build(cls, nodes: Iterable[V], edges: Iterable[tuple[V, V]] = ()) -> Graph[V]:
        """Check and freeze a graph.

        Args:
            nodes: All nodes; their order here breaks every tie later.
            edges: Pairs (node, predecessor): the first depends on the second. A repeated pair counts once.

        Raises:
            DuplicateNodeError: Some nodes are listed more than once.
            UnknownNodeError: Some edges end at a node that is not listed.
            SelfLoopError: Some nodes depend on themselves.
            CycleError: Nodes depend on each other in a circle.
        """
        listed = tuple(nodes)
        position = {node: index for index, node in enumerate(listed)}
        if len(position) != len(listed):
            # The mapping kept the last of equal nodes, so every other one is a repetition.
            repeated = (node for index, node in enumerate(listed) if position[node] != index)
            raise DuplicateNodeError(tuple(dict.fromkeys(repeated)))
        predecessors = _link(position, edges)
        successors = _turn(predecessors)
        order = _sort(predecessors, successors)
        if len(order) < len(listed):
            raise CycleError([listed[index] for index in _find_cycle(predecessors, order)])
        return cls(
            nodes=listed,
            predecessor_positions=predecessors,
            successor_positions=successors,
            _order=order,
            _position=position,
        )

    @classmethod
    def from_dependencies(cls, dependencies: Mapping[V, Iterable[V]]) -> Graph[V]:
        """Build from a mapping of each node to what it depends on; raises as `build` does."""
        edges = ((node, needed) for node, all_needed in dependencies.items() for needed in all_needed)
        return cls.build(dependencies, edges)

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: object) -> bool:
        return node in self._position

    @property
    def edges(self) -> tuple[tuple[V, V], ...]:
        """All pairs (node, predecessor), in insertion order of the node, then of the predecessor."""
        return tuple((self.nodes[index], self.nodes[needed]) for index, needed in self._edge_positions())

    @property
    def order(self) -> tuple[V, ...]:
        """All nodes, each after everything it depends on; of those that could be next, the first inserted."""
        return self._at(self._order)

    @property
    def roots(self) -> tuple[V, ...]:
        """The nodes that depend on nothing."""
        return tuple(
            node for node, needed in zip(self.nodes, self.predecessor_positions, strict=True) if not needed
        )

    @property
    def leaves(self) -> tuple[V, ...]:
        """The nodes that nothing depends on."""
        return tuple(
            node for node, needing in zip(self.nodes, self.successor_positions, strict=True) if not needing
        )

    def position(self, node: V) -> int:
        """Return the index of a node in `nodes`, or raise `UnknownNodeError`."""
        return self._positions((node,))[0]

    def predecessors(self, node: V) -> tuple[V, ...]:
        """Return what a node depends on directly, in insertion order."""
        return self._at(self.predecessor_positions[self.position(node)])

    def successors(self, node: V) -> tuple[V, ...]:
        """Return what depends on a node directly, in insertion order."""
        return self._at(self.successor_positions[self.position(node)])

    def ancestors(self, *nodes: V) -> tuple[V, ...]:
        """Return all that any of these nodes depends on, directly or not, in insertion order."""
        return self._reach(nodes, self.predecessor_positions)

    def descendants(self, *nodes: V) -> tuple[V, ...]:
        """Return all that depends on any of these nodes, directly or not, in insertion order."""
        return self._reach(nodes, self.successor_positions)

    def subgraph(self, nodes: Iterable[V]) -> Graph[V]:
        """Return the graph of some nodes, in insertion order, with the edges between them and no other.

        Two nodes that were joined only through one left out are no longer joined.
        """
        kept = sorted(set(self._positions(nodes)))
        chosen = set(kept)
        edges = (
            (self.nodes[index], self.nodes[needed])
            for index in kept
            for needed in self.predecessor_positions[index]
            if needed in chosen
        )
        return Graph.build(self._at(kept), edges)

    def reversed(self) -> Graph[V]:
        """Return the graph of the same nodes, in the same insertion order, with every edge turned."""
        return Graph.build(self.nodes, ((needed, node) for node, needed in self.edges))

    @property
    def ranks(self) -> dict[V, int]:
        """For each node in insertion order, the edges on the longest way from it to a root: a root has 0."""
        return dict(zip(self.nodes, self._ranks(), strict=True))

    @property
    def levels(self) -> tuple[tuple[V, ...], ...]:
        """The nodes by rank, roots first; each level in insertion order."""
        levels: list[list[V]] = [[] for _ in range(self.depth)]
        for node, rank in zip(self.nodes, self._ranks(), strict=True):
            levels[rank].append(node)
        return tuple(map(tuple, levels))

    @property
    def depth(self) -> int:
        """The number of levels, which is the number of nodes on the longest path."""
        return max(self._ranks(), default=-1) + 1

    def _at(self, positions: Iterable[int]) -> tuple[V, ...]:
        nodes = self.nodes
        return tuple([nodes[position] for position in positions])

    def _positions(self, nodes: Iterable[V]) -> list[int]:
        asked = tuple(nodes)
        unknown = [node for node in asked if node not in self._position]
        if unknown:
            raise UnknownNodeError(" ".join(f"{node} is not in the graph." for node in unknown), unknown)
        return [self._position[node] for node in asked]

    def _edge_positions(self) -> Iterable[tuple[int, int]]:
        for index, needed_positions in enumerate(self.predecessor_positions):
            for needed in needed_positions:
                yield index, needed

    def _reach(self, nodes: Iterable[V], links: Links) -> tuple[V, ...]:
        reached: set[int] = set()
        frontier = self._positions(nodes)
        while frontier:
            fresh = [position for position in links[frontier.pop()] if position not in reached]
            reached.update(fresh)
            frontier.extend(fresh)
        return self._at(sorted(reached))

    def _ranks(self) -> list[int]:
        ranks = [0] * len(self.nodes)
        for position in self._order:
            ranks[position] = max((ranks[p] + 1 for p in self.predecessor_positions[position]), default=0)
        return ranks


def _link(position: Mapping[V, int], edges: Iterable[tuple[V, V]]) -> Links:
    """Turn edges into positions; refuse all unknown ends, then all self loops."""
    needed_by: list[set[int]] = [set() for _ in position]
    strangers: list[tuple[V, V]] = []
    loops: set[V] = set()
    for node, predecessor in edges:
        index, needed = position.get(node), position.get(predecessor)
        if index is None or needed is None:
            strangers.append((node, predecessor))
        elif index == needed:
            loops.add(node)
        else:
            needed_by[index].add(needed)
    if strangers:
        ends = dict.fromkeys(end for edge in strangers for end in edge if end not in position)
        pairs = ", ".join(f"{node} -> {predecessor}" for node, predecessor in strangers)
        detail = f"Not in the graph: {', '.join(map(str, ends))}; named by the dependencies {pairs}."
        raise UnknownNodeError(detail, tuple(ends))
    if loops:
        raise SelfLoopError([node for node in position if node in loops])
    return tuple(tuple(sorted(needed)) for needed in needed_by)


def _turn(links: Links) -> Links:
    turned: list[list[int]] = [[] for _ in links]
    for index, targets in enumerate(links):
        for target in targets:
            turned[target].append(index)
    return tuple(map(tuple, turned))


def _sort(predecessors: Links, successors: Links) -> tuple[int, ...]:
    """Return the positions that can be ordered, topologically, the lowest first among equals."""
    missing = [len(needed) for needed in predecessors]
    # Ascending, so it is a heap already.
    ready = [index for index, count in enumerate(missing) if not count]
    order: list[int] = []
    while ready:
        index = heappop(ready)
        order.append(index)
        for following in successors[index]:
            missing[following] -= 1
            if not missing[following]:
                heappush(ready, following)
    return tuple(order)


def _find_cycle(predecessors: Links, ordered: Iterable[int]) -> list[int]:
    """Return one cycle, the same one for the same graph, closed and starting at its lowest position.

    What could not be ordered is in a cycle or depends on one, so each such node has a predecessor that could
    not be ordered either: following the lowest of these must come back to a node already seen.
    """
    stuck = set(range(len(predecessors))) - set(ordered)
    seen: dict[int, int] = {}
    index = min(stuck)
    while index not in seen:
        seen[index] = len(seen)
        index = next(needed for needed in predecessors[index] if needed in stuck)
    cycle = list(seen)[seen[index] :]
    start = cycle.index(min(cycle))
    return [*cycle[start:], *cycle[:start], cycle[start]]
