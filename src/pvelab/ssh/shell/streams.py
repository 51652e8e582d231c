"""What programs read and write: chunks of bytes, from and to anything."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Protocol

__all__ = ["BytesSource", "CaptureSink", "NullSink", "Sink", "Source", "Streams"]

_MOST_KEPT = 64 * 1024 * 1024


class Source(Protocol):
    """Something to read from."""

    async def read(self) -> bytes:
        """Return the next chunk, empty at the end."""
        ...


class Sink(Protocol):
    """Something to write to."""

    async def write(self, data: bytes) -> None:
        """Take a chunk."""
        ...

    async def close(self) -> None:
        """Make what was written stay."""
        ...


class BytesSource:
    """Bytes that are there already, as a source."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def read(self) -> bytes:
        """Return all of it, once."""
        data, self._data = self._data, b""
        return data


class CaptureSink:
    """A sink that keeps what it takes, as far as that is reasonable."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0

    async def write(self, data: bytes) -> None:
        """Keep a chunk.

        Raises:
            OSError: It is too much: scripts pass text through pipes, not images.
        """
        self._size += len(data)
        _require_small(self._size)
        self._chunks.append(data)

    async def close(self) -> None:
        """Do nothing."""

    @property
    def data(self) -> bytes:
        """Everything that was written."""
        return b"".join(self._chunks)


class NullSink:
    """/dev/null."""

    async def read(self) -> bytes:
        """Return nothing."""
        return b""

    async def write(self, data: bytes) -> None:
        """Forget it."""

    async def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Standard input, output and error of a program."""

    stdin: Source
    stdout: Sink
    stderr: Sink

    async def say(self, text: str) -> None:
        """Write a line on standard output."""
        await self.stdout.write(_encode(f"{text}\n"))

    async def complain(self, text: str) -> None:
        """Write a line on standard error."""
        await self.stderr.write(_encode(f"{text}\n"))

    async def read_all(self) -> bytes:
        """Read standard input to its end.

        Raises:
            OSError: It is too much.
        """
        captured = CaptureSink()
        while chunk := await self.stdin.read():
            await captured.write(chunk)
        return captured.data


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _require_small(size: int) -> None:
    if size > _MOST_KEPT:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), "pipe")
