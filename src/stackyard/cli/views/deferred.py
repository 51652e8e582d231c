"""Progress that costs nothing until a command has something to show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.base import events

__all__ = ["DeferredProgress", "Progress", "SilentProgress"]


class Progress(Protocol):
    """Follows the event stream of a run."""

    def emit(self, event: events.Event) -> None:
        """Take one event."""

    def close(self) -> None:
        """Leave the terminal clean, however the run ended; nothing happens where nothing was shown."""


class SilentProgress:
    """Shows nothing, because the events themselves are on standard output."""

    def emit(self, event: events.Event) -> None:
        """Take one event and show nothing."""

    def close(self) -> None:
        """Do nothing: nothing was shown."""


class DeferredProgress:
    """Makes the real view at the first event, so that what draws is loaded only then.

    Args:
        begin: Makes the view.
    """

    def __init__(self, begin: Callable[[], Progress]) -> None:
        self._begin = begin
        self._shown: Progress | None = None

    def emit(self, event: events.Event) -> None:
        """Show one event."""
        if self._shown is None:
            self._shown = self._begin()
        self._shown.emit(event)

    def close(self) -> None:
        """Leave the terminal clean; what comes later is shown by a new view."""
        if self._shown is not None:
            self._shown.close()
            self._shown = None
