"""A plan for a human: what happens to which guest, and which attributes change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import place_document
from stackyard.engine.changes import Action
from stackyard.guard.subjects import describe, is_guest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.engine.changes import Change, Changes, Difference
    from stackyard.guard import Finding, Verdict

__all__ = [
    "change_document",
    "describe_finding",
    "show_changes",
    "show_document",
    "show_verdict",
    "verdict_document",
]

_SIGNS = {
    Action.CREATE: ("+", "create", "green"),
    Action.UPDATE: ("~", "change", "yellow"),
    Action.REPLACE: ("±", "replace", "red"),
    Action.DELETE: ("-", "destroy", "red"),
    Action.FORGET: ("x", "forget", "yellow"),
}
# What happens to a resource in the state alone.
_MOVED = (">", "rename", "yellow")
_IMPORTED = ("<", "import", "green")
_LONGEST_VALUE = 60


def show_changes(writer: TextWriter, changes: Changes) -> None:
    """Write what a plan does: guests first, then everything else, then the sums."""
    shown = [change for change in changes.planned if _sign(change) is not None]
    for change in sorted(shown, key=lambda change: (not is_guest(change), change.address)):
        sign, verb, colour = _sign(change) or _IMPORTED
        imported = ", imported first" if change.imported_as is not None and change.action in _SIGNS else ""
        writer.line(f"{sign} {verb:<8} {describe(change)}{imported}", style=colour)
        if change.action in (Action.UPDATE, Action.REPLACE):
            for difference in _select_differences(change):
                writer.line(f"      {_line(difference)}", style="red" if difference.forces_replace else None)
    if not shown:
        writer.line("Nothing to change: what is there is what should be there.", style="green")
        return
    writer.line()
    verbs = [(_sign(change) or _IMPORTED)[1] for change in shown]
    sums = [(verb, verbs.count(verb)) for _, verb, _ in (*_SIGNS.values(), _IMPORTED, _MOVED)]
    writer.line("Plan: " + ", ".join(f"{count} to {verb}" for verb, count in sums if count) + ".")


def show_document(writer: TextWriter, document: Mapping[str, Any]) -> None:
    """Write what a plan does that is known only by its JSON view, as one that was saved."""
    signs = {action.value: sign for action, sign in _SIGNS.items()}
    shown = 0
    for change in document.get("changes", ()):
        known = signs.get(change["action"])
        if known is None:
            known = _IMPORTED if change["imported_as"] else _MOVED if change["moved_from"] else None
        if known is None:
            continue
        shown += 1
        sign, verb, colour = known
        writer.line(f"{sign} {verb:<8} {change['subject']}", style=colour)
        for difference in change["differences"] if sign in "~±" else ():
            text = f"{_value(difference['before'])} -> {_value(difference['after'])}"
            writer.line(f"      {difference['attribute']}: {text}")
    if not shown:
        writer.line("Nothing to change.", style="green")
    for finding in document.get("guard", {}).get("refused", ()):
        writer.line(f"refused: {finding['detail']}", style="red")


def _sign(change: Change) -> tuple[str, str, str] | None:
    """Return how a change is shown; nothing where neither the resource nor its place in the state changes."""
    if change.action in _SIGNS:
        return _SIGNS[change.action]
    if change.imported_as is not None:
        return _IMPORTED
    return None if change.moved_from is None else _MOVED


def _select_differences(change: Change) -> list[Difference]:
    """Return what a human wants to know: what is only known afterwards says nothing of a replacement."""
    if change.action is not Action.REPLACE:
        return list(change.differences)
    return [d for d in change.differences if d.forces_replace or not str(d.after).startswith("(known after")]


def _line(difference: Difference) -> str:
    forced = "  (forces replacement)" if difference.forces_replace else ""
    return f"{difference.name}: {_value(difference.before)} -> {_value(difference.after)}{forced}"


def _value(value: Any) -> str:
    text = "nothing" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


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
