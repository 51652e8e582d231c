"""The tables of a README, made of the code of a module; all other text stays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from stackyard.policy.readme import INPUTS, OUTPUTS, find_tables, has_open_fence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stackyard.policy.context import CodeFolder
    from stackyard.policy.readme import ReadmeTable

__all__ = ["BEGIN", "END", "ModuleInterface", "edit_readme", "interface_of", "new_readme"]

BEGIN = "<!-- BEGIN_STACKYARD_TABLES -->"
END = "<!-- END_STACKYARD_TABLES -->"
_MARKED = re.compile(rf"^{re.escape(BEGIN)}[ \t]*$.*?^{re.escape(END)}[ \t]*$", re.DOTALL | re.MULTILINE)
_COLUMNS = {
    INPUTS: ("Name", "Description", "Type", "Default", "Required"),
    OUTPUTS: ("Name", "Description", "Sensitive"),
}
_NONE = {INPUTS: "No inputs.", OUTPUTS: "No outputs."}
_LONGEST_DEFAULT = 200


class ModuleInterface(NamedTuple):
    """By the name of a variable or output, the text for each column of its table."""

    inputs: dict[str, dict[str, str]]
    outputs: dict[str, dict[str, str]]


def interface_of(folder: CodeFolder) -> ModuleInterface:
    """Return what a module takes and gives, sorted by name."""
    inputs, outputs = {}, {}
    for said in folder.code.values():
        for name, one in said.variables.items():
            inputs[name] = {
                "description": _plain(one.description or ""),
                "type": _code(one.type or ""),
                "default": "" if one.default is None else _code(one.default),
                "required": "no" if one.default is not None else "yes",
            }
        for name, out in said.outputs.items():
            outputs[name] = {
                "description": _plain(out.description or ""),
                "sensitive": "yes" if out.is_sensitive else "no",
            }
    return ModuleInterface(dict(sorted(inputs.items())), dict(sorted(outputs.items())))


def new_readme(name: str, interface: ModuleInterface) -> str:
    """Return a README for a module that has none: its name and the tables, no more is known."""
    return f"# {name}\n\n{_marked(interface)}\n"


def edit_readme(text: str, interface: ModuleInterface) -> str:
    """Return a README whose tables list every variable and output, and nothing else.

    What is between the marks is written as a whole. Tables of the author keep the rows that are right; stale
    ones go, missing ones are added. Where a table is missing, one is added at the end, between marks. A text
    in which a block of code is never closed stays as it is: below it, nothing would be a table.
    """
    if has_open_fence(text):
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    plain = text.replace("\r\n", "\n") if newline == "\r\n" else text
    made = _edit(plain, interface)
    # Ends of lines that were mixed stay as they were where nothing changed.
    return text if made == plain else made.replace("\n", newline)


def _edit(text: str, interface: ModuleInterface) -> str:
    match = _MARKED.search(text)
    rest = text if match is None else text[: match.start()] + "\0" + text[match.end() :]
    tables = find_tables(rest)
    own = {table.kind for table in tables}
    lines = rest.split("\n")
    for table in reversed(tables):
        first = next(one for one in tables if one.kind == table.kind)
        others = [one for one in tables if one.kind == table.kind and one is not table]
        known = interface.inputs if table.kind == INPUTS else interface.outputs
        listed = {row.name for one in others for row in one.rows} if table is first else set(known)
        lines[table.line + 2 : table.end] = _rows(lines, table, known, listed)
    rest = "\n".join(lines)
    missing = {INPUTS: interface.inputs, OUTPUTS: interface.outputs}
    wanted = [kind for kind in (INPUTS, OUTPUTS) if kind not in own]
    section = _marked(interface, wanted) if wanted else ""
    if match is not None:
        return rest.replace("\0", section, 1) if section else _drop_mark(rest)
    if not any(missing[kind] for kind in wanted):
        return rest
    separator = "" if not rest or rest.endswith("\n\n") else "\n" if rest.endswith("\n") else "\n\n"
    return f"{rest}{separator}{section}\n"


def _drop_mark(text: str) -> str:
    """Return a text without its mark, and without the empty lines around it that were there for it."""
    before, _, after = text.partition("\0")
    return before.rstrip("\n") + "\n" + after.lstrip("\n") if before.strip() else after.lstrip("\n")


def _rows(
    lines: Sequence[str], table: ReadmeTable, known: dict[str, dict[str, str]], listed: set[str]
) -> list[str]:
    """Return the rows of a table of the author: those that are right, then those that are missing."""
    kept = [lines[row.line] for row in table.rows if not row.name or row.name in known]
    present = {row.name for row in table.rows} | listed
    titles = [title.lower() for title in table.titles]
    for name, cells in known.items():
        if name not in present:
            row = [f"`{name}`", *(cells.get(title, "") for title in titles[1:])]
            kept.append(_row(row))
    return kept


def _marked(interface: ModuleInterface, kinds: Iterable[str] = (INPUTS, OUTPUTS)) -> str:
    parts = [BEGIN]
    for kind in kinds:
        known = interface.inputs if kind == INPUTS else interface.outputs
        parts += [f"## {kind.title()}", "", *_table(kind, known), ""]
    return "\n".join((*parts[:-1], END)) if len(parts) > 1 else f"{BEGIN}\n{END}"


def _table(kind: str, known: dict[str, dict[str, str]]) -> list[str]:
    if not known:
        return [_NONE[kind]]
    titles = _COLUMNS[kind]
    rows = [
        _row([f"`{name}`", *(cells[title.lower()] for title in titles[1:])]) for name, cells in known.items()
    ]
    return [_row(titles), _row(["---"] * len(titles)), *rows]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Return a text that stays in its cell: on one line, and without marks of tables or HTML."""
    line = " ".join(text.split())
    return line.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _code(text: str) -> str:
    line = " ".join(text.split())
    shown = line if len(line) <= _LONGEST_DEFAULT else f"{line[:_LONGEST_DEFAULT]}..."
    return f"`{shown.replace('`', chr(39)).replace('|', chr(92) + '|')}`" if shown else ""
