"""The views of the steps of a cluster: what was done, how long it took, and what the end waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import describe
from stackyard.base.errors import ExitStatus
from stackyard.cli.result import Result
from stackyard.cli.views.failure import write_failure

if TYPE_CHECKING:
    from stackyard.base.errors import StackyardError
    from stackyard.bootstrap.run import Timeline
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["timeline_result"]


def timeline_result(name: str, timeline: Timeline, error: StackyardError | None = None) -> Result:
    """Return what a command says of a cluster; the steps are shown also where some failed."""
    document: dict[str, Any] = {
        "cluster": name,
        "has_changes": timeline.has_changes,
        "steps": _documents(timeline),
    }
    if error is None:
        return Result(document=document, show=lambda writer: _show(writer, name, timeline))

    def show(writer: TextWriter) -> None:
        _show_steps(writer, timeline)
        write_failure(writer, error)

    return Result(
        document={**document, "error": describe(error)}, show=show, status=ExitStatus(error.exit_status)
    )


def _documents(timeline: Timeline) -> list[dict[str, Any]]:
    return [
        {
            "step": row.name,
            "outcome": row.outcome,
            "began_s": round(row.began_s, 3),
            "elapsed_s": round(row.elapsed_s, 3),
            "is_critical": row.is_critical,
            "detail": row.detail,
        }
        for row in timeline.rows
    ]


def _show_steps(writer: TextWriter, timeline: Timeline) -> None:
    rows = [
        (
            row.name,
            row.outcome,
            f"{row.began_s:.1f} s",
            f"{row.elapsed_s:.1f} s",
            "*" if row.is_critical else "",
        )
        for row in timeline.rows
    ]
    writer.table(("step", "outcome", "began", "took", "critical"), rows)


def _show(writer: TextWriter, name: str, timeline: Timeline) -> None:
    _show_steps(writer, timeline)
    said = "is up" if timeline.has_changes else "is up already; nothing was changed"
    writer.line(f"The cluster {name} {said}.", style="green")
