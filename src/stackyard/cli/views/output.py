"""The result on standard output; here for a human, in `machine` as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from stackyard.base import events
    from stackyard.base.errors import StackyardError
    from stackyard.cli.result import Result
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["HumanOutput", "Output"]


class Output(Protocol):
    """Writes what a command gives back. Each run ends with a call of `succeed` or `fail`."""

    @property
    def question_writer(self) -> TextWriter | None:
        """Where questions are written, none where a program reads the result."""

    def begin(self, command: str) -> None:
        """Take note that the run of a command begins."""

    def emit(self, event: events.Event) -> None:
        """Take one event of the run."""

    def publish(self, result: Result) -> None:
        """Write the result of a command that keeps running, such as a server that is ready."""

    def succeed(self, result: Result) -> None:
        """Write the end of a run that worked; no second result if one was published before."""

    def fail(self, error: StackyardError) -> None:
        """Write the end of a run that did not, also one that failed while its result was written."""


class HumanOutput:
    """Text for a human; errors go to standard error.

    Args:
        writer: Where results go.
        error_writer: Where errors go.
    """

    def __init__(self, writer: TextWriter, error_writer: TextWriter) -> None:
        self._writer = writer
        self._error_writer = error_writer
        self._is_published = False

    @property
    def question_writer(self) -> TextWriter:
        """Where errors go: a result that is written to a file has no questions in it."""
        return self._error_writer

    def begin(self, command: str) -> None:
        """Say nothing: who typed it knows."""

    def emit(self, event: events.Event) -> None:
        """Leave events to the progress view."""

    def publish(self, result: Result) -> None:
        """Write the result now."""
        self._is_published = True
        if result.show is not None:
            result.show(self._writer)
        self._writer.flush()

    def succeed(self, result: Result) -> None:
        """Write the result unless it was published."""
        if not self._is_published:
            self.publish(result)

    def fail(self, error: StackyardError) -> None:
        """Write the error."""
        from stackyard.cli.views.failure import write_failure  # lazy: most runs do not fail

        write_failure(self._error_writer, error)
