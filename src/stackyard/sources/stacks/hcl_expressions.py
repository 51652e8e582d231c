"""Expressions of HCL as they are kept of a file, and the paths in them.

The parser never fails: what it cannot read is a node of the kind ERROR. Nothing here calls itself without
a limit, because a file may nest as deeply as its author likes.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.hcltree import line_of
from stackyard.sources.stacks.code_file import FILE_FUNCTIONS, UNKNOWN, Expression, FileRead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.base.documents.hcltree import Node

__all__ = ["convert", "find_reads", "may_read", "text_of"]

# Deeper expressions are none that choose a file.
_DEEPEST = 40
_PATHS = frozenset(("module", "root", "cwd"))
_ESCAPE = re.compile(r'\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[nrt"\\])|\$\$\{|%%\{')
_LONGEST_TEXT = 120
# Every path that is read has one of these in it.
_SIGNS = (b"file", b"path")


def text_of(node: Node) -> str:
    """Return the text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def may_read(source: bytes) -> bool:
    """Return whether there can be a path in a text, so that most blocks need not be looked at."""
    return any(sign in source for sign in _SIGNS)


def convert(node: Node, depth: int = 0) -> Expression:
    """Return an expression as it is kept."""
    if depth > _DEEPEST or node.has_error:
        return UNKNOWN
    if node.type in ("expression", "literal_value", "collection_value", "template_expr"):
        parts = [child for child in node.named_children if child.type != "comment"]
        if len(parts) == 1:
            return convert(parts[0], depth + 1)
        return _reference(parts, depth) if parts and parts[0].type == "variable_expr" else UNKNOWN
    make = _MAKERS.get(node.type)
    return UNKNOWN if make is None else make(node, depth)


def _template(node: Node, depth: int) -> Expression:
    """Return a quoted template: text and interpolations; the text is what lies between them."""
    source = node.text or b""
    start = node.start_byte
    parts: list[Expression] = []
    at = 1
    for child in node.named_children:
        if child.type == "template_directive":
            return UNKNOWN
        if child.type == "template_interpolation":
            parts.append(_unescape(source[at : child.start_byte - start]))
            inner = [one for one in child.named_children if one.type == "expression"]
            parts.append(convert(inner[0], depth + 1) if len(inner) == 1 else UNKNOWN)
            at = child.end_byte - start
    parts.append(_unescape(source[at:-1]))
    return _join(parts)


def _join(parts: list[Expression]) -> Expression:
    kept = [part for part in parts if part != ""]
    if all(isinstance(part, str) for part in kept):
        return "".join(str(part) for part in kept)
    return kept[0] if len(kept) == 1 else ["t", *kept]


