"""What a command is given: the event stream, a way to run asynchronous work, and a way to say "ready"."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from stackyard.base import events
    from stackyard.base.errors import StackyardError
    from stackyard.cli.result import Result
    from stackyard.cli.views.deferred import Progress
    from stackyard.cli.views.output import Output

__all__ = ["Session", "pass_session"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Session:
    """One run of the program."""

    output: Output
    progress: Progress
    _emitted_once: list[events.Event] = field(default_factory=list, init=False)
    _last: list[events.Event] = field(default_factory=list, init=False)

    def emit(self, event: events.Event) -> None:
        """Show one event."""
        self.output.emit(event)
        self.progress.emit(event)

    def emit_once(self, event: events.Event) -> None:
        """Show one event, unless the same one was shown this way before."""
        if event not in self._emitted_once:
            self._emitted_once.append(event)
            self.emit(event)

    def emit_last(self, event: events.Event) -> None:
        """Show one event when the command has ended well, behind its result; the same one is shown once."""
        if event not in self._last:
            self._last.append(event)

    def succeed(self, result: Result) -> None:
        """Show the result of the command."""
        self.progress.close()
        for event in self._last:
            # The stream of events ends with the result.
            self.output.emit(event)
        self.output.succeed(result)
        for event in self._last:
            self.progress.emit(event)
        self.progress.close()

    def publish(self, result: Result) -> None:
        """Show the result of a command that keeps running."""
        self.progress.close()
        self.output.publish(result)

    def end(self, error: StackyardError) -> None:
        """Show the error that ended the run."""
        self.progress.close()
        self.output.fail(error)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run asynchronous work to its end; Ctrl-C stops it cleanly."""
        from stackyard.cli.interrupt import run_interruptibly  # lazy: asyncio costs 40 ms

        return run_interruptibly(work, self.emit, on_abandon=self.end)


pass_session = click.make_pass_decorator(Session)
