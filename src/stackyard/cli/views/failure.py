"""An error as a human reads it: what, where, and what to do; every finding, not only the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.diagnostics import Severity

if TYPE_CHECKING:
    from stackyard.cli.views.paper import Paper
    from stackyard.diagnostics import Diagnostic
    from stackyard.errors import StackyardError

__all__ = ["write_failure"]


def write_failure(paper: Paper, error: StackyardError) -> None:
    """Write an error with its place, its findings and its remedy."""
    paper.line(f"Error: {error.summary} [{error.code}]", style="red")
    if error.where is not None:
        paper.line(f"  at {error.where}")
    for line in error.detail.splitlines():
        paper.line(f"  {line}")
    for found in error.diagnostics:
        _write_finding(paper, found)
    for line in error.remedy.splitlines():
        paper.line(f"  {line}", style="cyan")
    paper.flush()


def _write_finding(paper: Paper, found: Diagnostic) -> None:
    is_error = found.kind.severity is Severity.ERROR
    place = f"{found.where}: " if found.where is not None else ""
    paper.line(f"  - {place}{found.kind.summary} [{found.kind.code}]", style="red" if is_error else "yellow")
    for line in [*found.detail.splitlines(), *found.kind.remedy.splitlines()]:
        paper.line(f"      {line}")
