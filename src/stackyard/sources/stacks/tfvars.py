"""Reading files with values of variables (`*.tfvars`, `*.tfvars.json`), each value with its line.

The engine judges what a value is good for. What is read here decides what must not be shown, and finds what
the engine takes without a word: of a key that is in an object twice it keeps the last one. A message never
has a piece of the text: it may be a secret.

The reader is written for this small part of HCL. A general parser (tree-sitter) needs twice as long for a
large file, before one looks at what it found, and accepts text that the engine refuses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostic, Kind
from stackyard.base.documents.lines import LineIndex
from stackyard.base.errors import InvalidInputError, Location
from stackyard.secrets.base import secret_texts
from stackyard.sources.deployment.text import ObjectText, parse_any
from stackyard.sources.stacks.tfvars_scan import (
    BLANKS,
    GAP,
    IDENTIFIER,
    NOT_CONSTANT,
    NUMBER,
    SIMPLE_TEXT,
    NotConstant,
    Scanner,
    TfvarsTextError,
    read_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "NOT_CONSTANT",
    "NotConstant",
    "Tfvars",
    "TfvarsError",
    "TfvarsValue",
    "index_places",
    "read_tfvars",
]

_DEEPEST = 500
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_SCALAR = rf'(?:"({SIMPLE_TEXT})"|({NUMBER})|(true|false|null))'
_ONE = rf'\s*+(?:"{SIMPLE_TEXT}"|{NUMBER}|true|false|null)\s*+'
_LIST = rf"\[((?:{_ONE},)*(?:{_ONE})?\s*)\]"
_ATTRIBUTE = re.compile(rf"({IDENTIFIER})[ \t]*+=(?![=>])")
_ENTRY = re.compile(rf"\s*+({IDENTIFIER})[ \t]*+[=:][ \t]*+(?:{_SCALAR}|{_LIST})[ \t]*+(?:,|\r?\n|(?=\}}))")
_SCALARS = re.compile(_SCALAR)
_ITEM = re.compile(rf"\s*+{_SCALAR}\s*+(?:,|(?=\]))")
_KEY = re.compile(rf"({IDENTIFIER}|{NUMBER})")
_GAP_STARTS = frozenset(" \t\r\n\f\v#/")
# What continues an expression behind a value.
_OPERATORS = frozenset("+-*/%<>=!&|?.[")
_FOR = re.compile(r"[\[{]\s*+for\s++[\w-]++\s*+(?:,|in\b)")
_NUMBER = re.compile(NUMBER)
_WORD = re.compile(r"(true|false|null)(?![\w.-])")

TWICE = Kind(
    code="E-TFVARS-TWICE",
    summary="A value is set twice in a variables file",
    remedy="Keep one of the two: OpenTofu would use the last one in an object without a warning.",
)


class TfvarsError(InvalidInputError):
    """A variables file is not valid: its syntax, its encoding, or a value that is set twice."""

    code = "E-TFVARS-SYNTAX"
    summary = "A variables file is not valid"
    default_remedy = "Correct the line that is named; nothing was planned."


@dataclass(frozen=True, slots=True, kw_only=True)
class TfvarsValue:
    """The value of one variable.

    Attributes:
        where: Where it is set.
        value: What it is; `NOT_CONSTANT` in it is for the engine to compute.
    """

    where: Location
    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tfvars:
    """A file with values of variables; its representation shows none.

    Attributes:
        path: Its name.
        variables: The values by the names of their variables.
        strings: Every text in its values, for the redactor, and every number that is long enough to tell.
    """

    path: str
    variables: Mapping[str, TfvarsValue] = field(repr=False)
    strings: frozenset[str] = field(repr=False)


def read_tfvars(data: bytes, path: str) -> Tfvars:
    """Read a file with values of variables, in the form that its name says.

    Raises:
        TfvarsError: It is not valid; every value that is set twice is named.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        raise TfvarsError(f"{path} is not UTF-8 text.", where=Location(path, line)) from err
    return _read_json(text, path) if path.endswith(".json") else _read_hcl(text, path)


def index_places(text: str) -> tuple[dict[str, tuple[int, Any]], dict[int, tuple[int, dict[str, int]]]]:
    """Read a text that is valid HCL again, for the places of everything in it.

    Returns:
        The values by name with their places, and, by the `id` of each object and list in them, where it
        begins and where its keys are.
    """
    reader = _Reader(text, collects=True)
    found = reader.read()
    return found, {id(one.items): (one.start, one.places) for one in reader.collections}


