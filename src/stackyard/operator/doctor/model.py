"""What doctor says."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from stackyard.base.errors import ExitStatus

__all__ = ["DoctorReport", "DoctorRow", "RowStatus"]


class RowStatus(enum.StrEnum):
    """Whether something can be used as it is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRow:
    """What was seen of one thing.

    Attributes:
        area: What it belongs to: `installed`, `site`, `store` or `hosts`.
        name: What it is.
        status: Whether it can be used.
        seen: What was seen, in a few words.
        remedy: What to do about it; also where nothing is wrong, and there is something to gain.
        code: The code of the error behind it, where there is one.
    """

    area: str
    name: str
    seen: str
    status: RowStatus = RowStatus.OK
    remedy: str = ""
    code: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {
            "area": self.area,
            "name": self.name,
            "status": self.status.value,
            "seen": self.seen,
            "remedy": self.remedy or None,
            "code": self.code,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """Everything that was looked at."""

    rows: tuple[DoctorRow, ...]

    def count(self, status: RowStatus) -> int:
        """Return how many rows have a status."""
        return sum(row.status is status for row in self.rows)

    @property
    def is_usable(self) -> bool:
        """Whether there is no problem."""
        return not self.count(RowStatus.PROBLEM)

    @property
    def exit_status(self) -> ExitStatus:
        """What a shell gets."""
        return ExitStatus.DONE if self.is_usable else ExitStatus.FAILED

    @property
    def summary(self) -> str:
        """The verdict in one line."""
        counts = [(self.count(RowStatus.PROBLEM), "problem"), (self.count(RowStatus.WARNING), "warning")]
        said = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count)
        return f"stackyard can {'' if self.is_usable else 'not '}be used here{f': {said}' if said else ''}."

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {"usable": self.is_usable, "checks": [row.document() for row in self.rows]}
