"""A manifest as a picture: a tree for the terminal, Mermaid for pages, DOT for Graphviz."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stackyard.sources.manifest.model import NodeType, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.sources.manifest.model import Manifest, Node

__all__ = ["as_dot", "as_mermaid", "as_tree"]

_INDENT = "  "


def as_tree(manifest: Manifest) -> list[str]:
    """Return one line a node, those inside of another below it and indented."""
    lines = [manifest.name]
    for scope in manifest.scopes:
        if scope.parent is None:
            lines.append(f"{_INDENT}on {scope.host or 'the host that -H names'}")
            lines.extend(f"{_INDENT * 2}{line}" for line in _branches(manifest, scope))
    return lines


def _branches(manifest: Manifest, scope: Scope) -> Iterator[str]:
    nodes = manifest.scopes.get(scope, ())
    for number, node in enumerate(nodes):
        is_last = number + 1 == len(nodes)
        yield f"{'└─' if is_last else '├─'} {_format_node(node)}"
        inner = "   " if is_last else "│  "
        yield from (f"{inner}{line}" for line in _branches(manifest, Scope(parent=node.name)))


def _format_node(node: Node) -> str:
    facts = [node.type.value, *(str(node.entry[key]) for key in ("preset", "image") if key in node.entry)]
    if "vmid" in node.entry:
        facts.append(f"vmid {node.entry['vmid']}")
    after = f", after {', '.join(node.depends_on)}" if node.depends_on else ""
    return f"{node.name} ({', '.join(facts)}{after})"


def as_mermaid(manifest: Manifest) -> list[str]:
    """Return a flowchart: what runs inside of a node is drawn inside of it, and arrows say what waits."""
    ids = {node.name: f"n{number}" for number, node in enumerate(manifest.nodes)}
    lines = ["flowchart TB"]
    for scope in manifest.scopes:
        if scope.parent is None:
            lines.extend(f"{_INDENT}{line}" for line in _boxes(manifest, scope, ids))
    lines += [
        f"{_INDENT}{ids[needed]} --> {ids[node.name]}"
        for node in manifest.nodes
        for needed in node.depends_on
    ]
    return lines


def _boxes(manifest: Manifest, scope: Scope, ids: dict[str, str]) -> Iterator[str]:
    for node in manifest.scopes.get(scope, ()):
        label = f'{ids[node.name]}["{node.name} ({node.type.value})"]'
        inside = list(_boxes(manifest, Scope(parent=node.name), ids))
        if inside:
            yield f"subgraph {label}"
            yield from (f"{_INDENT}{line}" for line in inside)
            yield "end"
        else:
            yield label


def as_dot(manifest: Manifest) -> list[str]:
    """Return a graph in which each node points at what waits for it."""
    lines = [f"digraph {_quote(manifest.name)} {{", f"{_INDENT}rankdir=LR;"]
    for node in manifest.nodes:
        shape = "box3d" if node.type is NodeType.PVE else "box"
        label = _quote(f"{node.name} ({node.type.value})")
        lines.append(f"{_INDENT}{_quote(node.name)} [shape={shape}, label={label}];")
    for node in manifest.nodes:
        if node.parent is not None:
            lines.append(f"{_INDENT}{_quote(node.parent)} -> {_quote(node.name)};")
        lines.extend(
            f"{_INDENT}{_quote(needed)} -> {_quote(node.name)} [style=dashed];" for needed in node.depends_on
        )
    return [*lines, "}"]


def _quote(text: str) -> str:
    return json.dumps(text)