def _read_json(text: str, path: str) -> Tfvars:
    try:
        data = parse_any(text, path)
    except InvalidInputError as err:
        # Its own words may quote a number of the text.
        said = err.detail if " twice" in err.detail else f"{path} is not JSON that means one thing."
        raise TfvarsError(said, where=err.where) from None
    if not isinstance(data, dict):
        raise TfvarsError(f"{path} is not an object of JSON.", where=Location(path, 1))
    found = ObjectText(text, path, data)
    variables = {
        name: TfvarsValue(where=found.place((name,)), value=value)
        for name, value in found.data.items()
        if name != "//"
    }
    return Tfvars(path=path, variables=variables, strings=secret_texts(_leaves(found.data)))


def _leaves(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            waiting.extend(one.values() if isinstance(one, dict) else one)
        else:
            yield one


def _read_hcl(text: str, path: str) -> Tfvars:
    reader = _Reader(text)
    try:
        found = reader.read()
    except TfvarsTextError as err:
        where = Location(path, *LineIndex(text).find(err.at))
        raise TfvarsError(f"{path}: {err.problem}.", where=where) from None
    lines = LineIndex(text)
    if reader.twice:
        raise _make_twice_error(reader.twice, path, lines)
    variables = {
        name: TfvarsValue(where=Location(path, *lines.find(start)), value=value)
        for name, (start, value) in found.items()
    }
    strings = frozenset(reader.strings) | secret_texts(reader.numbers)
    return Tfvars(path=path, variables=variables, strings=strings)


def _make_twice_error(twice: list[tuple[str, int, int]], path: str, lines: LineIndex) -> TfvarsError:
    findings = []
    for key, first, second in twice:
        before, here = (Location(path, *lines.find(at)) for at in (first, second))
        detail = f"`{key}` is set in line {before.line} and again in line {here.line}."
        findings.append(Diagnostic(kind=TWICE, detail=detail, where=here, also=(before,)))
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return TfvarsError(f"{path}: {findings[0].detail[:-1]}{more}.", tuple(findings), where=findings[0].where)


@dataclass(slots=True)
class _Collection:
    """An object or a list that is being read."""

    start: int
    items: dict[str, Any] | list[Any]
    places: dict[str, int] = field(default_factory=dict)
    key: str | None = None
    # Whether an item was read and nothing behind it yet.
    is_behind_item: bool = False
    is_constant: bool = True

    @property
    def value(self) -> Any:
        """What was read; one with a key that has to be computed is no constant."""
        return self.items if self.is_constant else NOT_CONSTANT

    def add(self, value: Any) -> None:
        if isinstance(self.items, list):
            self.items.append(value)
        elif self.key is not None:
            self.items[self.key] = value
        self.is_behind_item = True


class _Reader(Scanner):
    """Reads a whole text; collections are kept in a list, so that no depth ends Python's stack."""

    def __init__(self, text: str, *, collects: bool = False) -> None:
        super().__init__(text)
        self._collects = collects
        self.collections: list[_Collection] = []
        self.twice: list[tuple[str, int, int]] = []
        self.numbers: list[int | float] = []

    def read(self) -> dict[str, tuple[int, Any]]:
        """Return the values of the text with their places."""
        found: dict[str, tuple[int, Any]] = {}
        while True:
            self._skip(BLANKS)
            if self.at == len(self.text):
                return found
            start, name = self.at, self._read_name()
            if name in found:
                self.twice.append((name, found[name][0], start))
            value = self._read_expression()
            found[name] = (start, value)
            self._skip(GAP)
            if self.at < len(self.text) and self.text[self.at] != "\n":
                raise TfvarsTextError(f"Something follows the value of `{name}` in its line", self.at)

    def _read_name(self) -> str:
        found = _ATTRIBUTE.match(self.text, self.at)
        if found is None:
            if self.text[self.at] == "\ufeff":
                raise TfvarsTextError("The file begins with a byte order mark", self.at)
            raise TfvarsTextError("A line is not of the form `NAME = VALUE`", self.at)
        self.at = found.end()
        self._skip(GAP)
        return found[1]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        if self.text[self.at : self.at + 1] in _GAP_STARTS:
            found = pattern.match(self.text, self.at)
            self.at = found.end() if found is not None else self.at

    def _read_expression(self) -> Any:
        around: list[_Collection] = []
        while True:
            value = self._begin_value(around)
            if isinstance(value, _Collection):
                around.append(value)
                if self._collects:
                    self.collections.append(value)
                if len(around) > _DEEPEST:
                    raise TfvarsTextError(f"Values are nested deeper than {_DEEPEST} levels", self.at)
            elif not around:
                return value
            else:
                around[-1].add(value)
            while not self._find_item(around[-1]):
                value = self._finish(around.pop().value, around)
                if not around:
                    return value
                around[-1].add(value)

    def _begin_value(self, around: list[_Collection]) -> Any:
        """Read a value without items, or the start of a collection."""
        text, start = self.text, self.at
        first = text[start : start + 1]
        if first in ("{", "[") and not _FOR.match(text, start):
            self.at += 1
            return _Collection(start, {} if first == "{" else [])
        if first == '"':
            return self._finish(self.read_string(), around)
        if (number := _NUMBER.match(text, start)) is not None:
            self.at = number.end()
            return self._finish(self._note(read_number(number[0])), around)
        if (word := _WORD.match(text, start)) is not None:
            self.at = word.end()
            return self._finish(_WORDS[word[1]], around)
        if first == "<" and (heredoc := self.read_heredoc()) is not None:
            return heredoc
        if first in ("", "\n", ",", "=", ":", ")", "]", "}"):
            raise TfvarsTextError("A value is missing", start)
        return self._skip_rest(around)

    def _finish(self, value: Any, around: list[_Collection]) -> Any:
        """Return a value, unless more follows that makes it part of an expression."""
        in_list = bool(around) and isinstance(around[-1].items, list)
        self._skip(BLANKS if in_list else GAP)
        if self.at == len(self.text) or (here := self.text[self.at]) in "\n,]})":
            return value
        if here not in _OPERATORS:
            raise TfvarsTextError("A comma or a new line is missing between two values", self.at)
        return self._skip_rest(around)

    def _skip_rest(self, around: list[_Collection]) -> NotConstant:
        in_list = bool(around) and isinstance(around[-1].items, list)
        self.skip_expression(newline_ends=not in_list)
        return NOT_CONSTANT

    def _note(self, number: int | float | NotConstant) -> int | float | NotConstant:
        if not isinstance(number, NotConstant):
            self.numbers.append(number)
        return number

    def _find_item(self, one: _Collection) -> bool:
        """Go to the next value of a collection; False, and behind its bracket, if there is none."""
        if one.is_behind_item:
            self._pass_separator(one)
        self._read_simple(one)
        self._skip(BLANKS)
        if self.at == len(self.text):
            raise TfvarsTextError("A bracket is not closed", one.start)
        if self.text[self.at] == ("]" if isinstance(one.items, list) else "}"):
            self.at += 1
            return False
        if isinstance(one.items, dict):
            self._read_key(one)
        return True

    def _pass_separator(self, one: _Collection) -> None:
        is_list = isinstance(one.items, list)
        self._skip(BLANKS if is_list else GAP)
        here = self.text[self.at : self.at + 1]
        if here == "," or (here == "\n" and not is_list):
            self.at += 1
        elif here and here != ("]" if is_list else "}"):
            raise TfvarsTextError("A comma is missing, or a bracket is not closed", self.at)

    def _read_simple(self, one: _Collection) -> None:
        """Read as many items as are plain values with nothing special about them: nearly all are."""
        items = one.items
        if isinstance(items, list):
            while (found := _ITEM.match(self.text, self.at)) is not None:
                items.append(self._scalar(found[1], found[2], found[3]))
                self.at = found.end()
            return
        while (found := _ENTRY.match(self.text, self.at)) is not None:
            self._note_key(one, found[1], found.start(1))
            key, string, number, word, listed = found.groups()
            items[key] = (
                [self._scalar(*one.groups()) for one in _SCALARS.finditer(listed)]
                if listed is not None
                else self._scalar(string, number, word)
            )
            self.at = found.end()

    def _scalar(self, string: str | None, number: str | None, word: str | None) -> Any:
        if string is not None:
            self.strings.append(string)
            return string
        return self._note(read_number(number)) if number is not None else _WORDS[word or "null"]

    def _note_key(self, one: _Collection, key: str, start: int) -> None:
        first = one.places.setdefault(key, start)
        if first != start:
            self.twice.append((key, first, start))

    def _read_key(self, one: _Collection) -> None:
        start = self.at
        if self.text[start] == '"':
            key = self.read_string()
            if isinstance(key, str):
                # A key is no value: a secret is never one.
                self.strings.pop()
        elif self.text[start] == "(":
            self.at += 1
            self.skip_expression(newline_ends=False)
            self.at += 1
            key = NOT_CONSTANT
        else:
            found = _KEY.match(self.text, start)
            if found is None:
                raise TfvarsTextError("A key is missing", start)
            self.at, key = found.end(), found[1]
        self._skip(GAP)
        if self.text[self.at : self.at + 1] not in ("=", ":"):
            raise TfvarsTextError("A key has no value", start)
        self.at += 1
        self._skip(BLANKS)
        one.key = key if isinstance(key, str) else None
        if one.key is None:
            one.is_constant = False
        else:
            self._note_key(one, one.key, start)
