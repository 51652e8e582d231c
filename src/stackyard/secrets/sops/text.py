"""Where the `sops` part is in YAML, JSON and dotenv, and how each writes a value and an encrypted one."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Protocol

from stackyard.base.errors import Location
from stackyard.secrets.formats.dotenv_layout import dotenv_scalar, parse_dotenv
from stackyard.secrets.formats.json_layout import json_scalar, parse_json
from stackyard.secrets.formats.yaml_layout import parse_yaml
from stackyard.secrets.formats.yaml_scalar import yaml_flow, yaml_scalar
from stackyard.secrets.layout import (
    Branch,
    Layout,
    LayoutDocument,
    LayoutEntry,
    Leaf,
    Node,
    SecretsSyntaxError,
    Splice,
    apply_splices,
    find,
    is_one_line,
    plain_data,
)
from stackyard.secrets.sops.flatten import flatten, unflatten
from stackyard.secrets.values import Scalar, Timestamp

__all__ = ["FileFormat", "TextFormat", "format_of_name", "text_format"]

_KEY = "sops"
_PREFIX = "sops_"


class FileFormat(enum.StrEnum):
    """What is inside a SOPS file."""

    YAML = "yaml"
    JSON = "json"
    DOTENV = "dotenv"
    BINARY = "binary"


_SUFFIXES = {
    ".yaml": FileFormat.YAML,
    ".yml": FileFormat.YAML,
    ".json": FileFormat.JSON,
    ".env": FileFormat.DOTENV,
}
# What people add to a name to say that the file is encrypted; it says nothing of what is inside.
_ENCRYPTED_SUFFIXES = (".enc", ".encrypted", ".sops")


def format_of_name(name: str) -> FileFormat:
    """Return the format that a file name represents, as SOPS takes it: anything unknown is binary."""
    path = PurePath(name)
    while path.suffix in _ENCRYPTED_SUFFIXES:
        path = path.with_suffix("")
    if path.name == ".env":
        return FileFormat.DOTENV
    return _SUFFIXES.get(path.suffix, FileFormat.BINARY)


class TextFormat(Protocol):
    """How a format of text holds encrypted values and the `sops` part."""

    def parse(self, text: str, path: str) -> Layout:
        """Read a text, with or without a `sops` part."""

    def without_metadata(self, layout: Layout) -> Layout:
        """Return the layout of the same text with the entries of the `sops` part left out."""

    def metadata(self, layout: Layout) -> Mapping[str, object] | None:
        """Return the `sops` part, if there is one."""

    def metadata_place(self, layout: Layout, path: str) -> Location:
        """Return where it is."""

    def scalar(self, value: Scalar, leaf: Leaf, text: str) -> str:
        """Return a value as it is written in the place of another."""

    def token(self, token: str, leaf: Leaf) -> str:
        """Return an encrypted value as it is written in the place of another."""

    def drop_metadata(self, layout: Layout) -> list[Splice]:
        """Return what takes the `sops` part out of a text."""

    def add_metadata(self, layout: Layout, document: Mapping[str, object]) -> list[Splice]:
        """Return what adds a new `sops` part to a text without one."""

    def carry_metadata(self, old: Layout, new: Layout, changes: Mapping[str, str]) -> list[Splice]:
        """Return what adds the `sops` part of one text to another, with some of its values changed."""


def text_format(kind: FileFormat, *, indent: int = 4) -> TextFormat:
    """Return the format of text that a kind of file is written in; binary files are wrapped in JSON."""
    if kind is FileFormat.YAML:
        return _Yaml(indent)
    return _Dotenv() if kind is FileFormat.DOTENV else _Json()


def _bytes_refused(leaf: Leaf) -> SecretsSyntaxError:
    return SecretsSyntaxError(
        f"The value in line {leaf.place.line} holds bytes that are no text: only YAML can hold these."
    )


def _raw_data(node: Node) -> object:
    """Return what a node holds, a time as the text that it is."""
    if isinstance(node, Leaf):
        return node.value.text if isinstance(node.value, Timestamp) else node.value
    if isinstance(node, Branch):
        return {entry.key: _raw_data(entry.node) for entry in node.entries}
    return [_raw_data(item.node) for item in node.items]


class _Nested:
    """What YAML and JSON have in common: the part is one entry of each document."""

    def without_metadata(self, layout: Layout) -> Layout:
        documents = tuple(
            LayoutDocument(root=_without(document.root, _KEY), end=document.end)
            for document in layout.documents
        )
        return Layout(text=layout.text, documents=documents, aliases=layout.aliases)

    def metadata(self, layout: Layout) -> Mapping[str, object] | None:
        entry = find(layout.documents[0].root, _KEY) if layout.documents else None
        if entry is None or not isinstance(entry.node, Branch):
            return None
        data = _raw_data(entry.node)
        return data if isinstance(data, Mapping) else None

    def metadata_place(self, layout: Layout, path: str) -> Location:
        entry = find(layout.documents[0].root, _KEY) if layout.documents else None
        return Location(path) if entry is None else entry.place.location(path)

    def _raw(self, old: Layout, changes: Mapping[str, str]) -> tuple[str, Branch] | None:
        """Return the text of the part with changes made, and what it was."""
        entry = find(old.documents[0].root, _KEY)
        if entry is None or not isinstance(entry.node, Branch):
            return None
        base = entry.start
        splices = []
        for inner in entry.node.entries:
            if inner.key in changes and isinstance(inner.node, Leaf):
                quoted = json.dumps(changes[inner.key])
                bare = (
                    changes[inner.key]
                    if self._may_be_bare(old.text, inner.node, changes[inner.key])
                    else quoted
                )
                splices.append(Splice(inner.node.start - base, inner.node.end - base, bare))
        return apply_splices(old.text[base : _end(entry.node)], splices), entry.node

    def _may_be_bare(self, text: str, leaf: Leaf, new: str) -> bool:
        return text[leaf.start] not in "\"'" and not leaf.is_flow and new.startswith("ENC[")


class _Yaml(_Nested):
    """YAML; a document in braces gets the part in braces."""

    def __init__(self, indent: int) -> None:
        self._indent = indent

    def parse(self, text: str, path: str) -> Layout:
        return parse_yaml(text, path)

    def scalar(self, value: Scalar, leaf: Leaf, text: str) -> str:
        return yaml_scalar(value, indent=leaf.indent, is_flow=is_one_line(leaf, text))

    def token(self, token: str, leaf: Leaf) -> str:
        return f'"{token}"' if leaf.is_flow else token

    def drop_metadata(self, layout: Layout) -> list[Splice]:
        splices = []
        for document in layout.documents:
            entry = find(document.root, _KEY)
            if entry is None:
                continue
            if document.root.is_flow:
                splices.append(_member(document.root, entry, layout.text))
            else:
                end = layout.text.find("\n", _end(entry.node))
                splices.append(Splice(entry.start, len(layout.text) if end < 0 else end + 1, ""))
        return splices

    def add_metadata(self, layout: Layout, document: Mapping[str, object]) -> list[Splice]:
        block = "\n".join(_yaml_lines({_KEY: document}, self._indent, 0))
        return [self._insert(layout.text, one, block, yaml_flow(dict(document))) for one in layout.documents]

    def carry_metadata(self, old: Layout, new: Layout, changes: Mapping[str, str]) -> list[Splice]:
        raw = self._raw(old, changes)
        is_flow = old.documents[0].root.is_flow
        if raw is None or any(one.root.is_flow != is_flow for one in new.documents):
            return self.add_metadata(new, {**(self.metadata(old) or {}), **changes})
        return [
            self._insert(new.text, one, raw[0].rstrip(), raw[0].partition(":")[2].strip())
            for one in new.documents
        ]

    def _insert(self, text: str, document: LayoutDocument, block: str, flow: str) -> Splice:
        root = document.root
        if root.is_flow:
            comma = ", " if root.entries else ""
            last = _end(root.entries[-1].node) if root.entries else root.start + 1
            return Splice(last, last, f"{comma}{_KEY}: {flow}")
        newline = "\r\n" if "\r\n" in text else "\n"
        before = "" if document.end == 0 or text[document.end - 1] == "\n" else newline
        if not root.entries and (
            empty := re.search(r"(null|Null|NULL|~)[ \t]*$", text[root.start : root.end])
        ):
            # A document that says that it is nothing cannot also hold something.
            start = root.start + empty.start()
            return Splice(start, document.end, newline + block.replace("\n", newline) + newline)
        return Splice(document.end, document.end, before + block.replace("\n", newline) + newline)


def _yaml_lines(value: object, indent: int, depth: int) -> Iterator[str]:
    """Write the `sops` part in the style of SOPS."""
    space = " " * (indent * depth)
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(inner, Mapping | list) and inner:
                yield f"{space}{key}:"
                yield from _yaml_lines(inner, indent, depth + 1)
            else:
                yield f"{space}{key}: {_yaml_value(inner, indent * depth)}"
    elif isinstance(value, list):
        for item in value:
            inside = "\n".join(_yaml_lines(item, indent, 0)) if isinstance(item, Mapping) else yaml_flow(item)
            # A mapping in a list is set off by the width of the dash.
            first, *others = inside.split("\n")
            yield "\n".join([f"{space}- {first}", *(f"{space}  {line}" for line in others)])


def _yaml_value(value: object, column: int) -> str:
    if isinstance(value, str) and re.fullmatch(r"ENC\[[^\s\"]+\]", value):
        return value
    if value is None or isinstance(value, str | bytes | int | float | Timestamp):
        return yaml_scalar(value, indent=column)
    return yaml_flow(value)


class _Json(_Nested):
    """JSON; also the wrapping of binary files."""

    def parse(self, text: str, path: str) -> Layout:
        return parse_json(text, path)

    def scalar(self, value: Scalar, leaf: Leaf, text: str) -> str:
        if isinstance(value, bytes):
            raise _bytes_refused(leaf)
        return json_scalar(value)

    def token(self, token: str, leaf: Leaf) -> str:
        return f'"{token}"'

    def drop_metadata(self, layout: Layout) -> list[Splice]:
        root = layout.documents[0].root
        entry = find(root, _KEY)
        return [] if entry is None else [_member(root, entry, layout.text)]

    def add_metadata(self, layout: Layout, document: Mapping[str, object]) -> list[Splice]:
        root = layout.documents[0].root
        first = root.entries[0].start if root.entries else root.start
        # As deep as the file itself; SOPS uses tabs.
        unit = layout.text[root.start + 1 : first].rpartition("\n")[2] or "\t"
        inside = json.dumps(document, indent=unit, ensure_ascii=False).replace("\n", f"\n{unit}")
        return [self._insert(layout, f'"{_KEY}": {inside}')]

    def carry_metadata(self, old: Layout, new: Layout, changes: Mapping[str, str]) -> list[Splice]:
        raw = self._raw(old, changes)
        if raw is None:
            return self.add_metadata(new, {**(self.metadata(old) or {}), **changes})
        return [self._insert(new, raw[0])]

    def _insert(self, layout: Layout, member: str) -> Splice:
        root = layout.documents[0].root
        if not root.entries:
            return Splice(root.start + 1, root.end - 1, f"\n\t{member}\n")
        # As the last member is set off from the one before, or from the brace.
        first = root.entries[0].start
        space = layout.text[root.start + 1 : first]
        last = _end(root.entries[-1].node)
        return Splice(last, last, f",{space}{member}" if "\n" in space else f", {member}")


class _Dotenv:
    """Dotenv; the part is many lines, each with a name that begins with `sops_`."""

    def parse(self, text: str, path: str) -> Layout:
        return parse_dotenv(text, path)

    def without_metadata(self, layout: Layout) -> Layout:
        (document,) = layout.documents
        kept = tuple(entry for entry in document.root.entries if not entry.key.startswith(_PREFIX))
        return Layout(text=layout.text, documents=(_with_entries(document, kept),))

    def metadata(self, layout: Layout) -> Mapping[str, object] | None:
        flat = {entry.key.removeprefix(_PREFIX): plain_data(entry.node) for entry in self._entries(layout)}
        return unflatten(flat) if flat else None

    def metadata_place(self, layout: Layout, path: str) -> Location:
        entries = self._entries(layout)
        return entries[0].place.location(path) if entries else Location(path)

    def scalar(self, value: Scalar, leaf: Leaf, text: str) -> str:
        if isinstance(value, bytes):
            raise _bytes_refused(leaf)
        return dotenv_scalar(value)

    def token(self, token: str, leaf: Leaf) -> str:
        return token

    def drop_metadata(self, layout: Layout) -> list[Splice]:
        return [
            Splice(entry.start, min(_end(entry.node) + 1, len(layout.text)), "")
            for entry in self._entries(layout)
        ]

    def add_metadata(self, layout: Layout, document: Mapping[str, object]) -> list[Splice]:
        lines = [f"{_PREFIX}{key}={dotenv_scalar(value)}\n" for key, value in flatten(document).items()]
        end = len(layout.text)
        before = "" if end == 0 or layout.text.endswith("\n") else "\n"
        return [Splice(end, end, before + "".join(lines))]

    def carry_metadata(self, old: Layout, new: Layout, changes: Mapping[str, str]) -> list[Splice]:
        return self.add_metadata(new, {**(self.metadata(old) or {}), **changes})

    def _entries(self, layout: Layout) -> list[LayoutEntry]:
        return [entry for entry in layout.documents[0].root.entries if entry.key.startswith(_PREFIX)]


def _end(node: Node) -> int:
    return node.end


def _without(root: Branch, key: str) -> Branch:
    """Leave an entry out; the comments before it are those behind the last one that stays."""
    gone = [entry for entry in root.entries if entry.key == key]
    remarks = (*(remark for entry in gone for remark in entry.remarks), *root.remarks)
    return Branch(
        entries=tuple(entry for entry in root.entries if entry.key != key),
        start=root.start,
        end=root.end,
        place=root.place,
        is_flow=root.is_flow,
        remarks=remarks,
    )


def _with_entries(document: LayoutDocument, entries: tuple[LayoutEntry, ...]) -> LayoutDocument:
    root = document.root
    kept = Branch(entries=entries, start=root.start, end=root.end, place=root.place, remarks=root.remarks)
    return LayoutDocument(root=kept, end=document.end)


def _member(root: Branch, entry: LayoutEntry, text: str) -> Splice:
    """Return what takes a member out of an object, with the comma that goes with it."""
    index = root.entries.index(entry)
    if index > 0:
        return Splice(_end(root.entries[index - 1].node), _end(entry.node), "")
    if len(root.entries) > 1:
        return Splice(entry.start, root.entries[1].start, "")
    return Splice(entry.start, _end(entry.node), "")
