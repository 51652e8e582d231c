"""An error of another stackyard process, raised here as if it had happened here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostic, Kind, Severity
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.errors import InvalidInputError, Location, StackyardError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["parse_error"]


def parse_error(printed: str) -> StackyardError | None:
    """Return the error that a process printed with `--json`, None if it printed something else.

    Args:
        printed: Its standard output; the last line counts.
    """
    try:
        described: dict[str, Any] = parse_json(printed.strip().rpartition("\n")[2])["error"]
        detail, where, remedy = str(described["detail"]), _place(described["where"]), described["remedy"]
        kind = next((kind for kind in _tree(StackyardError) if kind.code == described["code"]), None)
        found = tuple(map(_parse_diagnostic, described["diagnostics"]))
    except (JsonError, KeyError, TypeError):
        return None
    if kind is None:
        # An error that only the other process has loaded: one that ends the same way, with its own words.
        kind = next(base for base in _tree(StackyardError) if base.exit_status == described["exit_status"])
    # Not through the constructor of the class, which may take other facts than the ones that were printed.
    error = kind.__new__(kind)
    if isinstance(error, InvalidInputError):
        InvalidInputError.__init__(error, detail, found, where=where, remedy=remedy)
    else:
        StackyardError.__init__(error, detail, where=where, remedy=remedy)
    # What the class says of all of its kind, this one may say otherwise.
    vars(error).update(code=str(described["code"]), summary=str(described["summary"]))
    return error


def _tree(base: type[StackyardError]) -> Iterator[type[StackyardError]]:
    yield base
    for kind in base.__subclasses__():
        yield from _tree(kind)


def _place(where: dict[str, Any] | None) -> Location | None:
    return None if where is None else Location(where["file"], where["line"], where["column"])


def _parse_diagnostic(document: dict[str, Any]) -> Diagnostic:
    kind = Kind(
        code=document["code"],
        summary=document["summary"],
        remedy=document["remedy"],
        severity=Severity(document["severity"]),
    )
    return Diagnostic(kind=kind, detail=document["detail"], where=_place(document["where"]))
