"""A running program and its process group: outputs, signals, and what becomes of it when we end."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from stackyard.errors import InternalError
from stackyard.process.command import OnLine, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Child", "prepare_child"]


@dataclass(slots=True)
class _Lines:
    """Collects one output and hands its lines on; a line may be of any length."""

    stream: Stream
    on_line: OnLine | None
    _chunks: list[bytes] = field(default_factory=list)
    _unfinished: bytearray = field(default_factory=bytearray)

    def add(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        if self.on_line is None:
            return
        self._unfinished += chunk
        if b"\n" in chunk:
            *lines, rest = bytes(self._unfinished).split(b"\n")
            self._unfinished = bytearray(rest)
            for line in lines:
                self.on_line(self.stream, line.rstrip(b"\r").decode(errors="replace"))

    def close(self) -> None:
        if self._unfinished and self.on_line is not None:
            rest, self._unfinished = bytes(self._unfinished), bytearray()
            self.on_line(self.stream, rest.rstrip(b"\r").decode(errors="replace"))

    def detach(self) -> None:
        """Collect on, but call the reader no more."""
        self.on_line = None

    def text(self) -> str:
        return b"".join(self._chunks).decode(errors="replace")


class Child(asyncio.SubprocessProtocol):
    """A running program: its outputs, and futures for its exit and for the end of its outputs.

    The exit and the end of the outputs are apart, because what a program leaves behind keeps its pipes open.
    """

    def __init__(self, on_line: OnLine | None) -> None:
        loop = asyncio.get_running_loop()
        self.stdout = _Lines(Stream.STDOUT, on_line)
        self.stderr = _Lines(Stream.STDERR, on_line)
        self._outputs = {1: self.stdout, 2: self.stderr}
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.failed: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.SubprocessTransport | None = None
        self._is_gone = False

    @property
    def transport(self) -> asyncio.SubprocessTransport:
        """What asyncio holds of the program."""
        if self._transport is None:
            raise InternalError("A program was used before it was started.")
        return self._transport

    @property
    def pid(self) -> int:
        """The number of the program and of its group."""
        return self.transport.get_pid()

    @property
    def returncode(self) -> int:
        """How the program ended."""
        status = self.transport.get_returncode()
        return -signal.SIGKILL if status is None else status

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note that the program was started."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what it wrote."""
        self._guarded(self._outputs[fd].add, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note the end of one of its pipes; a standard input that it does not read is no error."""
        if lines := self._outputs.pop(fd, None):
            self._guarded(lines.close)
        if not self._outputs and not self.closed.done():
            self.closed.set_result(None)

    def process_exited(self) -> None:
        """Note that the program ended."""
        if not self.exited.done():
            self.exited.set_result(None)

    def _guarded(self, deliver: Callable[..., None], *data: bytes) -> None:
        """Hand lines on; when their reader fails, it gets no more of them and `run` fails with its error."""
        try:
            deliver(*data)
        except Exception as err:
            # The reader is code of the caller: its error must reach the caller, not the loop.
            self._detach()
            if not self.failed.done():
                self.failed.set_exception(err)

    def _detach(self) -> None:
        self.stdout.detach()
        self.stderr.detach()

    def flush(self) -> None:
        """Hand on lines that were begun, although their pipe is still open."""
        for lines in self._outputs.values():
            self._guarded(lines.close)

    def close(self) -> None:
        """Let go of the pipes, whatever happened."""
        self._detach()
        stdin = cast("asyncio.WriteTransport | None", self.transport.get_pipe_transport(0))
        if stdin is not None and stdin.get_write_buffer_size():
            # It was closed, but waits until somebody reads what is still to be written.
            stdin.abort()
        with contextlib.suppress(PermissionError):
            self.transport.close()
        if self.failed.done():
            self.failed.exception()

    def signal(self, number: int) -> bool:
        """Send a signal to the whole group; return whether anybody got it."""
        if self._is_gone:
            return False
        try:
            os.killpg(self.pid, number)
            if number in (signal.SIGINT, signal.SIGTERM):
                # A process that is stopped hears it only when it goes on.
                os.killpg(self.pid, signal.SIGCONT)
        except ProcessLookupError:
            # Nobody can join an empty group, and its number may soon be that of another one.
            self._is_gone = self.exited.done()
            return False
        except PermissionError:
            return False
        return True

    def has_members(self) -> bool:
        """Tell whether the program or anything that it left in its group still runs."""
        return self.signal(0) and _has_running_member(self.pid)


def _has_running_member(group: int) -> bool:
    """Tell whether a group has a member that runs: one that is dead may only wait to be collected."""
    if not os.path.exists("/proc/self/stat"):
        return True
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError):
            # The fields after the program's name, which may hold anything: state, parent, group.
            state, _, member_of = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[:3]
            if int(member_of) == group and state not in b"ZX":
                return True
    return False


_PR_SET_PDEATHSIG = 1
# Loaded before any fork: a child between fork and exec may not import or allocate much.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def prepare_child(parent: int) -> None:
    """Run in the child before the program: die with the parent, and listen when asked to stop.

    Interrupts are ignored in background jobs of a shell, others may be blocked, and that would be inherited.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
