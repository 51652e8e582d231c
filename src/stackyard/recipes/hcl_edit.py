"""Changing single values in OpenTofu code, with the rest of the text as it was."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from stackyard.base.documents.byte_edits import Edit, apply_edits
from stackyard.base.documents.hcltree import line_of, parse_tree
from stackyard.sources.stacks.hcl_expressions import convert, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stackyard.base.documents.hcltree import Node

__all__ = [
    "Literal",
    "WrittenBackend",
    "find_backends",
    "find_literals",
    "find_null_defaults",
    "find_sources",
    "find_top_values",
    "quote",
    "read_required",
    "replace_literals",
]

# What stands in a stack for its own name; a resource has names of its own.
_NAMED_IN = frozenset(("module", "locals", "variable"))


class Literal(NamedTuple):
    """A constant text in code.

    Attributes:
        text: What it says.
        start: Where it begins, quotes included.
        end: Where it ends.
        line: Its line.
        name: The attribute that it is the value of, with the block that it is in: `module.inventory.stack`.
    """

    text: str
    start: int
    end: int
    line: int
    name: str


class WrittenBackend(NamedTuple):
    """A backend block as it is written.

    Attributes:
        type: Such as `s3`; `cloud` for a cloud block.
        text: The block.
        start: Where it begins.
        settings: Its constant settings by name, `workspaces.name` for those of blocks inside.
        line: Its line.
    """

    type: str
    text: bytes
    start: int
    settings: dict[str, Literal]
    line: int


def quote(text: str) -> str:
    """Return a text as code has it."""
    return json.dumps(text, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")


def replace_literals(data: bytes, changes: Iterable[tuple[Literal, str]]) -> bytes:
    """Return code with other texts in the place of some."""
    return apply_edits(data, [Edit(one.start, one.end, quote(text)) for one, text in changes])


def find_backends(data: bytes) -> list[WrittenBackend]:
    """Return the backend blocks of a file."""
    found = []
    for block in _blocks(parse_tree(data)):
        if _kind(block) != "terraform":
            continue
        for inner in _blocks(block):
            if _kind(inner) in ("backend", "cloud"):
                settings = {one.name: one for one in _attributes(inner, "")}
                for part in _blocks(inner):
                    settings |= {one.name: one for one in _attributes(part, f"{_kind(part)}.")}
                kind = _labels(inner)[0] if _kind(inner) == "backend" and _labels(inner) else _kind(inner)
                found.append(
                    WrittenBackend(kind, inner.text or b"", inner.start_byte, settings, line_of(inner))
                )
    return found


def find_top_values(data: bytes) -> dict[str, Literal]:
    """Return the constant texts of a file of settings (`-backend-config`) by their names."""
    return {one.name: one for one in _attributes(parse_tree(data), "")}


def find_sources(data: bytes) -> list[Literal]:
    """Return where the modules are that a file calls."""
    calls = [block for block in _blocks(parse_tree(data)) if _kind(block) == "module"]
    return [one for block in calls for one in _attributes(block, "") if one.name == "source"]


def find_literals(data: bytes, texts: Iterable[str]) -> list[Literal]:
    """Return values of module calls, local values and defaults of variables that are one of some texts."""
    wanted = frozenset(texts)
    found = []
    for block in _blocks(parse_tree(data)):
        kind = _kind(block)
        if kind in _NAMED_IN:
            prefix = ".".join((kind, *_labels(block), ""))
            found += [
                one
                for one in _attributes(block, prefix)
                if one.text in wanted and (kind != "variable" or one.name.endswith(".default"))
                if not (kind == "module" and one.name.endswith(".source"))
            ]
    return found


def find_null_defaults(data: bytes) -> frozenset[str]:
    """Return the variables of a file whose default is null."""
    return frozenset(
        label
        for block in _blocks(parse_tree(data))
        if _kind(block) == "variable"
        for label in _labels(block)[:1]
        for name, value in _values(block)
        if name == "default" and text_of(value).strip() == "null"
    )


def read_required(data: bytes) -> list[tuple[str, str]]:
    """Return the source and the version constraint of each provider that a file requires."""
    found = []
    for block in _blocks(parse_tree(data)):
        for inner in _blocks(block) if _kind(block) == "terraform" else ():
            if _kind(inner) != "required_providers":
                continue
            for name, value in _values(inner):
                said = convert(value)
                settings = said[1] if isinstance(said, list) and said[0] == "o" else {}
                source = settings.get("source", f"hashicorp/{name}")
                version = settings.get("version", "") if settings else said
                found.append((str(source), version if isinstance(version, str) else ""))
    return found


def _blocks(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type == "body":
            yield from (one for one in child.named_children if one.type == "block")


def _kind(block: Node) -> str:
    return text_of(block.named_children[0])


def _labels(block: Node) -> list[str]:
    texts = (text_of(one) for one in block.named_children[1:] if one.type in ("string_lit", "identifier"))
    return [re.sub(r'^"|"$', "", text) for text in texts]


def _values(block: Node) -> Iterator[tuple[str, Node]]:
    for child in block.named_children:
        if child.type == "body":
            for one in child.named_children:
                if one.type == "attribute" and len(one.named_children) >= 2:
                    yield text_of(one.named_children[0]), one.named_children[-1]


def _attributes(block: Node, prefix: str) -> Iterator[Literal]:
    for name, value in _values(block):
        text = convert(value)
        if isinstance(text, str) and text_of(value).startswith('"'):
            row = line_of(value)
            yield Literal(text, value.start_byte, value.end_byte, row, prefix + name)
