"""Exceptions of stackyard.yaml: findings that are accepted for a while, with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.policy.model import Finding, Level
from stackyard.sources.stacks.globs import compile_glob
from stackyard.sources.stacks.repository import REPOSITORY_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from stackyard.base.errors import Location
    from stackyard.policy.context import PolicyContext

__all__ = ["REGO", "Excepted", "PolicyException", "Sorted", "sort_findings"]

_KEY = "exceptions"
# Stands for all rules in Rego.
REGO = "rego"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyException:
    """An exception.

    Attributes:
        number: Its place in the list, from zero.
        rule: The id of the rule, or the package of a rule in Rego.
        path: A glob of files or folders from the top of the repository.
        reason: Why it is accepted.
        until: The last day on which it counts.
    """

    number: int
    rule: str
    path: str
    reason: str
    until: str

    def covers(self, finding: Finding, path: str) -> bool:
        """Return whether a finding is meant.

        Args:
            finding: The finding.
            path: Its place from the top of the repository.
        """
        if self.rule != finding.rule and not finding.rule.startswith(f"{self.rule}."):
            return False
        pattern = compile_glob(self.path.rstrip("/"))
        parts = path.split("/")
        # A folder means everything in it.
        return any(pattern.fullmatch("/".join(parts[:count])) for count in range(1, len(parts) + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Excepted:
    """A finding that is accepted, and by which exception."""

    finding: Finding
    exception: PolicyException

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {
            **self.finding.document(),
            "exception": {"reason": self.exception.reason, "until": self.exception.until},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """Findings that count, and those that do not."""

    findings: tuple[Finding, ...]
    excepted: tuple[Excepted, ...]


def sort_findings(
    context: PolicyContext, found: Iterable[Finding], chosen: frozenset[str], today: date
) -> Sorted:
    """Take out what is excepted; add what there is to say about the exceptions themselves.

    Args:
        context: What was checked.
        found: Every finding.
        chosen: The rules that were checked, and `REGO`: exceptions from others may be unused.
        today: The day that decides what is expired.
    """
    listed = [
        PolicyException(number=number, **row) for number, row in enumerate(context.repository.exceptions)
    ]
    valid = [one for one in listed if one.until >= today.isoformat()]
    used: set[int] = set()
    kept, excepted = [], []
    for finding in found:
        path = context.from_root(finding.where.path)
        match = next((one for one in valid if one.covers(finding, path)), None)
        if match is None:
            kept.append(finding)
        else:
            used.add(match.number)
            excepted.append(Excepted(finding=finding, exception=match))
    kept += [_expired(context, one) for one in listed if one not in valid]
    kept += [
        _unused(context, one)
        for one in valid
        if one.number not in used and (REGO if "." in one.rule else one.rule) in chosen
    ]
    return Sorted(findings=tuple(kept), excepted=tuple(excepted))


def _place(context: PolicyContext, one: PolicyException) -> Location:
    from stackyard.sources.stacks.settings import find_place  # lazy: YAML, for what has to be said

    path = context.repository.root / REPOSITORY_FILE
    return find_place(path, f"{context.repository.prefix}{REPOSITORY_FILE}", (_KEY, one.number))


def _expired(context: PolicyContext, one: PolicyException) -> Finding:
    return Finding(
        rule=one.rule,
        detail=f"The exception from {one.rule} for `{one.path}` ended on {one.until} and does not count.",
        where=_place(context, one),
        remedy="Correct what it was for and remove it, or agree on a new day.",
        level=Level.WARNING,
    )


def _unused(context: PolicyContext, one: PolicyException) -> Finding:
    return Finding(
        rule=one.rule,
        detail=f"The exception from {one.rule} for `{one.path}` covers nothing.",
        where=_place(context, one),
        remedy="Remove it from stackyard.yaml.",
        level=Level.NOTE,
    )
