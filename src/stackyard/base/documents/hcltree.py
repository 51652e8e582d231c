"""The syntax tree of a file in OpenTofu's native syntax; what is valid is for OpenTofu to say."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import tree_sitter

    Node: TypeAlias = tree_sitter.Node

__all__ = ["line_of", "parse_tree"]


def parse_tree(data: bytes) -> Node:
    """Return the tree of a file; one with mistakes gives a tree with nodes that say so."""
    return _parser().parse(data).root_node


def line_of(node: Node) -> int:
    """Return the line, from one, in which a node begins.

    The points of tree-sitter 0.26 are not used: their numbers above 256 are freed before they are read, which
    gives wrong lines and ends the program with a segmentation fault.
    """
    root = node
    while (above := root.parent) is not None:
        root = above
    return (root.text or b"").count(b"\n", 0, node.start_byte) + 1


@functools.cache
def _parser() -> tree_sitter.Parser:
    import tree_sitter  # lazy: most commands read no code, and what was read before is in a cache
    import tree_sitter_hcl  # lazy: as above

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_hcl.language()))
