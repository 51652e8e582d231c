"""Constraints as `~>`: in place, so that comments and alignment stay."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from stackyard.base.documents.byte_edits import Edit, apply_edits
from stackyard.base.documents.constraints import Operator, is_pinned, read_constraint, satisfies
from stackyard.base.documents.hcltree import parse_tree
from stackyard.base.documents.versions import Version
from stackyard.policy.sources import SourceKind, classify
from stackyard.sources.stacks.hcl import attributes_of, blocks_of, head_of
from stackyard.sources.stacks.hcl_expressions import convert, text_of
from stackyard.sources.stacks.lock_file import is_built_in, short_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stackyard.base.documents.constraints import Term
    from stackyard.base.documents.hcltree import Node

__all__ = ["edit_pins", "pin_constraint"]

_PARTS = 2


def edit_pins(data: bytes, locked: Callable[[str], Sequence[str]]) -> bytes:
    """Return a file of code with `~>` in each constraint that can have one.

    Args:
        data: The file; one that cannot be read whole is returned as it is.
        locked: Returns the versions that lock files have of a provider, by its short source.
    """
    root = parse_tree(data)
    if root.has_error:
        return data
    return apply_edits(data, _find_edits(root, data, locked))


def pin_constraint(constraint: str | None, locked: Sequence[str] = ()) -> str | None:
    """Return a constraint with `~>` in it that means as much, None where none is known.

    Args:
        constraint: The present one, None where there is none.
        locked: Versions that are in use, which have to fit the new one too.
    """
    if constraint is not None and constraint.strip():
        found = read_constraint(constraint)
        if found is None or is_pinned(constraint):
            return None
        made = _pin_terms(found.terms)
        # A version that fitted before has to fit afterwards.
        fitting = [one for one in locked if satisfies(one, constraint)]
        return made if made is not None and all(satisfies(one, made) for one in fitting) else None
    versions = sorted(one for one in _read_versions(locked) if not one.prerelease)
    if not versions or versions[0].major != versions[-1].major:
        return None
    return f"~> {versions[0].major}.{versions[0].minor}"


def _read_versions(texts: Sequence[str]) -> Iterator[Version]:
    for text in texts:
        with contextlib.suppress(ValueError):
            yield Version.parse(text)


def _pin_terms(terms: tuple[Term, ...]) -> str | None:
    if len(terms) != 1:
        return _pin_range(terms)
    [term] = terms
    if term.version.prerelease:
        return None
    if term.operator is Operator.EQUAL:
        return f"~> {term.text}" if len(term.numbers) > 1 else f"~> {term.text}.0"
    if term.operator is Operator.AT_LEAST:
        return _at_least(term)
    return None


def _at_least(term: Term) -> str:
    """Return a constraint for the same major version that begins where the term does."""
    first = ".".join(map(str, (*term.numbers, 0)[:_PARTS]))
    return f"~> {first}" if not any(term.numbers[_PARTS:]) else f"~> {first}, >= {term.text}"


def _pin_range(terms: tuple[Term, ...]) -> str | None:
    """Return the constraint for `>= 5.1, < 6.0`, which is a `~>` in other words."""
    lower = [one for one in terms if one.operator is Operator.AT_LEAST]
    upper = [one for one in terms if one.operator is Operator.LESS]
    if len(lower) != 1 or len(upper) != 1 or any(one.version.prerelease for one in terms):
        return None
    if len(terms) != _PARTS:
        return None
    is_next = upper[0].numbers[0] == lower[0].numbers[0] + 1 and not any(upper[0].numbers[1:])
    return _at_least(lower[0]) if is_next else None


def _find_edits(root: Node, data: bytes, locked: Callable[[str], Sequence[str]]) -> Iterator[Edit]:
    for block in blocks_of(root):
        kind, _ = head_of(block)
        if kind == "module":
            yield from _edit_module(block)
        elif kind == "terraform":
            for inner in blocks_of(block):
                if head_of(inner)[0] == "required_providers":
                    for name, value in attributes_of(inner):
                        yield from _edit_provider(name, value, data, locked)


def _edit_module(block: Node) -> Iterator[Edit]:
    values = dict(attributes_of(block))
    source = convert(values["source"]) if "source" in values else None
    version = values.get("version")
    if isinstance(source, str) and version is not None and classify(source) is SourceKind.REGISTRY:
        yield from _replace_text(version, pin_constraint(_constant(version)))


def _edit_provider(
    name: str, value: Node, data: bytes, locked: Callable[[str], Sequence[str]]
) -> Iterator[Edit]:
    said = convert(value)
    if isinstance(said, str):
        yield from _replace_text(value, pin_constraint(said, locked(short_source(name))))
        return
    if said[0] != "o":
        return
    source = said[1].get("source", f"hashicorp/{name}")
    if not isinstance(source, str) or is_built_in(short_source(source)):
        return
    versions = locked(short_source(source))
    elements = list(_elements(value))
    for element in elements:
        if text_of(element.named_children[0]).strip('"') == "version":
            new = element.named_children[1]
            yield from _replace_text(new, pin_constraint(_constant(new), versions))
            return
    made = pin_constraint(None, versions)
    if made is not None and elements:
        yield _insert(elements[-1], made, data)


def _constant(node: Node) -> str:
    """Return a constant constraint; what is computed is returned as none that can be read."""
    value = convert(node)
    return value if isinstance(value, str) and text_of(node).strip().startswith('"') else "?"


def _replace_text(node: Node, made: str | None) -> Iterator[Edit]:
    text = text_of(node)
    if made is not None and text.startswith('"') and text.endswith('"'):
        yield Edit(node.start_byte, node.end_byte, f'"{made}"')


def _elements(value: Node) -> Iterator[Node]:
    pending = [value]
    while pending:
        node = pending.pop()
        if node.type == "object_elem":
            yield node
        else:
            pending.extend(reversed(node.named_children))


def _is_comment(text: bytes) -> bool:
    """Return whether there is nothing but a comment, which ends on its line."""
    is_block = text.startswith(b"/*") and text.find(b"*/") == len(text) - 2
    return not text or is_block or text.startswith((b"#", b"//"))


def _insert(last: Node, made: str, data: bytes) -> Edit:
    """Add a version behind the last setting of a provider, in a line of its own where that one has."""
    begin = data.rfind(b"\n", 0, last.start_byte) + 1
    before = data[begin : last.start_byte]
    if before.strip():
        return Edit(last.end_byte, last.end_byte, f', version = "{made}"')
    end = data.find(b"\n", last.end_byte)
    end = len(data) if end < 0 else end
    tail = data[last.end_byte : end].rstrip(b"\r")
    comma = "," if tail.lstrip().startswith(b",") else ""
    if not _is_comment(tail.strip(b", \t")):
        return Edit(last.end_byte, last.end_byte, f', version = "{made}"')
    at = last.end_byte + len(tail)
    newline = "\r\n" if data[end - 1 : end] == b"\r" else "\n"
    return Edit(at, at, f'{newline}{before.decode()}version = "{made}"{comma}')
