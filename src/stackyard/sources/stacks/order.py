"""The order of stacks: `after`, `before`, and layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.dag import CycleError, Graph
from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import Location
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.stacks.kinds import STACK_FILE
from stackyard.sources.stacks.settings import find_place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Set

    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["StackCycleError", "build_graph", "build_whole_graph", "order_stacks", "unknown_names"]


class StackCycleError(CycleError):
    """Stacks come after each other in a circle."""

    code = "E-STACK-CYCLE"
    summary = "The order of the stacks is a cycle"
    default_remedy = "Remove one of the dependencies named: none of these stacks can be the first."


def build_graph(repository: StackRepository) -> Graph[str]:
    """Return the order of the stacks of a repository.

    Raises:
        StackCycleError: It is a circle.
    """
    said = set(_said_edges(repository))
    edges = said | set(_layer_edges(repository, said))
    try:
        return Graph.build(repository.stacks, edges)
    except CycleError as err:
        steps = [
            f"{name} comes after {first} ({_reason(repository, name, first)})"
            for name, first in zip(err.cycle, err.cycle[1:], strict=False)
        ]
        detail = f"Stacks come after each other in a circle: {'; '.join(steps)}."
        raise StackCycleError(err.cycle, detail) from err


def build_whole_graph(repository: StackRepository) -> Graph[str]:
    """Return the order of the stacks, those that are not valid too: what comes after one of them waits.

    Raises:
        StackCycleError: It is a circle.
    """
    graph, broken = build_graph(repository), tuple(repository.broken)
    if not broken:
        return graph
    edges = [(name, one) for name in graph.nodes for one in broken if _comes_after(repository, name, one)]
    return Graph.build((*graph.nodes, *broken), (*graph.edges, *edges))


def _comes_after(repository: StackRepository, name: str, broken: str) -> bool:
    """Return whether a stack comes after one that is not valid: it says so, or by their layers."""
    stack, layers = repository.stacks[name], repository.layers
    if any(one.stack == broken for one in stack.settings.after):
        return True
    before = layers[: layers.index(stack.layer)] if stack.layer in layers else ()
    return any(broken.startswith(f"{layer}/") for layer in before)


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
    chosen = [name for name in graph.nodes if name in wanted]
    if not is_ordered:
        return Graph.build(chosen)
    if len(chosen) < len(graph):
        edges = ((name, one) for name in chosen for one in graph.ancestors(name) if one in wanted)
        graph = Graph.build(chosen, edges)
    return graph.reversed() if is_reversed else graph


def _said_edges(repository: StackRepository) -> Iterator[tuple[str, str]]:
    stacks = repository.stacks
    for name, stack in stacks.items():
        yield from ((name, one.stack) for one in stack.settings.after if one.stack in stacks)
        yield from ((other, name) for other in stack.settings.before if other in stacks)


def _layer_edges(repository: StackRepository, said: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Return edges from each layer to the one before it; between those that have none in their own layer.

    All others follow from these, and a repository with thousands of stacks does not get millions of edges.
    """
    layer_of = {name: stack.layer for name, stack in repository.stacks.items()}
    inner = [(name, first) for name, first in said if layer_of[name] == layer_of[first]]
    has_first, is_first = {name for name, _ in inner}, {first for _, first in inner}
    before: list[str] = []
    for layer in repository.layers:
        members = [name for name, own in layer_of.items() if own == layer]
        if not members:
            continue
        starts = [name for name in members if name not in has_first] or members
        yield from ((name, first) for name in starts for first in before)
        before = [name for name in members if name not in is_first] or members


def _reason(repository: StackRepository, name: object, first: object) -> str:
    stack, other = repository.stacks[str(name)], repository.stacks[str(first)]
    for number, one in enumerate(stack.settings.after):
        if one.stack == other.name:
            return str(_place(stack, ("after", number)))
    if stack.name in other.settings.before:
        return str(_place(other, ("before", other.settings.before.index(stack.name))))
    return f"layer {stack.layer} comes after {other.layer}"


def _place(stack: Stack, keys: tuple[str | int, ...]) -> Location:
    path = stack.folder / STACK_FILE
    shown = f"{stack.path}/{STACK_FILE}"
    if not path.is_file():
        return Location("stackyard.yaml")
    return find_place(path, shown, keys)


def unknown_names(stack: Stack, known: Set[str], own: Mapping[str, Any]) -> Diagnostics:
    """Return a finding for each stack that another one names and that does not exist."""
    from stackyard.sources.stacks.repository import UNKNOWN_STACK  # lazy: it imports this module

    found = Diagnostics()
    named = [("after", number, one.stack) for number, one in enumerate(stack.settings.after)]
    named += [("before", number, one) for number, one in enumerate(stack.settings.before)]
    for key, number, name in named:
        if name == stack.name:
            where = _place(stack, (key, number)) if key in own else Location("stackyard.yaml")
            found.add(UNKNOWN_STACK, f"The stack `{name}` names itself in `{key}`.", where)
        elif name not in known:
            where = _place(stack, (key, number)) if key in own else Location("stackyard.yaml")
            found.add(UNKNOWN_STACK, f"There is no stack `{name}`.{did_you_mean(name, known)}", where)
    return found
