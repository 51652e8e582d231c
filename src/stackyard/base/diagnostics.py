"""Findings about input, collected instead of thrown one by one.

A `Kind` is the fixed part of a finding (stable code, summary, what to do); a `Diagnostic` is one finding with
its facts and place. `Diagnostics` collects: a validation adds everything it sees, then stops once with
`raise_errors`. Nothing here prints, and nothing here knows what is being validated.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import InvalidInputError, Location, StackyardError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Diagnostic", "Diagnostics", "Kind", "Severity", "describe", "in_full"]


class Severity(enum.StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A sort of finding: define one as a module constant beside the check that makes it."""

    code: str
    summary: str
    remedy: str
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding."""

    kind: Kind
    detail: str
    where: Location | None = None
    # Other places that it is just as much about: the first of two that have the same id.
    also: tuple[Location, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {
            "code": self.kind.code,
            "severity": self.kind.severity.value,
            "summary": self.kind.summary,
            "detail": self.detail,
            "where": place_document(self.where),
            "remedy": self.kind.remedy,
        }


@dataclass(slots=True)
class Diagnostics:
    """A collector: add all findings, then `raise_errors` once."""

    _found: list[Diagnostic] = field(default_factory=list)

    def add(
        self,
        kind: Kind,
        detail: str,
        where: Location | None = None,
        *,
        also: tuple[Location, ...] = (),
    ) -> None:
        """Add one finding."""
        self._found.append(Diagnostic(kind=kind, detail=detail, where=where, also=also))

    def extend(self, more: Iterable[Diagnostic]) -> None:
        """Add findings made elsewhere."""
        self._found.extend(more)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that stop the work."""
        return tuple(d for d in self._found if d.kind.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The findings that do not."""
        return tuple(d for d in self._found if d.kind.severity is Severity.WARNING)

    def raise_errors(self, what: str) -> None:
        """Raise one error that carries every finding, if any of them is an error.

        Args:
            what: What was being validated, as the start of a sentence ("The manifest n2-quick").
        """
        errors = self.errors
        if errors:
            problems = "1 problem" if len(errors) == 1 else f"{len(errors)} problems"
            raise InvalidInputError(f"{what} has {problems}.", tuple(self._found))


def place_document(where: Location | None) -> dict[str, Any] | None:
    """Return the JSON view of a place."""
    if where is None:
        return None
    return {"file": where.path, "line": where.line, "column": where.column}


def in_full(error: StackyardError) -> str:
    """Return what happened as one text: the detail, and every reason behind it."""
    said = [error.detail]
    for found in error.diagnostics:
        if found.kind.severity is Severity.ERROR:
            place = f"{found.where}: " if found.where is not None else ""
            said.append(f"{place}{found.kind.summary}: {found.detail}")
    return " ".join(said)


def describe(error: StackyardError) -> dict[str, Any]:
    """Return the JSON view of an error, with every finding behind it."""
    return {
        "code": error.code,
        "summary": error.summary,
        "detail": error.detail,
        "where": place_document(error.where),
        "remedy": error.remedy,
        "exit_status": int(error.exit_status),
        "diagnostics": [found.document() for found in error.diagnostics],
    }
