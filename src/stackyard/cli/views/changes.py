"""A plan as JSON, a saved plan for a human, and what the guard says of either."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import place_document
from stackyard.cli.views.planned_changes import IMPORTED, MOVED, ORDER, SIGNS, show_differences
from stackyard.guard.subjects import describe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.views.planned_changes import Sign
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.engine.changes import Change
    from stackyard.guard import Finding, Verdict

__all__ = [
    "change_document",
    "describe_finding",
    "show_document",
    "show_verdict",
    "verdict_document",
]


def show_document(writer: TextWriter, document: Mapping[str, Any]) -> None:
    """Write what a plan does that is known only by its JSON view, as one that was saved."""
    known = [(_sign(change), change) for change in document.get("changes", ())]
    shown = [(sign, change) for sign, change in known if sign is not None]
    for sign, change in sorted(shown, key=lambda pair: ORDER.index(pair[0])):
        writer.line(f"{sign.mark} {sign.verb:<8} {change['subject']}", style=sign.colour)
        if sign.mark in "~±":
            names = ("attribute", "before", "after", "forces_replace")
            show_differences(writer, [tuple(one[name] for name in names) for one in change["differences"]])
    if not shown:
        writer.line("Nothing to change.", style="green")
    for finding in document.get("guard", {}).get("refused", ()):
        writer.line(f"refused: {finding['detail']}", style="red")


def _sign(change: Mapping[str, Any]) -> Sign | None:
    """Return how a change is shown that is known by its JSON view."""
    signs = {action.value: sign for action, sign in SIGNS.items()}
    if change["action"] in signs:
        return signs[change["action"]]
    return IMPORTED if change["imported_as"] else MOVED if change["moved_from"] else None


def show_verdict(writer: TextWriter, verdict: Verdict) -> None:
    """Write what the guard says besides a refusal, which is an error of its own."""
    for finding in verdict.warnings:
        writer.line(f"warning: {_place(finding)}{finding.detail} {finding.kind.remedy}", style="yellow")
    for finding in verdict.permitted:
        writer.line(f"permitted: {_place(finding)}{finding.detail}", style="yellow")
    for finding in verdict.refused:
        writer.line(f"refused: {_place(finding)}{finding.detail}", style="red")


def _place(finding: Finding) -> str:
    return "" if finding.where is None else f"{finding.where}: "


def change_document(change: Change) -> dict[str, Any]:
    """Return the JSON view of a change."""
    return {
        "address": change.address,
        "subject": describe(change),
        "action": change.action.value,
        "reason": change.reason,
        "imported_as": change.imported_as,
        "moved_from": change.moved_from,
        "differences": [
            {
                "attribute": difference.name,
                "before": _plain(difference.before),
                "after": _plain(difference.after),
                "forces_replace": difference.forces_replace,
            }
            for difference in change.differences
        ],
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; a mark is its text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def describe_finding(finding: Finding) -> dict[str, Any]:
    """Return the JSON view of a finding."""
    return {
        "code": finding.kind.code,
        "severity": finding.kind.severity.value,
        "summary": finding.kind.summary,
        "detail": finding.detail,
        "remedy": finding.kind.remedy,
        "permit": None if finding.permit is None else str(finding.permit),
        "where": place_document(finding.where),
    }


def verdict_document(verdict: Verdict) -> Mapping[str, Any]:
    """Return the JSON view of what the guard says."""
    return {
        "refused": [describe_finding(finding) for finding in verdict.refused],
        "permitted": [describe_finding(finding) for finding in verdict.permitted],
        "warnings": [describe_finding(finding) for finding in verdict.warnings],
    }
