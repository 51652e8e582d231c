"""What a file in OpenTofu's native syntax says to the rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stackyard.base.documents.hcltree import end_line_of, line_of, parse_tree
from stackyard.policy.code import (
    CodeFacts,
    ModuleBlock,
    OutputBlock,
    RequiredProvider,
    ResourceBlock,
    VariableBlock,
)
from stackyard.sources.stacks.hcl import blocks_of, first_error, head_of
from stackyard.sources.stacks.hcl_expressions import convert, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackyard.base.documents.hcltree import Node

__all__ = ["ANY", "read_hcl"]

# The type `any`, and no other word that has these letters in it.
ANY = re.compile(r"(?<![\w.-])any(?![\w-])")
_REASON = re.compile(r"(?:#|//|/\*)\s*any:\s*(\S.*?)\s*(?:\*/)?$", re.IGNORECASE)
_COMMENTS = re.compile(r'"(?:[^"\\]|\\.)*"|#[^\n]*|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LONGEST = 4000


def read_hcl(data: bytes) -> CodeFacts:
    """Return what a file says; one with mistakes is read as far as it goes."""
    root = parse_tree(data)
    found = CodeFacts()
    if root.has_error:
        line = line_of(first_error(root))
        found.problem = (line, "OpenTofu cannot read this line or the one before it")
    for block in blocks_of(root):
        kind, labels = head_of(block)
        read = _READERS.get(kind)
        if read is not None:
            read(block, labels, found)
    return found


def _attributes(block: Node) -> Iterator[tuple[str, Node, Node]]:
    """Return the name, the node and the value of each attribute of a block."""
    for child in block.named_children:
        if child.type == "body":
            for one in child.named_children:
                if one.type == "attribute":
                    parts = one.named_children
                    if len(parts) >= 2:
                        yield text_of(parts[0]), one, parts[-1]


def _constant(node: Node | None) -> str | None:
    value = None if node is None else convert(node)
    return value if isinstance(value, str) else None


def _described(node: Node | None) -> str | None:
    """Return a description; a text that is computed is one too."""
    if node is None:
        return None
    said = convert(node)
    text = said if isinstance(said, str) else text_of(node)
    return text.strip() or None


def _read_variable(block: Node, labels: list[str], found: CodeFacts) -> None:
    if not labels:
        return
    parts = {name: (node, value) for name, node, value in _attributes(block)}
    kind = parts.get("type")
    type_text = None if kind is None else text_of(kind[1])
    has_any = type_text is not None and ANY.search(_COMMENTS.sub("", type_text)) is not None
    default = parts.get("default")
    sensitive = parts.get("sensitive")
    found.variables[labels[0]] = VariableBlock(
        line_of(block),
        _described(parts["description"][1]) if "description" in parts else None,
        None if type_text is None else type_text[:_LONGEST],
        line_of(block if kind is None else kind[0]),
        _reason(block, kind[0]) if has_any and kind is not None else "",
        has_any,
        sensitive is not None and text_of(sensitive[1]).strip() == "true",
        None if default is None else text_of(default[1])[:_LONGEST],
    )


def _reason(block: Node, attribute: Node) -> str:
    """Return what a comment says that is directly above a type, behind it, or in it."""
    lines = text_of(block).split("\n")
    first = line_of(attribute) - line_of(block)
    last = end_line_of(attribute) - line_of(block)
    above = first
    while above > 0 and lines[above - 1].lstrip().startswith(("#", "//", "/*")):
        above -= 1
    for line in lines[above : last + 1]:
        for match in _COMMENTS.finditer(line):
            said = _REASON.match(match[0]) if match[0][0] != '"' else None
            if said is not None:
                return said[1]
    return ""


def _read_output(block: Node, labels: list[str], found: CodeFacts) -> None:
    if not labels:
        return
    parts = {name: value for name, _, value in _attributes(block)}
    found.outputs[labels[0]] = OutputBlock(
        line_of(block),
        _described(parts.get("description")),
        text_of(parts["value"])[:_LONGEST] if "value" in parts else "",
        "sensitive" in parts and text_of(parts["sensitive"]).strip() == "true",
    )


def _read_module(block: Node, labels: list[str], found: CodeFacts) -> None:
    parts = {name: (node, value) for name, node, value in _attributes(block)}
    source, version = parts.get("source"), parts.get("version")
    found.modules.append(
        ModuleBlock(
            labels[0] if labels else "",
            line_of(block),
            _constant(source[1]) if source is not None else None,
            line_of(block if source is None else source[0]),
            _constant(version[1]) if version is not None else None,
            0 if version is None else line_of(version[0]),
        )
    )


def _read_terraform(block: Node, labels: list[str], found: CodeFacts) -> None:
    del labels
    for inner in blocks_of(block):
        kind, _ = head_of(inner)
        if kind in ("backend", "cloud"):
            found.backends.append(line_of(inner))
        elif kind == "required_providers":
            for name, node, value in _attributes(inner):
                found.required[name] = _required(name, node, value)


def _required(name: str, node: Node, value: Node) -> RequiredProvider:
    said = convert(value)
    if isinstance(said, str):
        # Old releases of the engines have the version alone.
        return RequiredProvider(line_of(node), f"hashicorp/{name}", said, line_of(node))
    settings = said[1] if said[0] == "o" else {}
    source, version = settings.get("source"), settings.get("version")
    row = _find_version_line(value) if version is not None else None
    return RequiredProvider(
        line_of(node),
        source if isinstance(source, str) else f"hashicorp/{name}",
        version if isinstance(version, str) else None,
        row or line_of(node),
    )


def _find_version_line(value: Node) -> int | None:
    pending = [value]
    while pending:
        node = pending.pop()
        if node.type == "object_elem":
            if text_of(node.named_children[0]).strip('"') == "version":
                return line_of(node)
            continue
        pending.extend(node.named_children)
    return None


def _read_provider(block: Node, labels: list[str], found: CodeFacts) -> None:
    found.configured.append(line_of(block))
    if labels:
        found.used.setdefault(labels[0], line_of(block))


def _read_resource(block: Node, labels: list[str], found: CodeFacts) -> None:
    if len(labels) < 2:
        return
    found.resources.append(ResourceBlock(labels[0], labels[1], line_of(block)))
    _use(block, labels, found)


def _read_data(block: Node, labels: list[str], found: CodeFacts) -> None:
    if labels:
        found.data += 1
        _use(block, labels, found)


def _use(block: Node, labels: list[str], found: CodeFacts) -> None:
    chosen = next((convert(value) for name, _, value in _attributes(block) if name == "provider"), None)
    is_chosen = isinstance(chosen, list) and chosen[0] == "r" and len(chosen) > 1
    name = str(chosen[1]) if chosen and is_chosen else labels[0].partition("_")[0]
    found.used.setdefault(name, line_of(block))


def _read_locals(block: Node, labels: list[str], found: CodeFacts) -> None:
    del labels
    found.locals |= {name: text_of(value)[:_LONGEST] for name, _, value in _attributes(block)}


_READERS: dict[str, Callable[[Node, list[str], CodeFacts], None]] = {
    "terraform": _read_terraform,
    "variable": _read_variable,
    "output": _read_output,
    "module": _read_module,
    "provider": _read_provider,
    "resource": _read_resource,
    "data": _read_data,
    "ephemeral": _read_data,
    "locals": _read_locals,
}
