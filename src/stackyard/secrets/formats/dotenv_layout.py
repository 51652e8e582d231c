r"""Reading dotenv files into a layout, as SOPS does: `KEY=value` lines, comments, and nothing else.

A value is what is behind the first equals sign, quotes and all; `\\n` in it is a line break.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.secrets.layout import (
    Branch,
    Comment,
    Layout,
    LayoutDocument,
    LayoutEntry,
    Leaf,
    Position,
    SecretsSyntaxError,
)

if TYPE_CHECKING:
    from stackyard.secrets.values import Scalar

__all__ = ["dotenv_scalar", "parse_dotenv"]


def parse_dotenv(text: str, path: str) -> Layout:
    """Read a dotenv file.

    Raises:
        SecretsSyntaxError: A line is neither empty nor a comment nor has an equals sign.
    """
    entries: list[LayoutEntry] = []
    remarks: list[Comment] = []
    start = 0
    for number, line in enumerate(text.split("\n"), start=1):
        end = start + len(line)
        place = Position(number, 1)
        if line.startswith("#"):
            remarks.append(Comment(text=line[1:], start=start, end=end, place=place, guesses=((),)))
        elif line:
            entries.append(_entry(line, start, place, path, tuple(remarks)))
            remarks = []
        start = end + 1
    root = Branch(
        entries=tuple(entries), start=0, end=len(text), place=Position(1, 1), remarks=tuple(remarks)
    )
    return Layout(text=text, documents=(LayoutDocument(root=root, end=len(text)),))


def _entry(line: str, start: int, place: Position, path: str, remarks: tuple[Comment, ...]) -> LayoutEntry:
    key, equals, value = line.partition("=")
    if not equals:
        raise SecretsSyntaxError(
            f"{path} is not a dotenv file: line {place.line} has no equals sign.",
            where=Location(path, place.line, 1),
        )
    value_start = start + len(key) + 1
    leaf = Leaf(
        value=value.replace("\\n", "\n"),
        start=value_start,
        end=value_start + len(value),
        place=Position(place.line, len(key) + 2),
    )
    return LayoutEntry(key=key, node=leaf, start=start, place=place, remarks=remarks)


def dotenv_scalar(value: Scalar) -> str:
    """Return a value as it is in a dotenv file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value).replace("\n", "\\n")
