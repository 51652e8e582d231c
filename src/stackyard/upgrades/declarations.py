"""What code requires: providers and modules with their constraints, and the bytes where each is written.

Both syntaxes of OpenTofu are read. An edit replaces only the bytes of a constraint, so that comments and
formatting stay.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.hcltree import line_of, parse_tree
from stackyard.base.documents.jsontext import JsonError, next_token, parse_json
from stackyard.base.documents.lines import LineIndex
from stackyard.sources.stacks.hcl import list_attributes, list_blocks
from stackyard.sources.stacks.hcl_expressions import convert, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.base.documents.hcltree import Node

__all__ = ["Declaration", "DeclarationKind", "read_declarations"]

# The tag of a module in an OCI registry is its version: oci://registry/repository//folder?tag=1.2.3.
_OCI_TAG = re.compile(r"(?<=[?&]tag=)[^&]+")


class DeclarationKind(enum.StrEnum):
    """What a declaration requires."""

    PROVIDER = "provider"
    MODULE = "module"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A provider in `required_providers`, or a module block.

    Attributes:
        kind: Which of the two.
        name: Its local name.
        source: Where it comes from, as it is written; empty where it is not, None where only an engine can
            compute it.
        constraint: The version constraint; None where there is none, or only an engine can compute it.
        is_computed: Whether there is a constraint that only an engine can compute.
        line: Where the constraint is, else where the declaration begins.
        span: The bytes of the constraint, between its quotes; None where it cannot be edited.
    """

    kind: DeclarationKind
    name: str
    source: str | None
    constraint: str | None
    is_computed: bool = False
    line: int
    span: tuple[int, int] | None = None


def read_declarations(data: bytes, *, is_json: bool) -> tuple[Declaration, ...]:
    """Return what a file of code requires; a file with mistakes is read as far as it goes."""
    return tuple(_read_json(data) if is_json else _read_hcl(data))


@dataclass(frozen=True, slots=True)
class _Value:
    """A text in a file; None where it is another expression."""

    text: str | None
    line: int
    span: tuple[int, int] | None


def _declare(
    kind: DeclarationKind, name: str, line: int, source: _Value | None, version: _Value | None
) -> Declaration:
    written = "" if source is None else source.text
    if version is None and source is not None and (written or "").startswith("oci://"):
        version = _tag(source)
    return Declaration(
        kind=kind,
        name=name,
        source=written,
        constraint=None if version is None else version.text,
        is_computed=version is not None and version.text is None,
        line=line if version is None else version.line,
        span=None if version is None else version.span,
    )


def _tag(source: _Value) -> _Value | None:
    match = _OCI_TAG.search(source.text or "")
    if match is None:
        return None
    span = None if source.span is None else (source.span[0] + match.start(), source.span[0] + match.end())
    # Bytes and characters differ where the address has others than ASCII: such a one is not edited.
    return _Value(match[0], source.line, span if (source.text or "").isascii() else None)


def _read_hcl(data: bytes) -> Iterator[Declaration]:
    root = parse_tree(data)
    for kind, labels, block in list_blocks(root):
        if kind == "module" and labels:
            values = dict(list_attributes(block))
            yield _declare(
                DeclarationKind.MODULE,
                labels[0],
                line_of(block),
                *(_hcl_value(values.get(key)) for key in ("source", "version")),
            )
        elif kind == "terraform":
            for inner, _, body in list_blocks(block):
                if inner == "required_providers":
                    yield from _hcl_providers(body)


def _hcl_providers(block: Node) -> Iterator[Declaration]:
    for name, value in list_attributes(block):
        line = line_of(value)
        inner = _unwrap(value)
        if inner.type == "object":
            values = dict(_elements(inner))
            found = [_hcl_value(values.get(key)) for key in ("source", "version")]
        else:
            # The short form: only a constraint.
            found = [None, _hcl_value(value)]
        yield _declare(DeclarationKind.PROVIDER, name, line, *found)


