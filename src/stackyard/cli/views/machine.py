"""The result on standard output for programs: exactly one JSON object, or JSON lines of events."""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

import stackyard
from stackyard.base import diagnostics, events
from stackyard.cli.views.failure import write_failure

if TYPE_CHECKING:
    from stackyard.base.errors import ExitStatus, StackyardError
    from stackyard.cli.result import Result
    from stackyard.cli.views.stream import SafeStream
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["EventsOutput", "JsonOutput"]


class JsonOutput:
    """Exactly one JSON object, also for errors.

    Args:
        stream: Where the object goes.
        error_writer: Where an error goes that comes after the object was written.
    """

    def __init__(self, stream: SafeStream, error_writer: TextWriter) -> None:
        self._stream = stream
        self._error_writer = error_writer
        self._is_published = False

    @property
    def question_writer(self) -> None:
        """Nowhere: a program reads the result, and answers nothing."""
        return None

    def begin(self, command: str) -> None:
        """Write nothing yet."""

    def emit(self, event: events.Event) -> None:
        """Leave events to the progress view."""

    def publish(self, result: Result) -> None:
        """Write the object now."""
        self._write(result.document)

    def succeed(self, result: Result) -> None:
        """Write the object unless it was published."""
        if not self._is_published:
            self.publish(result)

    def fail(self, error: StackyardError) -> None:
        """Write the error as the object, or, when an object is out already, on standard error."""
        if self._is_published:
            write_failure(self._error_writer, error)
        else:
            self._write(_failure(error))

    def _write(self, document: Mapping[str, Any]) -> None:
        line = _line(document, self._stream)
        self._is_published = True
        _write(line, self._stream)


class EventsOutput:
    """JSON lines while it runs; the last one, `run.finished`, holds the object that `--json` prints.

    Args:
        stream: Where the lines go.
    """

    def __init__(self, stream: SafeStream) -> None:
        self._stream = stream
        self._seq = 0
        self._began = time.monotonic()
        self._is_finished = False

    @property
    def question_writer(self) -> None:
        """Nowhere: a program reads the result, and answers nothing."""
        return None

    def begin(self, command: str) -> None:
        """Write the first line."""
        self.emit(events.RunStarted(command=command, version=stackyard.__version__))

    def emit(self, event: events.Event) -> None:
        """Write one line."""
        at = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = _line(events.record(event, seq=self._seq + 1, at=at), self._stream)
        self._seq += 1
        _write(line, self._stream)

    def publish(self, result: Result) -> None:
        """Tell that a server is ready, and how to reach it."""
        self.emit(events.RunReady(result=result.document))

    def succeed(self, result: Result) -> None:
        """Write the last line."""
        self._finish(result.status, result.document)

    def fail(self, error: StackyardError) -> None:
        """Write the last line."""
        self._finish(error.exit_status, _failure(error))

    def _finish(self, status: ExitStatus, document: Mapping[str, Any]) -> None:
        if not self._is_finished:
            elapsed_s = round(time.monotonic() - self._began, 3)
            self.emit(events.RunFinished(exit_status=status, elapsed_s=elapsed_s, result=document))
            self._is_finished = True


def _failure(error: StackyardError) -> dict[str, Any]:
    return {"error": diagnostics.describe(error)}


def _line(document: Mapping[str, Any], stream: SafeStream) -> str:
    """Return one object on one line, in characters that the stream has."""
    is_unicode = stream.encoding.startswith("utf")
    if is_unicode:
        # It refuses integers over 64 bits, and text that is not UTF-8: a file's name, an argument.
        with contextlib.suppress(TypeError):
            return orjson.dumps(document).decode() + "\n"
    return json.dumps(_unicode(document), separators=(",", ":"), ensure_ascii=not is_unicode) + "\n"


_UNDECODABLE = re.compile("[\ud800-\udfff]")


def _unicode(value: Any) -> Any:
    """Return a value with each byte that is not part of UTF-8 replaced, which JSON cannot hold."""
    if isinstance(value, str):
        return _UNDECODABLE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {_unicode(key): _unicode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_unicode(item) for item in value]
    return value


def _write(line: str, stream: SafeStream) -> None:
    stream.write(line)
    stream.flush()
