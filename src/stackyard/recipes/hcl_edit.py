"""Changing single values in OpenTofu code, with the rest of the text as it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from stackyard.base.documents.byte_edits import Edit, apply_edits
from stackyard.base.documents.hcltree import line_of, parse_tree
from stackyard.sources.stacks.hcl import attributes_of, list_blocks
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

# Where a stack may write its own name; a resource has names of its own.
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
    for kind, labels, inner in _list_terraform(data):
        if kind in ("backend", "cloud"):
            settings = {one.name: one for one in _attributes(inner, "")}
            for part, _, block in list_blocks(inner):
                settings |= {one.name: one for one in _attributes(block, f"{part}.")}
            name = labels[0] if kind == "backend" and labels else kind
            found.append(WrittenBackend(name, inner.text or b"", inner.start_byte, settings, line_of(inner)))
    return found


def find_top_values(data: bytes) -> dict[str, Literal]:
    """Return the constant texts of a file of settings (`-backend-config`) by their names."""
    return {one.name: one for one in _attributes(parse_tree(data), "")}


def find_sources(data: bytes) -> list[Literal]:
    """Return where the modules are that a file calls."""
    calls = [block for kind, _, block in list_blocks(parse_tree(data)) if kind == "module"]
    return [one for block in calls for one in _attributes(block, "") if one.name == "source"]


def find_literals(data: bytes, texts: Iterable[str]) -> list[Literal]:
    """Return values of module calls, local values and defaults of variables that are one of some texts."""
    wanted = frozenset(texts)
    found = []
    for kind, labels, block in list_blocks(parse_tree(data)):
        if kind in _NAMED_IN:
            prefix = ".".join((kind, *labels, ""))
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
        for kind, labels, block in list_blocks(parse_tree(data))
        if kind == "variable"
        for label in labels[:1]
        for name, value in attributes_of(block)
        if name == "default" and text_of(value).strip() == "null"
    )


def read_required(data: bytes) -> list[tuple[str, str]]:
    """Return the source and the version constraint of each provider that a file requires."""
    found = []
    for kind, _, inner in _list_terraform(data):
        for name, value in attributes_of(inner) if kind == "required_providers" else ():
            said = convert(value)
            settings = said[1] if isinstance(said, list) and said[0] == "o" else {}
            source = settings.get("source", f"hashicorp/{name}")
            version = settings.get("version", "") if settings else said
            found.append((str(source), version if isinstance(version, str) else ""))
    return found


def _list_terraform(data: bytes) -> Iterator[tuple[str, list[str], Node]]:
    """Return what the `terraform` blocks of a file have inside."""
    for kind, _, block in list_blocks(parse_tree(data)):
        if kind == "terraform":
            yield from list_blocks(block)


def _attributes(block: Node, prefix: str) -> Iterator[Literal]:
    for name, value in attributes_of(block):
        text = convert(value)
        if isinstance(text, str) and text_of(value).startswith('"'):
            row = line_of(value)
            yield Literal(text, value.start_byte, value.end_byte, row, prefix + name)
