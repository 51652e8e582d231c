"""TOML with places: `tomllib` says what a text means, and a scan of the same text where each value is.

The scan runs only for a text that `tomllib` has accepted, so that it need not know what is wrong TOML.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import FileError, Location
from stackyard.base.files import read_text
from stackyard.sources.site.document import format_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stackyard.sources.site.document import Key

__all__ = ["TomlDocument", "parse_toml", "read_toml"]

BAD_TOML = Kind(
    code="E-TOML-SYNTAX",
    summary="The file is not TOML",
    remedy="Correct this place: texts need quotes, and every table and key may be there once.",
)
EMPTY_TOML = Kind(
    code="E-TOML-EMPTY",
    summary="The file says nothing",
    remedy="Write what it should say, or remove the file.",
)
UNREADABLE = Kind(
    code="E-TOML-FILE",
    summary="The file cannot be read",
    remedy="Check that it is a UTF-8 text file that you may read.",
)

_Path = tuple["Key", ...]
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_DEEPEST = 100
_LONGEST = 8 * 2**20
_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_LONG = re.compile(r'"""(?:[^\\]|\\.)*?"""(?!")|\'\'\'.*?\'\'\'(?!\')', re.DOTALL)
_PLAIN = re.compile(r"[^\s,\]}#]+(?: [0-9][^\s,\]}#]*)?")


class TomlDocument:
    """A TOML file that was read.

    Args:
        path: As it is shown to the user.
        text: Its text.
        data: Its values.
    """

    __slots__ = ("_ends", "_places", "data", "path", "text")

    def __init__(self, path: str, text: str, data: dict[str, Any]) -> None:
        self.path = path
        self.text = text
        self.data = data
        self._places: tuple[dict[_Path, int], dict[_Path, int]] | None = None
        self._ends: dict[_Path, int] = {}

    def place(self, keys: Sequence[Key] = ()) -> Location:
        """Return where a value is, or the nearest place above it that the file has."""
        return self._nearest(tuple(keys), wants_key=False)

    def key_place(self, keys: Sequence[Key]) -> Location:
        """Return where the key of a value is."""
        return self._nearest(tuple(keys), wants_key=True)

    def last_line(self, keys: Sequence[Key]) -> int | None:
        """Return the line where a value ends; None for a table with a header, and where there is no value."""
        self._scan()
        end = self._ends.get(tuple(keys))
        return None if end is None else self.text.count("\n", 0, end) + 1

    def _scan(self) -> tuple[dict[_Path, int], dict[_Path, int]]:
        if self._places is None:
            scan = _Scan(self.text)
            scan.run()
            self._places = {**scan.keys, **scan.values}, {**scan.values, **scan.keys}
            self._ends = scan.ends
        return self._places

    def _nearest(self, keys: _Path, *, wants_key: bool) -> Location:
        places = self._scan()[wants_key]
        for length in range(len(keys), 0, -1):
            if (at := places.get(keys[:length])) is not None:
                return self._location(at)
        return Location(self.path, 1, 1)

    def _location(self, at: int) -> Location:
        line = self.text.count("\n", 0, at) + 1
        return Location(self.path, line, at - self.text.rfind("\n", 0, at))


def read_toml(path: Path, found: Diagnostics) -> TomlDocument | None:
    """Read a file that has to hold something; what is wrong with it becomes findings."""
    shown = format_path(path)
    try:
        text = read_text(path)
    except FileError as err:
        place = Location(shown) if err.where is None else Location(shown, err.where.line, err.where.column)
        found.add(UNREADABLE, err.detail, place)
        return None
    return parse_toml(text, shown, found)


def parse_toml(text: str, name: str, found: Diagnostics) -> TomlDocument | None:
    """Read a text that has to hold something; what is wrong with it becomes findings."""
    if len(text) > _LONGEST:
        found.add(BAD_TOML, f"It is larger than {_LONGEST} characters.", Location(name))
        return None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        found.add(BAD_TOML, *_describe(err, text, name))
        return None
    except (RecursionError, ValueError, OverflowError):
        found.add(BAD_TOML, "Values are nested too deeply, or a number is too long.", Location(name, 1, 1))
        return None
    if not data:
        found.add(EMPTY_TOML, "There is nothing in it but space and comments.", Location(name, 1, 1))
        return None
    if _is_deeper(data, _DEEPEST):
        found.add(BAD_TOML, f"Values are nested deeper than {_DEEPEST} levels.", Location(name, 1, 1))
        return None
    # The scan finds places in the text as `tomllib` has read it.
    return TomlDocument(name, text.replace("\r\n", "\n"), data)


def _describe(err: tomllib.TOMLDecodeError, text: str, name: str) -> tuple[str, Location]:
    message = str(err)
    at = _AT.search(message)
    # What is quoted after the first words may be a part of a value, and a value a secret.
    detail = re.sub(r"[:']? ?['\"].*$", "", _AT.sub("", message), flags=re.DOTALL).rstrip(" :(") or "Wrong"
    if at is None or at[1] is None:
        return f"{detail}.", Location(name, text.count("\n") + 1, 1)
    return f"{detail}.", Location(name, int(at[1]), int(at[2]))


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


class _Scan:
    """Finds where keys and values begin, and where values of keys end.

    Args:
        text: Valid TOML.
    """

    def __init__(self, text: str) -> None:
        self.values: dict[_Path, int] = {}
        self.keys: dict[_Path, int] = {}
        self.ends: dict[_Path, int] = {}
        self._text = text
        self._at = 0
        # How many tables each array of tables has so far.
        self._counts: dict[_Path, int] = {}

    def run(self) -> None:
        """Go through the whole text."""
        table: _Path = ()
        while self._skip(_BLANK) < len(self._text):
            if self._text[self._at] == "[":
                table = self._read_header()
            else:
                self._read_pair(table)

    def _read_header(self) -> _Path:
        start = self._at
        is_array = self._text.startswith("[[", start)
        self._at += 2 if is_array else 1
        names, places = self._read_key()
        self._at = self._text.index("]", self._at) + (2 if is_array else 1)
        path: _Path = ()
        for number, name in enumerate(names):
            path = (*path, name)
            self.keys.setdefault(path, places[number])
            is_last = number == len(names) - 1
            if is_array and is_last:
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
                self.keys.setdefault(path, start)
        self.values.setdefault(path, start)
        return path

    def _read_pair(self, table: _Path) -> None:
        names, places = self._read_key()
        for number in range(len(names)):
            self.keys.setdefault((*table, *names[: number + 1]), places[number])
        self._at = self._text.index("=", self._at) + 1
        self._read_value((*table, *names))
        self.ends[(*table, *names)] = self._at

    def _read_key(self) -> tuple[tuple[str, ...], list[int]]:
        names: list[str] = []
        places: list[int] = []
        while True:
            self._skip(_SPACE)
            places.append(self._at)
            bare = _BARE.match(self._text, self._at)
            match = bare or _QUOTED.match(self._text, self._at)
            if match is None:
                raise ValueError("a key of valid TOML was not found")
            self._at = match.end()
            names.append(match[0] if bare else next(iter(tomllib.loads(f"{match[0]}=0"))))
            self._skip(_SPACE)
            if not self._text.startswith(".", self._at):
                return tuple(names), places
            self._at += 1

    def _read_value(self, path: _Path) -> None:
        self._skip(_SPACE)
        self.values[path] = self._at
        first = self._text[self._at]
        if first == "[":
            self._read_array(path)
        elif first == "{":
            self._read_table(path)
        else:
            pattern = _LONG if self._text.startswith(('"""', "'''"), self._at) else _QUOTED
            match = (pattern if first in "\"'" else _PLAIN).match(self._text, self._at)
            self._at = match.end() if match else len(self._text)

    def _read_array(self, path: _Path) -> None:
        self._at += 1
        index = 0
        while self._text[self._skip(_BLANK)] != "]":
            self._read_value((*path, index))
            index += 1
            if self._text[self._skip(_BLANK)] == ",":
                self._at += 1
        self._at += 1

    def _read_table(self, path: _Path) -> None:
        self._at += 1
        while self._text[self._skip(_BLANK)] != "}":
            self._read_pair(path)
            if self._text[self._skip(_BLANK)] == ",":
                self._at += 1
        self._at += 1

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._at