def _elements(node: Node) -> Iterator[tuple[str, Node]]:
    for child in node.named_children:
        if child.type == "object_elem" and not child.has_error:
            parts = [one for one in child.named_children if one.type == "expression"]
            if len(parts) == 2:
                yield text_of(parts[0]).strip('"'), parts[1]


def _unwrap(node: Node) -> Node:
    while node.type in ("expression", "literal_value", "collection_value"):
        parts = [one for one in node.named_children if one.type != "comment"]
        if len(parts) != 1:
            break
        node = parts[0]
    return node


def _hcl_value(node: Node | None) -> _Value | None:
    if node is None:
        return None
    line, inner = line_of(node), _unwrap(node)
    said = convert(node)
    if inner.type != "string_lit" or not isinstance(said, str):
        return _Value(said if isinstance(said, str) and inner.type == "template_expr" else None, line, None)
    span = (inner.start_byte + 1, inner.end_byte - 1)
    # Where an escape is in it, its bytes are not its text.
    return _Value(said, line, span if (inner.text or b"")[1:-1] == said.encode() else None)


def _read_json(data: bytes) -> Iterator[Declaration]:
    mark = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    try:
        text = data[mark:].decode()
        parse_json(text)
    except (JsonError, UnicodeDecodeError):
        return
    lines = LineIndex(text)
    values = {path: (start, token) for path, start, token in _strings(text)}

    def value(path: tuple[Any, ...]) -> _Value | None:
        if path not in values:
            return None
        start, token = values[path]
        said = parse_json(token)
        first = mark + len(text[:start].encode()) + 1
        plain = said.encode("utf-8", "replace") == token[1:-1].encode()
        span = (first, first + len(token[1:-1].encode())) if plain else None
        return _Value(None if "${" in said or "%{" in said else said, lines.line_of(start), span)

    seen: dict[tuple[Any, ...], int] = {}
    for path, (start, _) in values.items():
        found = _json_block(path)
        if found is not None:
            seen.setdefault(found, lines.line_of(start))
    for block, line in seen.items():
        keys = [one for one in block if isinstance(one, str)]
        kind = DeclarationKind.MODULE if keys[0] == "module" else DeclarationKind.PROVIDER
        short = value(block)
        pair = (None, short) if short else (value((*block, "source")), value((*block, "version")))
        yield _declare(kind, keys[-1], line, *pair)


def _json_block(path: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the block that a value belongs to, where that is a module or a required provider."""
    keys = [one for one in path if isinstance(one, str)]
    if keys[0:1] == ["module"] and len(keys) == 3 and keys[2] in ("source", "version"):
        return path[:-1]
    if keys[0:2] == ["terraform", "required_providers"]:
        if len(keys) == 4 and keys[3] in ("source", "version"):
            return path[:-1]
        return path if len(keys) == 3 else None
    return None


def _strings(text: str) -> Iterator[tuple[tuple[Any, ...], int, str]]:
    """Return each text of a JSON document: the keys and positions that lead to it, where it is, itself."""
    # Each level is a list with the key, or the position, of the value that comes next; None before a key.
    levels: list[list[Any]] = []
    kinds: list[str] = []
    at = 0
    while (found := next_token(text, at)) is not None:
        start, mark = found
        at = start + len(mark)
        if mark in ",:":
            continue
        if mark in "]}":
            levels.pop()
            kinds.pop()
            _advance(levels, kinds)
            continue
        if kinds and kinds[-1] == "{" and levels[-1][0] is None:
            levels[-1][0] = parse_json(mark)
            continue
        if mark in "[{":
            levels.append([0 if mark == "[" else None])
            kinds.append(mark)
            continue
        if mark[0] == '"':
            yield tuple(level[0] for level in levels), start, mark
        _advance(levels, kinds)


def _advance(levels: list[list[Any]], kinds: list[str]) -> None:
    """Note that a value has ended."""
    if kinds:
        levels[-1][0] = levels[-1][0] + 1 if kinds[-1] == "[" else None
