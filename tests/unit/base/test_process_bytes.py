"""A program that does not write text: its output byte for byte, as it comes."""

from __future__ import annotations

import asyncio
import sys

import pytest
from tests.support.processes import shell

from stackyard.base import process

WRITES = "import sys; [sys.stdout.buffer.write(bytes(range(256)) * 1024) for _ in range({times})]"


def writer(times: int) -> process.Command:
    argv = (sys.executable, "-c", WRITES.format(times=times))
    return process.Command(argv=argv, env=process.environment(), output_limit_bytes=1024)


def test_every_byte_comes_in_order_and_none_is_kept() -> None:
    read = bytearray()
    # More than may be held of an output that is kept.
    ended = asyncio.run(process.run(writer(8), on_bytes=read.extend))
    assert bytes(read) == bytes(range(256)) * 8 * 1024
    assert ended.stdout == ""


def test_what_is_said_on_the_other_output_is_still_in_the_error() -> None:
    read = bytearray()
    with pytest.raises(process.ProcessFailedError, match="went wrong"):
        asyncio.run(process.run(shell("printf x; echo went wrong >&2; exit 3"), on_bytes=read.extend))
    assert bytes(read) == b"x"


def test_a_reader_that_fails_ends_the_program_and_gets_no_more() -> None:
    calls = []

    def fail(chunk: bytes) -> None:
        calls.append(len(chunk))
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk is full"):
        asyncio.run(process.run(writer(1000), on_bytes=fail))
    assert len(calls) == 1
