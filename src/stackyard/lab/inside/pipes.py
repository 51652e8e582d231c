"""Carrying bytes between streams of the lab and the descriptors of a program in a guest."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.lab.inside.machine import Sink, Source

__all__ = ["drain", "feed", "pipe"]

_CHUNK = 64 * 1024


def pipe() -> tuple[int, int]:
    """Return the two ends of a pipe, that for reading first."""
    return os.pipe()


def _file(descriptor: int, mode: str) -> IO[bytes]:
    return open(descriptor, mode, buffering=0)


async def feed(source: Source, descriptor: int) -> None:
    """Write everything of a source to a descriptor, which is then closed."""
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, _file(descriptor, "wb"))
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    try:
        # A program that does not read its input is no failure.
        with contextlib.suppress(ConnectionError):
            while chunk := await source.read():
                writer.write(chunk)
                await writer.drain()
    finally:
        transport.close()


async def drain(descriptor: int, sink: Sink) -> None:
    """Pass on everything that comes from a descriptor, which is then closed."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_CHUNK)
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_read_pipe(lambda: protocol, _file(descriptor, "rb"))
    try:
        # A terminal ends with an error of its own, when the last program has closed it.
        with contextlib.suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                await sink.write(chunk)
    finally:
        transport.close()
