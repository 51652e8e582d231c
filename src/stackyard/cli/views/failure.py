"""An error as a human reads it: what, where, and what to do; every finding, not only the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Severity
from stackyard.cli.error_codes import find_explained

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostic
    from stackyard.base.errors import StackyardError
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["write_failure"]


def write_failure(writer: TextWriter, error: StackyardError) -> None:
    """Write an error with its place, its findings and its remedy."""
    writer.line(f"Error: {error.summary} [{error.code}]", style="red")
    if error.where is not None:
        writer.line(f"  at {error.where}")
    for line in error.detail.splitlines():
        writer.line(f"  {line}")
    for found in error.diagnostics:
        _write_finding(writer, found)
    for line in error.remedy.splitlines():
        writer.line(f"  {line}", style="cyan")
    code = find_explained(error)
    if code is not None:
        writer.line(f"  More: stackyard explain-error {code}", style="bright_black")
    writer.flush()


def _write_finding(writer: TextWriter, found: Diagnostic) -> None:
    is_error = found.kind.severity is Severity.ERROR
    place = f"{found.where}: " if found.where is not None else ""
    writer.line(f"  - {place}{found.kind.summary} [{found.kind.code}]", style="red" if is_error else "yellow")
    for line in [*found.detail.splitlines(), *found.kind.remedy.splitlines()]:
        writer.line(f"      {line}")
