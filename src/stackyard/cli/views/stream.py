"""Standard output and standard error that never break the work.

When the reader goes away (`| head`) or the disk is full, the run must continue: an apply that stops half-way
because no one reads its progress would be worse than lost text. The failure is kept and told at the end.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Protocol, TextIO

from stackyard.base.errors import OutputClosedError, OutputFailedError, StackyardError

__all__ = ["SafeStream", "Writable"]


class Writable(Protocol):
    """Takes text."""

    def write(self, text: str, /) -> int:
        """Write text and return its length."""

    def flush(self) -> None:
        """Hand everything over to the system."""


class SafeStream:
    """Writes to a stream until that fails, then remembers why and writes nothing more.

    Args:
        stream: Standard output or error; absent when the process was started without.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._failure: OSError | None = None

    @property
    def encoding(self) -> str:
        """The name of the stream's characters, in lower case."""
        return (getattr(self._stream, "encoding", None) or "utf-8").lower()

    def isatty(self) -> bool:
        """Return whether a terminal is at the other end."""
        return self._stream is not None and self._stream.isatty()

    def write(self, text: str) -> int:
        """Write text if that is still possible."""
        if self._stream is None:
            self._failure = OSError(errno.EBADF, "there is none")
        elif self._failure is None:
            try:
                self._stream.write(self._within_encoding(text))
            except OSError as err:
                self._give_up(err)
        return len(text)

    def flush(self) -> None:
        """Hand everything over to the system."""
        if self._stream is not None and self._failure is None:
            try:
                self._stream.flush()
            except OSError as err:
                self._give_up(err)

    def _within_encoding(self, text: str) -> str:
        """Return what a terminal without UTF-8, or without a character, can show of a text."""
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return text.encode(self.encoding, "replace").decode(self.encoding)
        return text

    def fileno(self) -> int:
        """Return the descriptor, for those who ask the terminal for its size."""
        if self._stream is None:
            raise OSError("There is no such stream.")
        return self._stream.fileno()

    @property
    def failure(self) -> StackyardError | None:
        """What went wrong with this stream, if anything did."""
        if self._failure is None:
            return None
        if isinstance(self._failure, BrokenPipeError):
            return OutputClosedError("The reader of the output stopped reading.")
        return OutputFailedError(f"Writing failed: {self._failure.strerror or self._failure}.")

    def _give_up(self, err: OSError) -> None:
        self._failure = err
        if self._stream in (sys.stdout, sys.stderr) and self._stream is not None:
            # Python flushes once more at exit; that must neither fail nor print a traceback.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
