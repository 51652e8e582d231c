"""The blocks and attributes of a file in OpenTofu's native syntax, as nodes of its tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.sources.stacks.hcl_expressions import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.base.documents.hcltree import Node

__all__ = ["list_attributes", "list_blocks"]


def list_blocks(node: Node) -> Iterator[tuple[str, list[str], Node]]:
    """Return the kind, the labels and the node of each block directly below a node."""
    for child in node.named_children:
        if child.type == "body":
            for block in child.named_children:
                if block.type == "block":
                    words = [one for one in block.named_children if one.type in ("identifier", "string_lit")]
                    names = [text_of(one).strip('"') for one in words]
                    yield names[0] if names else "", names[1:], block


def list_attributes(node: Node) -> Iterator[tuple[str, Node]]:
    """Return the name and the value of each attribute directly below a node that has no mistake."""
    for child in node.named_children:
        if child.type == "body":
            for one in child.named_children:
                if one.type == "attribute" and len(one.named_children) >= 2 and not one.has_error:
                    yield text_of(one.named_children[0]), one.named_children[-1]
