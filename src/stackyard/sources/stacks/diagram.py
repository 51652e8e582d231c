"""The order of stacks as a picture: a tree of text, Mermaid, or the language of Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.base.dag import Graph

__all__ = ["draw_dot", "draw_mermaid", "draw_tree"]


def draw_tree(graph: Graph[str]) -> list[str]:
    """Return each stack below the one that it comes after; what is below a stack is drawn once."""
    return list(_tree(graph))


def _tree(graph: Graph[str]) -> Iterator[str]:
    drawn: set[str] = set()
    pending = [(name, "", "") for name in reversed(graph.levels[0] if graph.nodes else ())]
    while pending:
        name, lead, branch = pending.pop()
        later = graph.successors(name)
        is_known = name in drawn and bool(later)
        yield f"{lead}{branch}{name}{' ...' if is_known else ''}"
        if is_known:
            continue
        drawn.add(name)
        inner = lead + {"": "", "├── ": "│   ", "└── ": "    "}[branch]
        for number, one in enumerate(reversed(later)):
            pending.append((one, inner, "├── " if number else "└── "))


def draw_mermaid(graph: Graph[str]) -> list[str]:
    """Return a flowchart of Mermaid: an arrow leads from what is applied first."""
    number = {name: f"s{index}" for index, name in enumerate(graph.nodes)}
    lines = ["flowchart LR", *(f'    {number[name]}["{name}"]' for name in graph.nodes)]
    return lines + [f"    {number[first]} --> {number[name]}" for name, first in graph.edges]


def draw_dot(graph: Graph[str]) -> list[str]:
    """Return a graph of Graphviz: an arrow leads from what is applied first."""
    lines = ["digraph stacks {", "  rankdir=LR;", *(f'  "{name}";' for name in graph.nodes)]
    return [*lines, *(f'  "{first}" -> "{name}";' for name, first in graph.edges), "}"]
