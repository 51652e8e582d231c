"""Something to write a human-readable result on: lines and tables, with or without colour."""

from __future__ import annotations

import os
import shutil
from typing import IO, TYPE_CHECKING, cast

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.cli.views.stream import SafeStream, Writable

__all__ = ["Paper", "wants_colour"]


def wants_colour(stream: SafeStream, *, no_color: bool) -> bool:
    """Tell whether a stream should be coloured: a terminal, and nobody said no."""
    refused = no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not refused


class Paper:
    """Writes for a human on a stream.

    Args:
        stream: Where to.
        colour: Whether to use colours.
        is_terminal: Whether to fit the text to a terminal.
    """

    def __init__(self, stream: Writable, *, colour: bool, is_terminal: bool = False) -> None:
        self._stream = stream
        self.colour = colour
        self._is_terminal = is_terminal

    def line(self, text: str = "", *, style: str | None = None) -> None:
        """Write one line, in a colour of click's if the stream has colours."""
        styled = click.style(text, fg=style) if style and self.colour else text
        self._stream.write(styled + "\n")

    def flush(self) -> None:
        """Hand everything over to the system."""
        self._stream.flush()

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table: wrapped to the width of a terminal, one line a row everywhere else."""
        if self._is_terminal:
            self._draw_table(headings, rows)
            return
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        for row in (headings, *rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.line("  ".join(cells).rstrip())

    def _draw_table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        from rich import box  # lazy: rich costs 60 ms, and most commands show no table
        from rich.console import Console  # lazy: as above
        from rich.table import Table  # lazy: as above
        from rich.text import Text  # lazy: as above

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in headings:
            table.add_column(heading, overflow="fold", no_wrap=heading is not headings[-1])
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        console = Console(
            file=cast("IO[str]", self._stream),
            no_color=not self.colour,
            force_terminal=True,
            width=shutil.get_terminal_size((120, 24)).columns,
            highlight=False,
        )
        console.print(table)
