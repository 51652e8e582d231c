"""M7: the README of a module lists every variable and output, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.policy.model import Finding, Rule
from stackyard.policy.readme import INPUTS, OUTPUTS, find_tables, is_readme

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.policy.context import CodeFolder, PolicyContext

__all__ = ["RULE"]

_REMEDY = "Run `stackyard policy fix`, or correct the tables below the headings `Inputs` and `Outputs`."
_WORDS = {INPUTS: "variable", OUTPUTS: "output"}


def _check(context: PolicyContext) -> Iterator[Finding]:
    for folder in context.modules.values():
        readme = next((name for name in folder.names if is_readme(name)), None)
        if readme is None:
            if any(said.variables or said.outputs for said in folder.code.values()):
                detail = f"The module `{folder.path}` has no README with its variables and outputs."
                yield Finding(rule="M7", detail=detail, where=Location(folder.path), remedy=_REMEDY)
            continue
        yield from _check_readme(context, folder, f"{folder.path}/{readme}")


def _check_readme(context: PolicyContext, folder: CodeFolder, path: str) -> Iterator[Finding]:
    listed = _read_rows(context, path)
    for kind in (INPUTS, OUTPUTS):
        word, rows = _WORDS[kind], listed.get(kind, {})
        places = _places(folder, kind)
        for name, where in places.items():
            if name not in rows:
                detail = f"The README lists no {word} `{name}`."
                yield Finding(
                    rule="M7", detail=detail, where=Location(path, 1), remedy=_REMEDY, also=(where,)
                )
        for name, line in rows.items():
            if name not in places:
                detail = f"The README lists the {word} `{name}`, which the module does not have."
                yield Finding(rule="M7", detail=detail, where=Location(path, line), remedy=_REMEDY)


def _read_rows(context: PolicyContext, path: str) -> Mapping[str, Mapping[str, int]]:
    """Return by kind the names in the tables with their lines; from the cache where the text is the same."""
    number = context.repository.tree.number(path)
    key = f"readme:{number}"
    known = context.repository.cache.policy.get(key)
    if isinstance(known, dict):
        return known
    found: dict[str, dict[str, int]] = {INPUTS: {}, OUTPUTS: {}}
    for table in find_tables((context.read(path) or b"").decode("utf-8", "replace")):
        for row in table.rows:
            if row.name:
                found[table.kind].setdefault(row.name, row.line + 1)
    if number and number != "unreadable":
        context.repository.cache.policy.put(key, found)
    return found


def _places(folder: CodeFolder, kind: str) -> dict[str, Location]:
    return {
        name: Location(path, one.line)
        for path, said in folder.code.items()
        for name, one in (said.variables if kind == INPUTS else said.outputs).items()
    }


RULE = Rule(
    id="M7",
    title="The README lists every variable and output of its module, and no other",
    why="Who calls a module reads its README first; a table that is out of date misleads.",
    check=_check,
)
