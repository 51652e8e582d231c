"""The program as a server: forked from a loaded process, and spoken to from an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping

from tests.support.forked_client import PROGRAM
from tests.support.forking import Forked, fork_program

__all__ = ["ForkedServer", "fork_server"]


class ForkedServer:
    """A run of the program that goes on; what it writes on its standard output is read line by line."""

    def __init__(self, forked: Forked, output: int) -> None:
        self.pid = forked.pid
        self.returncode: int | None = None
        self._told = forked.told
        self._forked = forked
        self._output: int | None = output
        self._read = b""

    async def readline(self) -> bytes:
        """Return the next line, or what is left at the end."""
        while b"\n" not in self._read and await self._more():
            pass
        line, newline, self._read = self._read.partition(b"\n")
        return line + newline

    async def read(self) -> bytes:
        """Return all that is left, when it has ended."""
        while await self._more():
            pass
        rest, self._read = self._read, b""
        return rest

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Wait for its end and return its status."""
        if self.returncode is None:
            await _readable(self._told.fileno())
            self.returncode = self._forked.wait()
            while await self._more():
                pass
        return self.returncode

    async def _more(self) -> bool:
        """Take what there is to read; tell whether more can come."""
        if self._output is None:
            return False
        await _readable(self._output)
        data = os.read(self._output, 65536)
        self._read += data
        if not data:
            os.close(self._output)
            self._output = None
        return bool(data)


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    loop.add_reader(descriptor, event.set)
    try:
        await event.wait()
    finally:
        loop.remove_reader(descriptor)


def fork_server(*arguments: str, env: Mapping[str, str] | None = None, entry: str = PROGRAM) -> ForkedServer:
    """Begin a run whose errors go where those of the tests go; `entry` is `module:function`."""
    output, end = os.pipe()
    with contextlib.closing(os.fdopen(end, "wb")), open(os.devnull, "rb") as nothing:
        forked = fork_program(arguments, streams=(nothing.fileno(), end, 2), env=env, entry=entry)
    return ForkedServer(forked, output)