def _unescape(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    return _ESCAPE.sub(_escaped, text) if "\\" in text or "{" in text else text


def _escaped(match: re.Match[str]) -> str:
    word = match[0]
    if word[0] != "\\":
        return word[1:]
    if word[1] in "uU":
        try:
            return chr(int(word[2:], 16))
        except ValueError:
            return "\ufffd"
    return codecs.decode(word, "unicode_escape")


def _reference(parts: list[Node], depth: int) -> Expression:
    names: list[Any] = [text_of(parts[0])]
    for part in parts[1:]:
        if part.type == "get_attr":
            names.append(text_of(part.named_children[-1]) if part.named_children else "")
            continue
        if part.type != "index" or len(part.named_children) != 1:
            return UNKNOWN
        inner = [one for one in part.named_children[0].named_children if one.type == "expression"]
        key = convert(inner[0], depth + 1) if inner else UNKNOWN
        if not isinstance(key, str):
            return UNKNOWN
        names.append(key)
    return ["r", *names]


def _variable(node: Node, depth: int) -> Expression:
    del depth
    return ["r", text_of(node)]


def _scalar(node: Node, depth: int) -> Expression:
    del depth
    return text_of(node)


def _call(node: Node, depth: int) -> Expression:
    name = text_of(node.named_children[0]) if node.named_children else ""
    return ["c", name, *(convert(one, depth + 1) for one in _arguments(node))]


def _arguments(node: Node) -> list[Node]:
    for child in node.named_children:
        if child.type == "function_arguments":
            return [one for one in child.named_children if one.type == "expression"]
    return []


def _conditional(node: Node, depth: int) -> Expression:
    parts = [one for one in node.named_children if one.type == "expression"]
    return ["i", *(convert(one, depth + 1) for one in parts[1:])] if len(parts) == 3 else UNKNOWN


def _tuple(node: Node, depth: int) -> Expression:
    return ["l", *(convert(one, depth + 1) for one in node.named_children if one.type == "expression")]


def _object(node: Node, depth: int) -> Expression:
    found: dict[str, Expression] = {}
    for element in node.named_children:
        if element.type == "object_elem" and len(element.named_children) >= 2:
            key = convert(element.named_children[0], depth + 1)
            if isinstance(key, list) and key[0] == "r" and len(key) == 2:
                key = str(key[1])
            if not isinstance(key, str):
                return UNKNOWN
            found[key] = convert(element.named_children[1], depth + 1)
    return ["o", found]


def _inner(node: Node, depth: int) -> Expression:
    parts = [child for child in node.named_children if child.type == "expression"]
    return convert(parts[0], depth + 1) if len(parts) == 1 else UNKNOWN


_MAKERS = {
    "string_lit": _template,
    "quoted_template": _template,
    "numeric_lit": _scalar,
    "bool_lit": _scalar,
    "variable_expr": _variable,
    "function_call": _call,
    "conditional": _conditional,
    "tuple": _tuple,
    "object": _object,
    "parenthesized_expr": _inner,
}


def find_reads(top: Node, *, with_texts: bool) -> Iterator[FileRead]:
    """Return the paths in everything below a node.

    Args:
        top: Where to look.
        with_texts: Whether a text that begins with `path.module` or the like counts, although no function
            reads it: a resource may.
    """
    pending: list[tuple[Node, dict[str, Expression], bool]] = [(top, {}, with_texts)]
    while pending:
        node, known, texts = pending.pop()
        kind = node.type
        if kind == "function_call":
            name = text_of(node.named_children[0]).rpartition("::")[2] if node.named_children else ""
            if name in FILE_FUNCTIONS:
                yield _read(name, node, known)
                texts = False
        elif kind == "quoted_template" and texts and _begins_with_path(node):
            yield FileRead("", [convert(node)], known, line_of(node), _shown(node))
        elif kind in ("for_tuple_expr", "for_object_expr"):
            known = {**known, **_for_names(node)}
        elif kind == "block":
            known = {**known, **_block_names(node)}
        pending.extend((child, known, texts) for child in node.named_children)


def _read(name: str, node: Node, known: dict[str, Expression]) -> FileRead:
    count = 2 if name == "fileset" else 1
    arguments = [convert(one) for one in _arguments(node)[:count]]
    if len(arguments) < count:
        arguments = [UNKNOWN] * count
    return FileRead(name, arguments, known, line_of(node), _shown(node))


def _begins_with_path(node: Node) -> bool:
    """Return whether a template begins with `${path.module}` or the like, so that it is a path."""
    children = node.named_children
    if len(children) < 2 or children[1].type != "template_interpolation":
        return False
    inner = children[1].named_children
    found = convert(inner[1]) if len(inner) > 1 else UNKNOWN
    return isinstance(found, list) and found[:2] == ["r", "path"]


def _for_names(node: Node) -> dict[str, Expression]:
    for child in node.named_children:
        if child.type == "for_intro":
            parts = [one for one in child.named_children if one.type == "expression"]
            collection = convert(parts[0]) if parts else UNKNOWN
            words = [text_of(one) for one in child.named_children if one.type == "identifier"]
            # With two names, the first one is the key, or the place in a list.
            return {
                word: ["key", collection] if len(words) == 2 and number == 0 else ["value", collection]
                for number, word in enumerate(words)
            }
    return {}


def _block_names(node: Node) -> dict[str, Expression]:
    """Return what `each` is in a resource or module, and the label of a `dynamic` block in its content."""
    children = node.named_children
    kind = text_of(children[0]) if children else ""
    for child in children:
        if child.type != "body":
            continue
        for part in child.named_children:
            if part.type == "attribute" and text_of(part.named_children[0]) == "for_each":
                collection = convert(part.named_children[-1])
                if kind == "dynamic":
                    return {text_of(children[1]).strip('"'): ["each", collection]}
                return {"each": ["each", collection]}
    return {}


def _shown(node: Node) -> str:
    text = " ".join(text_of(node).split())
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
