"""Something to write a human-readable result on: lines and tables, with or without colour."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, cast

import click

from stackyard.base.visible import on_one_line, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.cli.views.stream import SafeStream, Writable

__all__ = ["TextWriter", "is_dumb_terminal", "printable", "wants_colour"]

# Up to this width a column is kept whole; wider ones share what is left of a terminal, if that is enough.
_NARROW_CHARACTERS = 20
_LEAST_SHARED_CHARACTERS = 24
_CONTINUED = "  | "


def wants_colour(stream: SafeStream, *, no_color: bool) -> bool:
    """Return whether a stream should be coloured: a terminal, and no one said no."""
    return stream.isatty() and not (no_color or os.environ.get("NO_COLOR") or is_dumb_terminal())


def is_dumb_terminal() -> bool:
    """Return whether the terminal only types one line after the other."""
    return os.environ.get("TERM", "dumb").lower() in ("", "dumb", "unknown")


def printable(text: str) -> str:
    """Return text that does nothing to a terminal but appear: control characters are spelled out."""
    return visible(text)


class TextWriter:
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
        """Write one line, in a colour of click's if the stream has colours.

        A text with line feeds in it goes on below, with a mark before each line: it may be from outside, and
        must not look like a line of ours.
        """
        shown = printable(text)
        if "\n" in shown:
            indent = shown[: len(shown) - len(shown.lstrip(" "))]
            shown = shown.replace("\n", f"\n{indent}{_CONTINUED}")
        styled = click.style(shown, fg=style) if style and self.colour else shown
        self._stream.write(styled + "\n")

    def wrapped(self, text: str, *, indent: str, style: str | None = None) -> None:
        """Write a text below an indent: wrapped between words on a terminal, one line everywhere else."""
        width = self._terminal_width() - len(indent) if self._is_terminal else 0
        if width < _LEAST_SHARED_CHARACTERS or len(text) <= width:
            self.line(f"{indent}{text}", style=style)
            return
        import textwrap  # lazy: most commands wrap nothing

        for line in textwrap.wrap(on_one_line(text), width, break_on_hyphens=False):
            self.line(f"{indent}{line}", style=style)

    def lines(self, text: str) -> None:
        """Write a text of many lines that is a result itself: a page of help, a script, a document."""
        for line in text.split("\n"):
            self.line(line)

    def text(self, text: str) -> None:
        """Write text as it is, to the last byte, where a program is to read it."""
        self._stream.write(text)

    def flush(self) -> None:
        """Hand everything over to the system."""
        self._stream.flush()

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table: wrapped to the width of a terminal, one line a row everywhere else."""
        rows = [[on_one_line(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        if self._is_terminal and self._draw_table(headings, rows, widths):
            return
        for row in (headings, *rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.line("  ".join(cells).rstrip())

    def _terminal_width(self) -> int:
        import shutil  # lazy: with what it imports, 3 ms of every start

        return shutil.get_terminal_size((120, 24)).columns

    def _draw_table(
        self, headings: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]
    ) -> bool:
        """Draw a table if the terminal is wide enough for one."""
        from rich import box  # lazy: rich costs 60 ms, and most commands show no table
        from rich.console import Console  # lazy: as above
        from rich.table import Table  # lazy: as above
        from rich.text import Text  # lazy: as above

        terminal = self._terminal_width()
        kept = sum(width for width in widths if width <= _NARROW_CHARACTERS) + 3 * len(widths)
        shared = sum(width > _NARROW_CHARACTERS for width in widths)
        if terminal < kept + min(shared, 1) * _LEAST_SHARED_CHARACTERS:
            return False
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading, width in zip(headings, widths, strict=True):
            table.add_column(heading, overflow="fold", no_wrap=width <= _NARROW_CHARACTERS)
        for row in rows:
            table.add_row(*map(Text, row))
        console = Console(
            file=cast("IO[str]", self._stream),
            # Without colours there is nothing bold or dim either.
            color_system="auto" if self.colour else None,
            force_terminal=True,
            width=terminal,
            highlight=False,
        )
        console.print(table)
        return True
