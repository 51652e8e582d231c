"""Carrying bytes between streams of the lab and the descriptors of a program in a guest.

The descriptors are read and written as the loop says that they are ready, without a transport:
a transport lets go of its descriptor one turn of the loop after it was closed, and a guest that is
killed as the loop ends would leave it open.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pvelab.machines.machine import Sink, Source

__all__ = ["drain", "feed", "pipe"]

_CHUNK = 64 * 1024


def pipe() -> tuple[int, int]:
    """Return the two ends of a pipe, that for reading first."""
    return os.pipe()


async def feed(source: Source, descriptor: int) -> None:
    """Write everything of a source to a descriptor, which is then closed."""
    try:
        os.set_blocking(descriptor, False)
        # A program that does not read its input is no failure, nor is a terminal that is gone.
        with contextlib.suppress(OSError):
            while chunk := await source.read():
                await _write(descriptor, chunk)
    finally:
        os.close(descriptor)


async def drain(descriptor: int, sink: Sink) -> None:
    """Pass on everything that comes from a descriptor, which is then closed."""
    try:
        os.set_blocking(descriptor, False)
        while chunk := await _read(descriptor):
            await sink.write(chunk)
    finally:
        os.close(descriptor)


async def _read(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            loop = asyncio.get_running_loop()
            await _ready(descriptor, loop.add_reader, loop.remove_reader)
        except OSError:
            # A terminal ends with an error of its own, when the last program has closed it.
            return b""


async def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            loop = asyncio.get_running_loop()
            await _ready(descriptor, loop.add_writer, loop.remove_writer)


async def _ready(
    descriptor: int, watch: Callable[[int, Callable[[], None]], None], unwatch: Callable[[int], bool]
) -> None:
    """Wait until the loop says that a descriptor can be used."""
    ready = asyncio.Event()
    watch(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        unwatch(descriptor)
