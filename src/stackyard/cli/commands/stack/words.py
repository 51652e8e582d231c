"""How the commands of stacks show what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Severity

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostics
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["show_broken", "show_findings"]


def show_broken(writer: TextWriter, repository: StackRepository) -> None:
    """Show the stacks that are not valid, with everything that is wrong with each."""
    for name, error in repository.broken.items():
        writer.line(f"{name!r}: not valid" if not name.isprintable() else f"{name}: not valid", style="red")
        for one in error.diagnostics:
            place = f"{one.where}: " if one.where is not None else ""
            writer.line(f"  {place}{one.kind.summary}: {one.detail}")
        if not error.diagnostics:
            writer.line(f"  {error.detail}")


def show_findings(writer: TextWriter, found: Diagnostics) -> None:
    """Show findings about several stacks."""
    for one in found:
        is_error = one.kind.severity is Severity.ERROR
        place = f"{one.where}: " if one.where is not None else ""
        writer.line(
            f"{'error' if is_error else 'warning'}: {place}{one.kind.summary}: {one.detail}",
            style="red" if is_error else "yellow",
        )
        writer.line(f"  {one.kind.remedy}")
