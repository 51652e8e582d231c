"""Live progress on a terminal: finished steps scroll up, running ones stay below with a clock."""

from __future__ import annotations

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
from stackyard.cli.views.text_writer import TextWriter

if TYPE_CHECKING:
    from rich.console import RenderableType

    from stackyard.cli.views.stream import SafeStream

__all__ = ["LiveProgress"]

_REDRAWS_PER_SECOND = 8
_BAR_WIDTH = 24


class LiveProgress:
    """Draws the steps under way, and scrolls finished ones and facts above them.

    Args:
        stream: A terminal.
        is_colour: Whether colours are wanted.
        is_verbose: Whether debug lines are shown.
    """

    def __init__(self, stream: SafeStream, *, is_colour: bool, is_verbose: bool) -> None:
        self._is_verbose = is_verbose
        self._steps = OpenSteps()
        self._spinner = Spinner("dots" if stream.encoding.startswith("utf") else "line", style="cyan")
        console = Console(
            file=cast("IO[str]", stream),
            # Without colours there is nothing bold or dim either.
            color_system="auto" if is_colour else None,
            force_terminal=True,
            highlight=False,
        )
        # `get_renderable` is asked by the drawing thread, which also makes the clocks tick.
        self._live = Live(
            console=console,
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
        known = self._steps[event.step] if isinstance(event, events.StepFinished) else None
        self._steps.follow(event)
        if isinstance(event, events.StepFinished):
            write_finished(self._above, event, known)
        else:
            write_fact(self._above, event, is_verbose=self._is_verbose)
        if not self._is_drawing and self._steps.all():
            self._is_drawing = True
            self._live.start()

    def close(self) -> None:
        """Take the running part off the terminal."""
        if self._is_drawing:
            self._live.stop()

    def _draw(self) -> RenderableType:
        rows = Table.grid(padding=(0, 1))
        for step in self._steps.all():
            title = Text(on_one_line(step.title))
            rows.add_row(self._spinner, title, _advance(step), Text(f"{step.elapsed_s():.0f} s"))
            if step.waiting_for:
                waiting = Text(f"waiting for {on_one_line(step.waiting_for)}", style="dim")
                rows.add_row("", waiting, "", "")
        return Group(rows)


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
