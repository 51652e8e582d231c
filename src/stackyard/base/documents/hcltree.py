"""The syntax tree of a file in OpenTofu's native syntax; what is valid is for OpenTofu to say."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import tree_sitter

    Node: TypeAlias = tree_sitter.Node

__all__ = ["end_line_of", "line_of", "parse_tree"]


def parse_tree(data: bytes) -> Node:
    """Return the tree of a file; one with mistakes gives a tree with nodes that say so."""
    return _parser().parse(data).root_node


def line_of(node: Node) -> int:
    """Return the line where a node begins, from one."""
    # By its index: the attribute `row` of tree-sitter 0.26.0 gives away a reference that it does not own.
    return node.start_point[0] + 1


def end_line_of(node: Node) -> int:
    """Return the line where a node ends, from one."""
    return node.end_point[0] + 1


@functools.cache
def _parser() -> tree_sitter.Parser:
    import tree_sitter  # lazy: most commands read no code, and what was read before is in a cache
    import tree_sitter_hcl  # lazy: as above

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_hcl.language()))
