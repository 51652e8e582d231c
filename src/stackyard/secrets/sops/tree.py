"""Walking over the values and comments of a file in the order of SOPS, and the MAC over them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.secrets.layout import Branch, Comment, Layout, Leaf, Listing, Node
from stackyard.secrets.values import Scalar, to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.secrets.sops.rules import PathRule

__all__ = ["Mac", "TreeEntry", "context_of", "walk_tree"]

# What SOPS begins a MAC with that leaves out values in clear, so that the two sorts never agree.
_ONLY_ENCRYPTED = hashlib.sha256(b"sops").digest()


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A value or a comment on the way through a file.

    Attributes:
        thing: The value or comment.
        path: The keys that lead to it.
        is_encrypted: Whether the rules say that it is.
        item_start: Where its item begins, if it is in a list: SOPS makes items of comments there.
    """

    thing: Leaf | Comment
    path: tuple[str, ...]
    is_encrypted: bool
    item_start: int | None = None


def context_of(path: tuple[str, ...]) -> str:
    """Return what a value is bound to: its keys; the indexes of lists do not count."""
    return ":".join(path) + ":"


def walk_tree(layout: Layout, rule: PathRule) -> Iterator[TreeEntry]:
    """Yield every value and comment of all documents."""
    for document in layout.documents:
        yield from _collection(document.root, (), rule, is_marked=False)


def _collection(
    node: Branch | Listing, path: tuple[str, ...], rule: PathRule, *, is_marked: bool
) -> Iterator[TreeEntry]:
    for remarks, inner_path, inner, start in _children(node, path):
        before = after = is_marked
        for remark in remarks:
            before, after = after, after or rule.marks(remark.text)
            is_encrypted = rule.encrypts(path, is_marked=after if rule.marks_itself else before)
            yield TreeEntry(remark, path, is_encrypted, start)
        if isinstance(inner, Leaf):
            yield TreeEntry(inner, inner_path, rule.encrypts(inner_path, is_marked=after), start)
        elif inner is not None:
            yield from _collection(inner, inner_path, rule, is_marked=after)


Child = tuple[tuple[Comment, ...], tuple[str, ...], Node | None, int | None]


def _children(node: Branch | Listing, path: tuple[str, ...]) -> Iterator[Child]:
    """Yield what a collection holds, with the comments before it; those at its end come before nothing."""
    if isinstance(node, Branch):
        for entry in node.entries:
            yield entry.remarks, (*path, entry.key), entry.node, None
        yield node.remarks, path, None, None
    else:
        for item in node.items:
            yield item.remarks, path, item.node, item.start
        yield node.remarks, path, None, node.start


class Mac:
    """The hash over all values in order."""

    def __init__(self, *, is_only_encrypted: bool) -> None:
        self._hash = hashlib.sha512()
        self._is_only_encrypted = is_only_encrypted
        if is_only_encrypted:
            self._hash.update(_ONLY_ENCRYPTED)

    def add(self, value: Scalar, *, is_encrypted: bool) -> None:
        """Take the next value; nothing is taken of a null."""
        if is_encrypted or not self._is_only_encrypted:
            self._hash.update(to_bytes(value))

    def text(self) -> str:
        """Return the hash as SOPS writes it."""
        return self._hash.hexdigest().upper()
