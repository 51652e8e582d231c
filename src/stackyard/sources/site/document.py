"""One YAML file: its text, its plain values, and the place of any of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

from yaml import SequenceNode

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import FileError, Location
from stackyard.base.files import read_text
from stackyard.sources.site.read_yaml import compose, entries, location, plain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from yaml import Node

__all__ = ["Document", "Key", "LocatedValues", "format_path", "parse_document", "read_document"]

Key = str | int


class LocatedValues(Protocol):
    """Values of a file, and where they are in it."""

    @property
    def path(self) -> str:
        """The file, as it is shown to the user."""

    @property
    def data(self) -> dict[str, Any]:
        """The plain values."""

    def place(self, keys: Sequence[Key] = ()) -> Location:
        """Return where a value is, or the nearest place above it that the file has."""

    def key_place(self, keys: Sequence[Key]) -> Location:
        """Return where the key of a value is."""


EMPTY_FILE = Kind(
    code="E-YAML-EMPTY",
    summary="The file says nothing",
    remedy="Write what it should say, or remove the file.",
)
NOT_A_MAPPING = Kind(
    code="E-YAML-MAPPING",
    summary="The file is not a mapping",
    remedy="Write `key: value` lines at its top level.",
)
UNREADABLE = Kind(
    code="E-YAML-FILE",
    summary="The file cannot be read",
    remedy="Check that it is a UTF-8 text file that you may read.",
)


class Document:
    """A file that was read.

    Args:
        path: As it is shown to the user.
        text: Its text.
        data: Its plain values.
    """

    __slots__ = ("_root", "data", "path", "text")

    def __init__(self, path: str, text: str, data: dict[str, Any]) -> None:
        self.path = path
        self.text = text
        self.data = data
        self._root: Node | None = None

    def place(self, keys: Sequence[Key] = ()) -> Location:
        """Return where a value is, or the nearest place above it that the file has."""
        return self._find(keys, wants_key=False)

    def key_place(self, keys: Sequence[Key]) -> Location:
        """Return where the key of a value is."""
        return self._find(keys, wants_key=True)

    def _find(self, keys: Sequence[Key], *, wants_key: bool) -> Location:
        if self._root is None:
            # Parsed again: the nodes of a first reading are not kept, since nearly no one asks for places.
            self._root = compose(self.text, self.path, Diagnostics())
        node = self._root
        if node is None:
            return Location(self.path)
        found = node
        for number, key in enumerate(keys):
            step = _step(node, key)
            if step is None:
                break
            key_node, node = step
            found = key_node if wants_key and number == len(keys) - 1 else node
        return location(self.path, found.start_mark)


def _step(node: Node, key: Key) -> tuple[Node, Node] | None:
    if isinstance(key, str):
        return next(((key_node, value) for name, key_node, value in entries(node) if name == key), None)
    if type(node) is SequenceNode and 0 <= key < len(node.value):
        return node.value[key], node.value[key]
    return None


def format_path(path: Path) -> str:
    """Return a path as the user would type it: relative where it is below the current folder."""
    absolute = os.path.abspath(path)
    here = os.path.join(os.path.abspath("."), "")
    return absolute.removeprefix(here)


def read_document(path: Path, found: Diagnostics, *, shown: str | None = None) -> Document | None:
    """Read a file that has to hold a mapping; what is wrong with it becomes findings.

    Args:
        path: The file.
        found: Takes the findings.
        shown: How to call it in findings, when not by its path.
    """
    name = format_path(path) if shown is None else shown
    try:
        text = read_text(path)
    except FileError as err:
        place = Location(name) if err.where is None else Location(name, err.where.line, err.where.column)
        found.add(UNREADABLE, err.detail, place)
        return None
    return parse_document(text, name, found)


def parse_document(text: str, name: str, found: Diagnostics) -> Document | None:
    """Read a text that has to hold a mapping; what is wrong with it becomes findings."""
    before = len(found)
    node = compose(text, name, found)
    if node is None:
        if len(found) == before:
            found.add(EMPTY_FILE, "There is nothing in it but space and comments.", Location(name, 1, 1))
        return None
    data = plain(node, name, found)
    if isinstance(data, dict):
        return Document(name, text, data)
    if len(found) == before:
        empty = data is None
        found.add(
            EMPTY_FILE if empty else NOT_A_MAPPING,
            "There is nothing in it." if empty else f"It holds a {_kind(data)}.",
            location(name, node.start_mark),
        )
    return None


def _kind(data: object) -> str:
    if isinstance(data, list):
        return "list"
    return "text" if isinstance(data, str) else "single value"
