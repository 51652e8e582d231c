"""What a program writes to one of its outputs: collected, cut into lines, and never more than it may."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from stackyard.base.process.command import ProcessOutputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.base.process.command import Command, OnBytes, OnLine, Stream

__all__ = ["Lines", "ProcessOutput", "RawBytes"]


class ProcessOutput(Protocol):
    """Takes what a program writes to one of its outputs."""

    def add(self, chunk: bytes) -> None:
        """Take some of it."""

    def close(self) -> None:
        """Take note that there is no more."""

    def detach(self) -> None:
        """Call the reader no more."""

    def text(self) -> str:
        """Return all that was kept."""


def _ignore(chunk: bytes) -> None:
    del chunk


@dataclass(slots=True)
class RawBytes:
    """Hands one output on as it comes, byte for byte, and keeps nothing of it."""

    on_bytes: OnBytes
    _deliver: Callable[[bytes], None] = field(init=False)

    def __post_init__(self) -> None:
        self._deliver = self.on_bytes

    def add(self, chunk: bytes) -> None:
        """Hand on what the program wrote."""
        self._deliver(chunk)

    def close(self) -> None:
        """Do nothing: there is no line that could be left over."""

    def detach(self) -> None:
        """Call the reader no more."""
        self._deliver = _ignore

    def text(self) -> str:
        """Return nothing."""
        return ""


@dataclass(slots=True)
class Lines:
    """Collects one output and hands its lines on; a line may be as long as the whole output."""

    command: Command
    stream: Stream
    on_line: OnLine | None
    _chunks: list[bytes] = field(default_factory=list)
    _kept_bytes: int = 0
    _unfinished: bytearray = field(default_factory=bytearray)
    _is_over: bool = False

    def add(self, chunk: bytes) -> None:
        """Take what the program wrote.

        Raises:
            ProcessOutputError: It is more than we may hold. What comes later is thrown away.
        """
        if self._is_over:
            return
        if self.command.keeps_output:
            self._chunks.append(chunk)
            self._kept_bytes += len(chunk)
        if self.on_line is not None and self._kept_bytes <= self.command.output_limit_bytes:
            self._cut(chunk, self.on_line)
        if max(self._kept_bytes, len(self._unfinished)) > self.command.output_limit_bytes:
            self._is_over = True
            self._chunks.clear()
            self._unfinished.clear()
            raise ProcessOutputError(self.command, self.stream)

    def _cut(self, chunk: bytes, on_line: OnLine) -> None:
        self._unfinished += chunk
        if b"\n" in chunk:
            *lines, rest = bytes(self._unfinished).split(b"\n")
            self._unfinished = bytearray(rest)
            for line in lines:
                on_line(self.stream, line.rstrip(b"\r").decode(errors="replace"))

    def close(self) -> None:
        """Hand on the last line, which needs no line break."""
        if self._unfinished and self.on_line is not None:
            rest, self._unfinished = bytes(self._unfinished), bytearray()
            self.on_line(self.stream, rest.rstrip(b"\r").decode(errors="replace"))

    def detach(self) -> None:
        """Collect on, but call the reader no more."""
        self.on_line = None
        self._unfinished.clear()

    def text(self) -> str:
        """Return all that was kept."""
        return b"".join(self._chunks).decode(errors="replace")
