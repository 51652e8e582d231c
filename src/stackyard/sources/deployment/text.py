"""Reading the object: JSON that means one thing, and where each value of it stands.

Other readers keep the last of two equal keys, take `NaN` for a number and an empty body for nothing to do.
Here each of these is an error with its line and column, and so is everything that is no object.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from stackyard.base.documents.jsontext import JsonLimitError, next_token, parse_json_pairs
from stackyard.base.documents.limits import DocumentLimits
from stackyard.base.documents.lines import LineIndex
from stackyard.base.errors import InvalidInputError, Location

__all__ = [
    "EmptyObjectError",
    "ObjectSyntaxError",
    "ObjectText",
    "Path",
    "is_comment",
    "parse",
    "parse_any",
    "same",
    "strip_comments",
]

# Keys and indexes from the top of the object down.
Path = tuple[str | int, ...]

_LIMITS = DocumentLimits(size=64 * 2**20, depth=64, values=1_000_000)
# Digits that fit into 64 bits, whatever they are; no number of ours is near that.
_LONGEST_INTEGER = 18


class EmptyObjectError(InvalidInputError):
    """The object holds nothing: no byte, blanks, `{}`, `null`, or comments alone; that is never a plan."""

    code = "E-DEPLOYMENT-EMPTY"
    summary = "The deployment object holds nothing"
    default_remedy = "Look at `stackyard deployment history` and take back the last version that was whole."


class ObjectSyntaxError(InvalidInputError):
    """The object is not JSON that means one thing: cut off, a key twice, not an object, not UTF-8."""

    code = "E-DEPLOYMENT-SYNTAX"
    summary = "The deployment object is not valid"
    default_remedy = "Correct the place that is named; nothing was planned and nothing was written."


@dataclass(frozen=True, slots=True)
class ObjectText:
    """An object as it was written.

    Attributes:
        text: Its text.
        label: What it is called in messages.
        data: What it says, with its comments.
    """

    text: str
    label: str
    data: dict[str, Any] = field(repr=False)
    _places: dict[Path, tuple[int, int]] = field(default_factory=dict, repr=False)

    def place(self, path: Path) -> Location:
        """Return where a value stands, or the nearest thing around it; the text is read again for it."""
        if not self._places:
            lines = LineIndex(self.text)
            self._places.update({at: lines.find(index) for at, index in _positions(self.text).items()})
        for length in range(len(path), -1, -1):
            if (place := self._places.get(path[:length])) is not None:
                return Location(self.label, *place)
        return Location(self.label)


def parse(source: bytes | str, label: str) -> ObjectText:
    """Read an object.

    Args:
        source: Its bytes.
        label: What it is called in messages.

    Raises:
        EmptyObjectError: There is nothing in it.
        ObjectSyntaxError: It is not JSON that means one thing.
    """
    text = _decode(source, label)
    return _make_object_text(parse_any(text, label), text, label)


def parse_any(text: str, label: str) -> Any:
    """Read JSON of any kind, with the same care.

    Raises:
        EmptyObjectError: There is nothing in it.
        ObjectSyntaxError: It is not JSON that means one thing.
    """
    if not text.strip(" \t\r\n\f\v\0\ufeff"):
        raise EmptyObjectError(f"{label} is blank.", where=Location(label))
    try:
        return parse_json_pairs(
            text,
            limits=_LIMITS,
            object_pairs_hook=_once,
            parse_constant=_no_constant,
            parse_number=(_parse_number, _finite),
        )
    except JsonLimitError as err:
        where = Location(label, err.lineno, err.colno)
        raise ObjectSyntaxError(f"{label} is {err.msg}.", where=where) from err
    except _DuplicateKeyError as err:
        raise _make_duplicate_error(text, label, err.key) from err
    except json.JSONDecodeError as err:
        cut = " It ends in the middle: it was cut off." if err.pos >= len(text.rstrip()) else ""
        raise ObjectSyntaxError(
            f"{label} is not JSON: {err.msg} at line {err.lineno}, column {err.colno}.{cut}",
            where=Location(label, err.lineno, err.colno),
        ) from err
    except ValueError as err:
        raise ObjectSyntaxError(f"{label} is not JSON: {err}.", where=Location(label)) from err


def _make_object_text(data: Any, text: str, label: str) -> ObjectText:
    if data is None or data == {}:
        raise EmptyObjectError(f"{label} says {text.strip()}, which is no object.", where=Location(label))
    if not isinstance(data, dict):
        kinds = {list: "an array", str: "a string", bool: "a truth value"}
        raise ObjectSyntaxError(
            f"{label} is {kinds.get(type(data), 'a number')}, and has to be an object.", where=Location(label)
        )
    if all(map(is_comment, data)):
        raise EmptyObjectError(f"{label} holds comments alone.", where=Location(label))
    return ObjectText(text, label, data)


def is_comment(key: str) -> bool:
    """Return whether a key is a comment."""
    return key.startswith("_")


def strip_comments(value: Any) -> Any:
    """Return a value without the comments in it, at any depth."""
    if isinstance(value, dict):
        return {key: strip_comments(part) for key, part in value.items() if not key.startswith("_")}
    return [strip_comments(part) for part in value] if isinstance(value, list) else value


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same in JSON: `true` is not 1, and the order of keys is nothing."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


class _DuplicateKeyError(ValueError):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        raise _DuplicateKeyError(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")


def _parse_number(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise ValueError(f"{text[:30]} is too large for a number")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large for a number")
    return number


def _decode(source: bytes | str, label: str) -> str:
    if isinstance(source, str):
        return source
    try:
        text = source.decode()
    except UnicodeDecodeError as err:
        raise ObjectSyntaxError(
            f"{label} is not UTF-8 text: byte 0x{source[err.start]:02x} at {err.start}.",
            where=Location(label),
        ) from err
    return text.removeprefix("\ufeff")


def _make_duplicate_error(text: str, label: str, key: str) -> ObjectSyntaxError:
    """Return the error for a key that is there twice, with both of its places."""
    try:
        _positions(text)
    except _DuplicateError as err:
        first, second = map(LineIndex(text).find, (err.first, err.second))
        return ObjectSyntaxError(
            f"{label} has the key {err.key!r} twice: in line {first[0]} and in line {second[0]}.",
            where=Location(label, *second),
        )
    return ObjectSyntaxError(f"{label} has the key {key!r} twice.", where=Location(label))


class _DuplicateError(ValueError):
    def __init__(self, key: str, first: int, second: int) -> None:
        super().__init__(key)
        self.key, self.first, self.second = key, first, second


def _positions(text: str) -> dict[Path, int]:
    """Return where each value of a text begins; a value of an object begins at its key.

    Raises:
        _DuplicateError: A key is there twice.
    """
    places: dict[Path, int] = {}
    # What is open around the token: its path, and for an array the index that comes next.
    around: list[tuple[Path, int | None]] = []
    key: str | None = None
    at = 0
    while (token := next_token(text, at)) is not None:
        start, word = token
        at = start + len(word)
        if word in ",:":
            continue
        if word in "]}":
            around.pop()
            continue
        path, index = around[-1] if around else ((), None)
        if around and index is None and key is None:
            key = json.loads(word)
            first = places.get((*path, key))
            if first is not None:
                raise _DuplicateError(key, first, start)
            places[*path, key] = start
            continue
        here = _here(path, index, key, is_top=not around)
        places.setdefault(here, start)
        if index is not None:
            around[-1] = (path, index + 1)
        key = None
        if word in "[{":
            around.append((here, 0 if word == "[" else None))
    return places


def _here(path: Path, index: int | None, key: str | None, *, is_top: bool) -> Path:
    if is_top:
        return ()
    return (*path, index) if index is not None else (*path, key or "")
