"""The blocks at the top of a file of OpenTofu code, in either of its two syntaxes.

A file that cannot be parsed gives the blocks that can be told apart: the engine says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.hcltree import line_of, parse_tree
from stackyard.base.documents.jsontext import parse_json

if TYPE_CHECKING:
    from stackyard.base.documents.hcltree import Node

__all__ = ["CODE_SUFFIXES", "CodeBlock", "is_code", "read_blocks"]

_JSON = ".json"
CODE_SUFFIXES = (".tf", ".tofu", ".tf.json", ".tofu.json")
# How many labels a block has, for the syntax in which they are keys like any other.
_LABELS = {"resource": 2, "data": 2, "ephemeral": 2, "terraform": 0, "locals": 0}
_SINGLE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeBlock:
    """One block.

    Attributes:
        type: The word that it begins with: `variable`, `resource`.
        labels: What follows the word.
        attributes: The texts of its attributes by name; a quoted text without its quotes.
        text: All of it.
        line: Where it begins; None in JSON.
    """

    type: str
    labels: tuple[str, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    line: int | None = None

    @property
    def name(self) -> str:
        """The last label, empty where there is none."""
        return self.labels[-1] if self.labels else ""


def is_code(name: str) -> bool:
    """Return whether an engine reads a file of this name as code."""
    return name.endswith(CODE_SUFFIXES) and not name.startswith(".")


def read_blocks(name: str, data: bytes) -> list[CodeBlock]:
    """Return the blocks of a file.

    Args:
        name: The name of the file, which tells the syntax.
        data: What is in it.
    """
    return list(_read_json(data) if name.endswith(_JSON) else _read_hcl(data))


def _read_hcl(data: bytes) -> Iterator[CodeBlock]:
    for body in parse_tree(data).children:
        for node in body.children if body.type == "body" else ():
            if node.type == "block":
                yield _hcl_block(node)


def _hcl_block(node: Node) -> CodeBlock:
    words = [_plain(child) for child in node.children if child.type in ("identifier", "string_lit")]
    attributes = {}
    for body in node.children:
        for child in body.children if body.type == "body" else ():
            if child.type == "attribute" and len(child.children) > _SINGLE:
                attributes[_plain(child.children[0])] = _plain(child.children[-1])
    return CodeBlock(
        type=words[0],
        labels=tuple(words[1:]),
        attributes=attributes,
        text=_decode(node),
        line=line_of(node),
    )


def _decode(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _plain(node: Node) -> str:
    """Return the text of a node, without the quotes of a text that is quoted as a whole."""
    text = _decode(node).strip()
    return text[1:-1] if len(text) > _SINGLE and text[0] == text[-1] == '"' else text


def _read_json(data: bytes) -> Iterator[CodeBlock]:
    try:
        document = parse_json(data)
    except ValueError:
        return
    for kind, inside in _pairs(document):
        yield from _json_blocks(kind, (), inside, _LABELS.get(kind, 1))


def _json_blocks(kind: str, labels: tuple[str, ...], inside: Any, more: int) -> Iterator[CodeBlock]:
    if more:
        for label, inner in _pairs(inside):
            yield from _json_blocks(kind, (*labels, label), inner, more - 1)
        return
    attributes = {name: _json_text(value) for name, value in _pairs(inside)}
    yield CodeBlock(type=kind, labels=labels, attributes=attributes, text=f"{kind} {labels} {inside}")


def _json_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    """Return the keys and values of an object, or of each in a list of them, which means the same."""
    for one in value if isinstance(value, list) else (value,):
        if isinstance(one, dict):
            yield from one.items()
