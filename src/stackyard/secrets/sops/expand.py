"""Changing a layout: other values in the same places, and aliases written out.

SOPS binds a value to its path, so that one ciphertext cannot serve two places: what an alias represents is
written out where it stands, as SOPS does.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stackyard.secrets.formats.yaml_scalar import yaml_flow
from stackyard.secrets.layout import (
    Branch,
    Layout,
    LayoutDocument,
    Leaf,
    Listing,
    Node,
    Splice,
    apply_splices,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.secrets.sops.text import TextFormat
    from stackyard.secrets.values import Scalar

__all__ = ["replace_leaves", "without_aliases"]


def replace_leaves(
    layout: Layout, values: Mapping[int, Scalar], left_out: frozenset[int] = frozenset()
) -> Layout:
    """Return a layout whose leaves at the given places have other values, or are no items any more."""
    documents = tuple(
        LayoutDocument(root=root, end=document.end)
        for document in layout.documents
        if isinstance(root := _replace(document.root, values, left_out), Branch)
    )
    return dataclasses.replace(layout, documents=documents)


def _replace(node: Node, values: Mapping[int, Scalar], left_out: frozenset[int]) -> Node:
    match node:
        case Leaf():
            return dataclasses.replace(node, value=values[node.start]) if node.start in values else node
        case Branch():
            entries = [
                dataclasses.replace(one, node=_replace(one.node, values, left_out)) for one in node.entries
            ]
            return dataclasses.replace(node, entries=tuple(entries))
        case Listing():
            items = [
                dataclasses.replace(one, node=_replace(one.node, values, left_out))
                for one in node.items
                if one.node.start not in left_out
            ]
            return dataclasses.replace(node, items=tuple(items))


def without_aliases(layout: Layout, text: TextFormat, path: str) -> Layout:
    """Return a layout in which every alias was replaced by what it represents."""
    if not layout.aliases:
        return layout
    splices = [Splice(start, end, yaml_flow(_data(node))) for start, end, node in layout.aliases]
    return text.parse(apply_splices(layout.text, splices), path)


def _data(node: Node) -> object:
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, Branch):
        return {entry.key: _data(entry.node) for entry in node.entries}
    return [_data(item.node) for item in node.items]
