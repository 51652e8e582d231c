"""Reading JSON into a layout."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import next_token, parse_json_pairs
from stackyard.base.documents.lines import LineIndex
from stackyard.base.errors import Location
from stackyard.secrets.layout import (
    Branch,
    Item,
    Layout,
    LayoutDocument,
    LayoutEntry,
    Leaf,
    Listing,
    Node,
    Position,
    SecretsSyntaxError,
)

if TYPE_CHECKING:
    from stackyard.secrets.values import Scalar

__all__ = ["json_scalar", "parse_json"]

_DEEPEST = 100
_LEAST_INT, _LARGEST_INT = -(2**63), 2**63 - 1


def parse_json(text: str, path: str) -> Layout:
    """Read JSON as SOPS does: an object at the top.

    Raises:
        SecretsSyntaxError: It is not JSON, not an object, or has a key twice.
    """
    try:
        parse_json_pairs(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as err:
        raise SecretsSyntaxError(
            f"{path} is not valid JSON: {err.msg}.", where=Location(path, err.lineno, err.colno)
        ) from err
    except ValueError as err:
        raise SecretsSyntaxError(f"{path} is not valid JSON: {err}.", where=Location(path)) from err
    reader = _Reader(text, path)
    root = reader.node(0)
    if not isinstance(root, Branch):
        raise SecretsSyntaxError(
            f"{path} is not an object at its top, and only objects can be secrets files.",
            where=root.place.location(path),
        )
    return Layout(text=text, documents=(LayoutDocument(root=root, end=root.end),))


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


class _Reader:
    """Walks over the tokens of text that is known to be JSON."""

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        self._path = path
        self._at = 0
        self._lines = LineIndex(text)

    def node(self, depth: int) -> Node:
        start, word = self._next()
        place = self._place(start)
        if depth > _DEEPEST:
            raise self._make_error(f"it is nested deeper than {_DEEPEST} levels", place)
        if word == "{":
            return self._object(start, place, depth)
        if word == "[":
            return self._array(start, place, depth)
        value = self._value(word, place)
        return Leaf(value=value, start=start, end=self._at, place=place, is_flow=True)

    def _object(self, start: int, place: Position, depth: int) -> Branch:
        entries: dict[str, LayoutEntry] = {}
        while True:
            key_start, word = self._next()
            if word == "}":
                return Branch(
                    entries=tuple(entries.values()), start=start, end=self._at, place=place, is_flow=True
                )
            if word == ",":
                continue
            key: str = json.loads(word)
            key_place = self._place(key_start)
            if key in entries:
                raise self._make_error(
                    f"the key {key!r} is there twice, first in line {entries[key].place.line}", key_place
                )
            self._next()
            entries[key] = LayoutEntry(key=key, node=self.node(depth + 1), start=key_start, place=key_place)

    def _array(self, start: int, place: Position, depth: int) -> Listing:
        items: list[Item] = []
        while True:
            at = self._at
            word = self._next()[1]
            if word == "]":
                return Listing(items=tuple(items), start=start, end=self._at, place=place)
            if word != ",":
                self._at = at
                node = self.node(depth + 1)
                items.append(Item(node=node, start=node.start))

    def _next(self) -> tuple[int, str]:
        token = next_token(self._text, self._at)
        if token is None:
            raise SecretsSyntaxError(f"{self._path} is not valid JSON.", where=Location(self._path))
        self._at = token[0] + len(token[1])
        return token

    def _place(self, index: int) -> Position:
        return Position(*self._lines.find(index))

    def _value(self, word: str, place: Position) -> Scalar:
        value: Scalar = json.loads(word)
        if type(value) is int and not _LEAST_INT <= value <= _LARGEST_INT:
            try:
                return float(value)
            except OverflowError as err:
                raise self._make_error("a number is too large", place) from err
        return value

    def _make_error(self, why: str, place: Position) -> SecretsSyntaxError:
        return SecretsSyntaxError(f"{self._path} cannot be read: {why}.", where=place.location(self._path))


def json_scalar(value: Scalar) -> str:
    """Return the JSON of a value; bytes that are no text are an error of the caller."""
    if isinstance(value, str | int | float | bool) or value is None:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value))
