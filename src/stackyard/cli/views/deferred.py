"""Live progress that loads its drawing library only when a command has something to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard import events

if TYPE_CHECKING:
    from stackyard.cli.views.live import LiveProgress
    from stackyard.cli.views.stream import SafeStream

__all__ = ["DeferredProgress"]

_NOT_DRAWN = (events.RunStarted, events.RunReady, events.RunFinished)


class DeferredProgress:
    """Starts live progress at the first event worth drawing.

    Args:
        stream: A terminal.
        is_colour: Whether colours are wanted.
        is_verbose: Whether debug lines are shown.
    """

    def __init__(self, stream: SafeStream, *, is_colour: bool, is_verbose: bool) -> None:
        self._stream = stream
        self._is_colour = is_colour
        self._is_verbose = is_verbose
        self._live: LiveProgress | None = None

    def emit(self, event: events.Event) -> None:
        """Show one event."""
        if not isinstance(event, _NOT_DRAWN):
            self._start().emit(event)

    def close(self) -> None:
        """Leave the terminal clean."""
        if self._live is not None:
            self._live.close()
            self._live = None

    def _start(self) -> LiveProgress:
        from stackyard.cli.views.live import LiveProgress  # lazy: rich costs 60 ms

        if self._live is None:
            self._live = LiveProgress(self._stream, is_colour=self._is_colour, is_verbose=self._is_verbose)
        return self._live
