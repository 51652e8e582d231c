"""Live progress on a terminal: one row a guest, and a line for each other step that is under way.

Steps that have ended and messages scroll up above the rows. The rows fit the terminal: failed guests are on
top, then the slowest, and what has no room is folded into one line.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import IO, TYPE_CHECKING, cast

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from stackyard.base import events
from stackyard.base.visible import on_one_line
from stackyard.cli.views.progress import OpenStep, OpenSteps, write_fact, write_finished
from stackyard.cli.views.run_rows import Row, RowStatus, RunRows
from stackyard.cli.views.text_writer import TextWriter

if TYPE_CHECKING:
    from rich.console import RenderableType

    from stackyard.cli.views.stream import SafeStream

__all__ = ["LiveProgress", "draw_rows"]

_REDRAWS_PER_SECOND = 8
_BAR_WIDTH = 24
# A resource that is no guest gets a row once it takes this long, as the download of an image does.
_SLOW_S = 2.0
_SHORTEST_NAME = 12
# As in "123 s".
_SECONDS = 5
_STYLES = {RowStatus.FAILED: "red", RowStatus.WAITING: "dim", RowStatus.DONE: "green"}
_MARKS = {RowStatus.FAILED: "✗", RowStatus.WAITING: "·", RowStatus.DONE: "✓"}
_PLAIN_MARKS = {RowStatus.FAILED: "x", RowStatus.WAITING: ".", RowStatus.DONE: "+"}


class LiveProgress:
    """Draws the guests and the steps under way, and scrolls what has ended above them.

    Args:
        stream: A terminal.
        is_colour: Whether colours are wanted.
        is_verbose: Whether debug lines are shown.
    """

    def __init__(self, stream: SafeStream, *, is_colour: bool, is_verbose: bool) -> None:
        self._is_verbose = is_verbose
        self._steps = OpenSteps()
        self._rows = RunRows()
        self._is_unicode = stream.encoding.startswith("utf")
        self._spinner = Spinner("dots" if self._is_unicode else "line", style="cyan")
        self._console = Console(
            file=cast("IO[str]", stream),
            # Without colours there is nothing bold or dim either.
            color_system="auto" if is_colour else None,
            force_terminal=True,
            highlight=False,
        )
        # `get_renderable` is asked by the drawing thread, which also makes the clocks tick.
        self._live = Live(
            console=self._console,
            get_renderable=self._draw,
            refresh_per_second=_REDRAWS_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._above = TextWriter(_LinesAbove(self._live), colour=is_colour)
        self._is_drawing = False

    def emit(self, event: events.Event) -> None:
        """Show one event."""
        if self._rows.follow(event):
            return
        known = self._steps[event.step] if isinstance(event, events.StepFinished) else None
        self._steps.follow(event)
        if isinstance(event, events.StepFinished):
            write_finished(self._above, event, known)
        elif not isinstance(event, events.PlanCounted):
            write_fact(self._above, event, is_verbose=self._is_verbose)
        if not self._is_drawing and self._steps.all():
            self._is_drawing = True
            self._live.start()

    def close(self) -> None:
        """Take the running part off the terminal."""
        if self._is_drawing:
            self._live.stop()

    def _draw(self) -> RenderableType:
        steps = Table.grid(padding=(0, 1))
        lines = 0
        for step in self._steps.all():
            title = Text(on_one_line(step.title), no_wrap=True, overflow="ellipsis")
            steps.add_row(self._spinner, title, _advance(step), Text(f"{step.elapsed_s():.0f} s"))
            lines += 1
            if step.waiting_for:
                waiting = Text(f"waiting for {on_one_line(step.waiting_for)}", style="dim")
                steps.add_row("", waiting, "", "")
                lines += 1
        rows = self._list_rows()
        if not rows:
            return Group(steps)
        head = Text(self._rows.describe_totals(), style="bold")
        # One line for the totals, one for what is folded, and one that stays free for the cursor.
        room = max(1, self._console.height - lines - 3)
        return Group(
            steps,
            head,
            *draw_rows(rows, room, self._console.width, self._spinner, is_unicode=self._is_unicode),
        )

    def _list_rows(self) -> list[Row]:
        now_s = time.monotonic()
        return [row for row in self._rows.rows() if row.is_guest or (row.elapsed_s(now_s) or 0.0) > _SLOW_S]


def draw_rows(
    rows: list[Row], room: int, width: int, spinner: RenderableType, *, is_unicode: bool
) -> list[RenderableType]:
    """Return rows as they fit into so many lines; the rest is counted in one more.

    Args:
        rows: In the order in which they are shown.
        room: How many lines there are.
        width: How wide they are.
        spinner: Stands before what is under way.
        is_unicode: Whether the terminal has other marks than letters.
    """
    now_s = time.monotonic()
    marks = _MARKS if is_unicode else _PLAIN_MARKS
    table = _make_table(rows[:room], width)
    shown, folded = rows[:room], rows[room:]
    for row in shown:
        style = _STYLES.get(row.status, "")
        mark = spinner if row.status is RowStatus.RUNNING else Text(marks[row.status], style=style)
        elapsed_s = row.elapsed_s(now_s)
        table.add_row(
            mark,
            Text(on_one_line(row.name), style="bold" if row.status is RowStatus.FAILED else ""),
            Text(row.phase, style=style),
            Text(_describe(row), style="red" if row.status is RowStatus.FAILED else "dim"),
            Text("" if elapsed_s is None else f"{elapsed_s:.0f} s", justify="right"),
        )
    if not folded:
        return [table]
    counted = Counter(row.phase for row in folded)
    summary = ", ".join(f"{count} {phase}" for phase, count in counted.most_common())
    return [table, Text(f"  and {len(folded)} more: {summary}", style="dim")]


def _make_table(rows: list[Row], width: int) -> Table:
    """Return a table whose marks, phases and times stay whole; a long name is cut, and a reason before it."""
    table = Table.grid(padding=(0, 1))
    names = min(max(len(on_one_line(row.name)) for row in rows), max(_SHORTEST_NAME, width // 3))
    phases = max(len(row.phase) for row in rows)
    left = max(0, width - sum((1, names, phases, _SECONDS)) - 5)
    details = min(max(len(_describe(row)) for row in rows), left)
    for fixed in (1, names, phases, details, _SECONDS):
        table.add_column(no_wrap=True, overflow="ellipsis", width=fixed)
    return table


def _describe(row: Row) -> str:
    """Return why a row stands where it stands."""
    detail = on_one_line(row.detail)
    return detail if row.status is RowStatus.FAILED or not detail else f"waiting for {detail}"


class _LinesAbove:
    """Writes lines above the running part."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def write(self, text: str) -> int:
        self._live.console.print(Text.from_ansi(text.rstrip("\n")))
        return len(text)

    def flush(self) -> None:
        """Do nothing: every line is drawn at once."""


def _advance(step: OpenStep) -> RenderableType:
    """Return how far a step is: a bar when the end is known, a count when it is not."""
    if step.total:
        bar = ProgressBar(total=step.total, completed=step.done, width=_BAR_WIDTH)
        grid = Table.grid(padding=(0, 1))
        grid.add_row(bar, Text(f"{100 * step.done // step.total} %"))
        return grid
    return Text(f"{step.done} {step.unit}" if step.done else "")
