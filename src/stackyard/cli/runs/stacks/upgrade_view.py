"""What `stackyard stack upgrade` shows: text, Markdown and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import describe
from stackyard.base.visible import on_one_line
from stackyard.cli.commands.stack.words import show_broken
from stackyard.upgrades.plan_writes import name_stacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.engine.version import Version
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.upgrades.plan_writes import Held
    from stackyard.upgrades.report import UpgradeRow
    from stackyard.upgrades.write import Outcome

__all__ = ["report_document", "show_report", "show_written", "written_document"]

_HEADINGS = ("stack", "provider or module", "constraint", "version", "allowed", "patch", "minor", "major")


def report_document(repository: StackRepository, rows: Sequence[UpgradeRow]) -> dict[str, Any]:
    """Return what `--json` prints for a report."""
    return {
        "rows": [_row_document(row) for row in rows],
        "newer": sum(bool(row.newer) for row in rows),
        "unknown": sum(row.is_unknown for row in rows),
        "broken": {name: describe(error) for name, error in repository.broken.items()},
    }


def written_document(
    repository: StackRepository, rows: Sequence[UpgradeRow], outcomes: Sequence[Outcome], held: Sequence[Held]
) -> dict[str, Any]:
    """Return what `--json` prints for what was written."""
    return {
        "written": [_outcome_document(one) for one in outcomes],
        "held": [
            {**_name(one.row), "version": str(one.version), "is_major": one.is_major, "reason": one.reason}
            for one in held
        ],
        "unknown": [_row_document(row) for row in rows if row.is_unknown],
        "broken": {name: describe(error) for name, error in repository.broken.items()},
    }


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    return {
        "stacks": list(outcome.unit.stacks),
        "status": "written" if outcome.error is None else "failed",
        "error": None if outcome.error is None else describe(outcome.error),
        "upgrades": [
            {**_name(one.row), "from": _text(one.row.current), "to": str(one.target)}
            for one in outcome.unit.upgrades
        ],
        "files": [str(path) for path in outcome.unit.edits],
    }


def _name(row: UpgradeRow) -> dict[str, Any]:
    return {"stack": row.stack, "kind": row.requirement.kind.value, "name": row.requirement.name}


def show_report(
    writer: TextWriter, repository: StackRepository, rows: Sequence[UpgradeRow], form: str
) -> None:
    """Show a report."""
    cells = [_cells(row) for row in rows]
    if not rows:
        writer.line("No selected stack uses a provider or module of a registry.")
    elif form == "markdown":
        for line in (_HEADINGS, ["---"] * len(_HEADINGS), *cells):
            writer.line("| " + " | ".join(_markdown(one) for one in line) + " |")
        writer.line()
    else:
        writer.table(_HEADINGS, cells)
    mark = "- " if form == "markdown" else ""
    for row in rows:
        if row.problem:
            writer.line(f"{mark}{_label(row)}: not known: {row.problem}", style="yellow")
    newer, unknown = sum(bool(row.newer) for row in rows), sum(row.is_unknown for row in rows)
    writer.line(
        f"{mark}{newer} of {len(rows)} have a newer version; the versions of {unknown} are not known."
    )
    show_broken(writer, repository)


def show_written(
    writer: TextWriter,
    repository: StackRepository,
    rows: Sequence[UpgradeRow],
    outcomes: Sequence[Outcome],
    held: Sequence[Held],
) -> None:
    """Show what was written."""
    for outcome in outcomes:
        for one in outcome.unit.upgrades:
            was = _text(one.row.current) or "no version"
            words = f"{_label(one.row)}: {was} -> {one.target}"
            writer.line(words if outcome.error is None else f"{words}: not written")
        if outcome.error is not None:
            names = name_stacks(outcome.unit.stacks)
            writer.line(f"{names}: failed, and is as it was: {outcome.error.detail}", style="red")
            for found in outcome.error.diagnostics:
                writer.line(f"  {found.kind.summary}: {found.detail}", style="red")
    for waiting in held:
        writer.line(
            f"{_label(waiting.row)}: {waiting.version} is not taken: {waiting.reason}", style="yellow"
        )
    for row in rows:
        if row.is_unknown:
            writer.line(f"{_label(row)}: not known: {row.problem}", style="yellow")
    done = sum(len(one.unit.stacks) for one in outcomes if one.error is None)
    if done:
        writer.line(f"Stacks that were changed: {done}. Review the difference, plan, and commit.")
    elif not outcomes:
        writer.line("There is nothing to write.")
    show_broken(writer, repository)


def _row_document(row: UpgradeRow) -> dict[str, Any]:
    return {
        **_name(row),
        "constraints": [
            {
                "text": place.declaration.constraint,
                "file": place.where.path,
                "line": place.where.line,
            }
            for place in row.requirement.places
        ],
        "locked": _text(row.locked),
        "current": _text(row.current),
        "allowed": _text(row.allowed),
        "newest": _text(row.newest),
        "patch": _text(row.newer.patch),
        "minor": _text(row.newer.minor),
        "major": _text(row.newer.major),
        "source": None if row.offer is None else row.offer.title,
        "built_in": row.built_in,
        "problem": row.problem or None,
    }


def _cells(row: UpgradeRow) -> list[str]:
    places = [f"{place.declaration.constraint or 'none'} ({place.where})" for place in row.requirement.places]
    if row.built_in is not None:
        version = f"{row.built_in} (built in)"
    else:
        version = _text(row.locked) or (f"{row.current} (not locked)" if row.current else "not locked")
        version = str(row.current or "none") if row.requirement.kind.value == "module" else version
    shown = "?" if row.is_unknown or not row.is_looked_up else "-"
    newer = row.newer
    steps = [_text(one) or shown for one in (row.allowed, newer.patch, newer.minor, newer.major)]
    if row.built_in is not None:
        steps = ["-"] * len(steps)
    return [row.stack, row.requirement.name, ", ".join(places) or "none", version, *steps]


def _label(row: UpgradeRow) -> str:
    return f"stack:{row.stack}: {row.requirement.name}"


def _markdown(text: str) -> str:
    """Return a text as it is in the cell of a table: nothing of it is markup."""
    shown = on_one_line(text)
    for mark in "\\`*_[]<>|~#!":
        shown = shown.replace(mark, f"\\{mark}") if mark in shown and not set(shown) <= {"-"} else shown
    return shown


def _text(version: Version | None) -> str | None:
    return None if version is None else str(version)
