"""How objects, versions and differences are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.cli.commands.state.words import instant, local_time, size
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.deployment.difference import ObjectChange, ObjectDifference
    from stackyard.sources.deployment.store import Version
    from stackyard.sources.deployment.write import WriteResult

__all__ = ["difference_document", "make_write_result", "show_difference", "show_versions", "version_document"]

_SIGNS = {
    "added": ("+", "green"),
    "removed": ("-", "red"),
    "changed": ("~", "yellow"),
    "renamed": (">", "red"),
}
_LONGEST_SHOWN = 70


def version_document(version: Version | None) -> dict[str, Any] | None:
    """Return a version for a program."""
    if version is None:
        return None
    return {
        "id": version.id,
        "etag": version.etag,
        "written_at": instant(version.at),
        "by": version.authored.by or None,
        "kind": version.authored.kind or None,
        "note": version.authored.note or None,
        "size": version.size,
        "is_current": version.is_current,
    }


def show_versions(writer: TextWriter, versions: list[Version]) -> None:
    """Write versions as a table."""
    rows = [
        (
            f"{one.id}{' (current)' if one.is_current else ''}",
            local_time(one.at),
            one.authored.by or "by another program",
            size(one.size),
            one.etag[:12],
            one.authored.note or one.authored.kind or "-",
        )
        for one in versions
    ]
    writer.table(("version", "written", "by", "size", "etag", "how"), rows)


def difference_document(difference: ObjectDifference) -> dict[str, Any]:
    """Return a difference for a program."""
    return {
        "has_changes": not difference.is_empty,
        "comments_differ": difference.has_other_comments and difference.is_empty,
        "changes": [
            {
                "section": change.section or None,
                "key": change.key,
                "change": change.kind.value,
                "new_key": change.new_key,
                "fields": [
                    {"field": one.field, "before": one.before, "after": one.after} for one in change.fields
                ],
            }
            for change in difference.changes
        ],
    }


def show_difference(writer: TextWriter, difference: ObjectDifference) -> None:
    """Write what differs, entry by entry."""
    if difference.is_empty:
        same = "Only comments or the order differ." if difference.has_other_comments else "No difference."
        writer.line(same)
        return
    for change in difference.changes:
        _show_change(writer, change)


def _show_change(writer: TextWriter, change: ObjectChange) -> None:
    sign, style = _SIGNS[change.kind.value]
    writer.line(f"{sign} {change}", style=style)
    for one in change.fields:
        name = f"{one.field}: " if one.field else ""
        shown = _short(one.after) if one.before is None else f"{_short(one.before)} -> {_short(one.after)}"
        writer.line(f"    {name}{shown}")


def _short(value: Any) -> str:
    import orjson  # lazy: only where something differs

    text = "-" if value is None else orjson.dumps(value).decode()
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def make_write_result(written: WriteResult, label: str) -> Result:
    """Return what a human and a program see of a write."""

    def show(writer: TextWriter) -> None:
        for warning in written.warnings:
            writer.line(f"{warning.kind.summary}: {warning.detail}", style="yellow")
        show_difference(writer, written.difference)
        if written.version is None:
            writer.line("Nothing was written.")
        else:
            writer.line(f"Wrote version {written.version.id} of {label}.", style="green")

    return Result(
        document={
            "store": label,
            "version": version_document(written.version),
            "replaced": version_document(written.replaced),
            "difference": difference_document(written.difference),
            "warnings": [warning.document() for warning in written.warnings],
        },
        show=show,
    )
