"""The tables of a README that list the inputs and outputs of a module.

A table lists inputs where the heading above it, or the title of its first column, says input, variable or
argument and nothing of something else; it lists outputs where that says output. Below a heading such as
"Environment variables" or "Output formats", and in a comment or a block of code, every table is the author's
own: `policy fix` removes rows only where they can be nothing but stale.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = [
    "INPUTS",
    "OUTPUTS",
    "ReadmeTable",
    "TableRow",
    "find_tables",
    "has_open_fence",
    "is_readme",
    "split_row",
]

INPUTS, OUTPUTS = "inputs", "outputs"
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_DASHES = re.compile(r":?-+:?")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_TITLES = (
    (OUTPUTS, re.compile(r"\boutputs?\b", re.I)),
    (INPUTS, re.compile(r"\b(?:inputs?|variables?|arguments?)\b", re.I)),
)
_ENVIRONMENT = re.compile(r"\benv(?:ironments?)?\b", re.I)
_TITLE_WORD = re.compile(r"[^\W\d_]+")
# Words that a title may have beside those of the field, and still be about the module.
_BESIDE = frozenset(
    "a all and available for list main module modules name names of opentofu optional reference required "
    "table terraform the this value values".split()
)
# What the first column of a table below a heading may be called.
_NAMES = frozenset(("", "name", "names", "key", "parameter"))
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*\r?")
_CODE_INDENT = ("    ", "\t")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_TAG = re.compile(r"<[^>]*>")
_IDENTIFIER = re.compile(r"[A-Za-z_][\w-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row; `line` counts from zero, `name` is empty where the first cell names nothing."""

    line: int
    name: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadmeTable:
    """A table.

    Attributes:
        kind: `inputs` or `outputs`.
        line: The line of its titles, from zero.
        titles: The titles of its columns.
        rows: Its rows.
    """

    kind: str
    line: int
    titles: tuple[str, ...]
    rows: tuple[TableRow, ...] = field(default=())

    @property
    def end(self) -> int:
        """The first line below it."""
        return self.line + 2 + len(self.rows)


def is_readme(name: str) -> bool:
    """Return whether a file is the README of its folder."""
    return name.lower() == "readme.md"


def has_open_fence(text: str) -> bool:
    """Return whether a block of code is never closed, so that everything below is code."""
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark is not None and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark[1]
    return bool(fence)


def find_tables(text: str) -> list[ReadmeTable]:
    """Return the tables of inputs and outputs."""
    lines = text.split("\n")
    found: list[ReadmeTable] = []
    heading, fence, is_comment = "", "", False
    at = 0
    while at < len(lines):
        line = lines[at]
        mark = _FENCE.match(line)
        if is_comment or (not fence and _begins_comment(line)):
            is_comment = "-->" not in line
        elif mark is not None and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence:
            if _HEADING.match(line):
                heading = line.strip(" \t#")
            elif line.strip() and "|" not in line and _UNDERLINE.fullmatch("".join(lines[at + 1 : at + 2])):
                heading = line.strip()
            elif (
                "|" in line
                and not line.startswith(_CODE_INDENT)
                and at + 1 < len(lines)
                and _is_ruler(lines[at + 1])
            ):
                table = _read_table(lines, at, heading)
                at = table.end - 1
                found += [table] if table.kind else []
        at += 1
    return found


def _begins_comment(line: str) -> bool:
    """Return whether a comment begins that goes on in the next line."""
    return "<!--" in line and "-->" not in line.rpartition("<!--")[2]


def _is_ruler(line: str) -> bool:
    """Return whether a line is the one below the titles of a table: dashes between bars."""
    if "|" not in line:
        return False
    cells = line.strip().removeprefix("|").removesuffix("|").split("|")
    return all(_DASHES.fullmatch(cell.strip()) for cell in cells)


def _read_table(lines: list[str], at: int, heading: str) -> ReadmeTable:
    titles = split_row(lines[at])
    rows = []
    line = at + 2
    while line < len(lines) and "|" in lines[line]:
        cells = split_row(lines[line])
        rows.append(TableRow(line=line, name=_name(cells[0]) if cells else "", cells=cells))
        line += 1
    kind = _table_kind(titles[0] if titles else "", heading)
    return ReadmeTable(kind=kind, line=at, titles=titles, rows=tuple(rows))


def _table_kind(column: str, heading: str) -> str:
    """Return what a table lists by the title of its first column and the heading above it."""
    plain = _plain_title(column)
    own = _kind(plain)
    if own:
        return "" if _ENVIRONMENT.search(heading) else own
    return _kind(_plain_title(heading)) if plain.lower() in _NAMES else ""


def _plain_title(text: str) -> str:
    return _TAG.sub("", _LINK.sub(r"\1", text)).strip(" \t*_`")


def _kind(title: str) -> str:
    """Return what a title says, if it says one thing and nothing of something else."""
    kinds = [kind for kind, pattern in _TITLES if pattern.search(title)]
    words = [one.lower() for one in _TITLE_WORD.findall(title)]
    is_about = all(one in _BESIDE or any(p.fullmatch(one) for _, p in _TITLES) for one in words)
    # `Input variables` are inputs, and `Output values` are outputs.
    return kinds[0] if len(kinds) == 1 and is_about else ""


def split_row(line: str) -> tuple[str, ...]:
    """Return the cells of a row; escaped bars and those in code are part of a cell."""
    cells, cell, is_code = [], "", False
    text = line.strip()
    text = text.removeprefix("|")
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            cell += text[at : at + 2]
            at += 2
            continue
        is_code = is_code != (char == "`")
        if char == "|" and not is_code:
            cells.append(cell.strip())
            cell = ""
        else:
            cell += char
        at += 1
    if cell.strip():
        cells.append(cell.strip())
    return tuple(cells)


def _name(cell: str) -> str:
    text = (
        _TAG.sub("", _LINK.sub(r"\1", cell)).replace("\\_", "_").strip(" `*_" if cell[:1] in "*" else " `*")
    )
    return text if _IDENTIFIER.fullmatch(text) else ""
