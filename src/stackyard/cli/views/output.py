"""The result on standard output: for a human, as exactly one JSON object, or as JSON lines of events."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from stackyard import diagnostics, events
from stackyard.cli.views.failure import write_failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.result import Result
    from stackyard.cli.views.paper import Paper
    from stackyard.cli.views.stream import SafeStream
    from stackyard.errors import StackyardError

__all__ = ["EventsOutput", "HumanOutput", "JsonOutput", "Output"]


class Output(Protocol):
    """Writes what a command gives back. Each run ends with one call of `succeed` or `fail`."""

    def emit(self, event: events.Event) -> None:
        """Take one event of the run."""

    def publish(self, result: Result) -> None:
        """Write the result of a command that goes on running, such as a server that is ready."""

    def succeed(self, result: Result) -> None:
        """Write the end of a run that worked; nothing more if its result was published before."""

    def fail(self, error: StackyardError) -> None:
        """Write the end of a run that did not."""


class HumanOutput:
    """Text for a human; errors go to standard error.

    Args:
        paper: Where results go.
        error_paper: Where errors go.
    """

    def __init__(self, paper: Paper, error_paper: Paper) -> None:
        self._paper = paper
        self._error_paper = error_paper
        self._is_published = False

    def emit(self, event: events.Event) -> None:
        """Leave events to the progress view."""

    def publish(self, result: Result) -> None:
        """Write the result now."""
        self._is_published = True
        if result.show is not None:
            result.show(self._paper)
        self._paper.flush()

    def succeed(self, result: Result) -> None:
        """Write the result unless it was published."""
        if not self._is_published:
            self.publish(result)

    def fail(self, error: StackyardError) -> None:
        """Write the error."""
        write_failure(self._error_paper, error)


class JsonOutput:
    """Exactly one JSON object, also for errors.

    Args:
        stream: Where the object goes.
        error_paper: Where an error goes that comes after the object was written.
    """

    def __init__(self, stream: SafeStream, error_paper: Paper) -> None:
        self._stream = stream
        self._error_paper = error_paper
        self._is_published = False

    def emit(self, event: events.Event) -> None:
        """Leave events to the progress view."""

    def publish(self, result: Result) -> None:
        """Write the object now."""
        self._is_published = True
        _write_line(self._stream, result.document)

    def succeed(self, result: Result) -> None:
        """Write the object unless it was published."""
        if not self._is_published:
            self.publish(result)

    def fail(self, error: StackyardError) -> None:
        """Write the error as the object, or, when an object is out already, on standard error."""
        if self._is_published:
            write_failure(self._error_paper, error)
            return
        self._is_published = True
        _write_line(self._stream, {"error": diagnostics.describe(error)})


class EventsOutput:
    """JSON lines while it runs; the last one, `run.finished`, holds the object that `--json` prints.

    Args:
        stream: Where the lines go.
    """

    def __init__(self, stream: SafeStream) -> None:
        self._stream = stream
        self._seq = 0

    def emit(self, event: events.Event) -> None:
        """Write one line."""
        self._seq += 1
        at = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        _write_line(self._stream, events.record(event, seq=self._seq, at=at))

    def publish(self, result: Result) -> None:
        """Tell that a server is ready, and how to reach it."""
        self.emit(events.RunReady(result=result.document))

    def succeed(self, result: Result) -> None:
        """Leave the result to the event that ends the run."""

    def fail(self, error: StackyardError) -> None:
        """Leave the error to the event that ends the run."""


def _write_line(stream: SafeStream, document: Mapping[str, Any]) -> None:
    """Write one object on one line, at once."""
    stream.write(orjson.dumps(document).decode() + "\n")
    stream.flush()
