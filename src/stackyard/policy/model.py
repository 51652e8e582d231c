"""A rule and what it finds."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stackyard.base.errors import Location
    from stackyard.policy.context import PolicyContext

__all__ = ["Finding", "Level", "Rule", "Skipped"]


class Level(enum.StrEnum):
    """How much a finding matters: only errors fail a check."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One place that breaks a rule.

    Attributes:
        rule: The id of the rule, such as `M4`.
        detail: What is wrong, with names.
        where: The place; its path is from the top of the git repository.
        remedy: What to do.
        level: How much it matters.
        also: Other places that it is about.
    """

    rule: str
    detail: str
    where: Location
    remedy: str
    level: Level = Level.ERROR
    also: tuple[Location, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {
            "rule": self.rule,
            "level": self.level.value,
            "detail": self.detail,
            "where": {"file": self.where.path, "line": self.where.line},
            "also": [{"file": one.path, "line": one.line} for one in self.also],
            "remedy": self.remedy,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A rule that could not be checked, and why."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule.

    Attributes:
        id: Such as `M4`.
        title: What it demands, in a few words.
        why: Why it does.
        check: Finds what breaks it, or says why it cannot be checked.
    """

    id: str
    title: str
    why: str
    check: Callable[[PolicyContext], Iterable[Finding | Skipped]]
