"""A running program and its process group: pipes, signals, and what becomes of it when we end.

It depends on the descriptors alone. asyncio's own subprocesses need several turns of the loop to begin, in
which a cancelled task kills the program without a warning, or waits for ever for pipes that no one connects
(Python 3.11 to 3.13); here a program is started, with all that belongs to it, in one go.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.process.command import Stream
from stackyard.base.process.end_watch import find_watch
from stackyard.base.process.lines import Lines, ProcessOutput, RawBytes
from stackyard.base.process.lookup import find_executable
from stackyard.base.process.open_files import limit_for_programs, lower_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO

    from stackyard.base.process.command import Command, OnBytes, OnLine
    from stackyard.base.process.end_watch import EndWatch

__all__ = ["Child"]

# How much is read or written in one turn of the loop.
CHUNK_BYTES = 256 * 1024
# Beside this file and in its form: on an inner host there is bytecode in place of sources.
_LAUNCHER = str(Path(__file__).with_name(f"launcher{Path(__file__).suffix}"))


class Child:
    """A running program: its outputs, and futures for its exit and for the end of its outputs.

    The exit and the end of the outputs are apart, because what a program leaves behind keeps its pipes open.

    Args:
        command: What to start.
        on_line: Called with each line as it comes.
        on_bytes: Called with all of the standard output as it comes, which is then not cut into lines.
        inherited: Descriptors of ours that it has too, besides those of the command.

    Raises:
        OSError: The system refuses to start it.
        ValueError: Python refuses to.
    """

    def __init__(
        self,
        command: Command,
        on_line: OnLine | None,
        *,
        on_bytes: OnBytes | None = None,
        inherited: Sequence[int] = (),
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.failed: asyncio.Future[None] = self._loop.create_future()
        self.stdout: ProcessOutput = (
            Lines(command, Stream.STDOUT, on_line) if on_bytes is None else RawBytes(on_bytes)
        )
        self.stderr = Lines(command, Stream.STDERR, on_line)
        self._is_gone = False
        self._program = _start(command, (*command.pass_fds, *inherited))
        self._ending: int | None = None
        self._watch_for_the_end()
        self._outputs: dict[IO[bytes], ProcessOutput] = {}
        outputs: tuple[tuple[IO[bytes] | None, ProcessOutput], ...] = (
            (self._program.stdout, self.stdout),
            (self._program.stderr, self.stderr),
        )
        for pipe, lines in outputs:
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._outputs[pipe] = lines
                self._loop.add_reader(pipe.fileno(), self._read, pipe, lines)
        self._unwritten = memoryview(command.stdin or b"")
        if self._program.stdin is not None:
            os.set_blocking(self._program.stdin.fileno(), False)
            self._loop.add_writer(self._program.stdin.fileno(), self._write, self._program.stdin)

    @property
    def pid(self) -> int:
        """The number of the program and of its group."""
        return self._program.pid

    @property
    def returncode(self) -> int:
        """How the program ended."""
        status = self._program.returncode
        return -signal.SIGKILL if status is None else status

    def _watch_for_the_end(self) -> None:
        try:
            self._ending = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            # Not Linux, or no descriptor is left.
            threading.Thread(target=self._wait_for_the_end, daemon=True).start()
        else:
            self._loop.add_reader(self._ending, self._note_exit)

    def _wait_for_the_end(self) -> None:
        """Wait in a thread for the end of the program."""
        self._program.wait()
        with contextlib.suppress(RuntimeError):  # The loop may be closed by now.
            self._loop.call_soon_threadsafe(self._note_exit)

    def _note_exit(self) -> None:
        self._program.poll()
        self._stop_watching()
        if not self.exited.done():
            self.exited.set_result(None)

    def _stop_watching(self) -> None:
        if self._ending is not None:
            self._loop.remove_reader(self._ending)
            os.close(self._ending)
            self._ending = None

    def _read(self, pipe: IO[bytes], lines: ProcessOutput) -> None:
        try:
            data = os.read(pipe.fileno(), CHUNK_BYTES)
        except BlockingIOError:
            return
        if data:
            self._guard_delivery(lines.add, data)
            return
        self._let_go(pipe)
        self._guard_delivery(lines.close)
        if not self._outputs:
            self.closed.set_result(None)

    def _let_go(self, pipe: IO[bytes]) -> None:
        self._loop.remove_reader(pipe.fileno())
        self._outputs.pop(pipe)
        pipe.close()

    def _write(self, pipe: IO[bytes]) -> None:
        try:
            written = os.write(pipe.fileno(), self._unwritten[:CHUNK_BYTES]) if self._unwritten else 0
        except BlockingIOError:
            return
        except OSError:
            # A standard input that the program does not read is no error.
            self._unwritten = self._unwritten[:0]
        else:
            self._unwritten = self._unwritten[written:]
        if not self._unwritten:
            self._close_input()

    def _close_input(self) -> None:
        pipe = self._program.stdin
        if pipe is not None and not pipe.closed:
            self._loop.remove_writer(pipe.fileno())
            pipe.close()

    def _guard_delivery(self, deliver: Callable[..., None], *data: bytes) -> None:
        """Hand lines on; when that fails, the reader gets no more of them and `run` fails with the error."""
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
            self._guard_delivery(lines.close)

    def close(self) -> None:
        """Let go of the pipes, whatever happened."""
        self._detach()
        self._close_input()
        for pipe in list(self._outputs):
            self._let_go(pipe)
        if not self.exited.done():
            # It runs on, because we may not stop it; someone has to collect it one day.
            threading.Thread(target=self._program.wait, daemon=True).start()
        self._stop_watching()
        if self.failed.done():
            self.failed.exception()

    def signal(self, number: int) -> bool:
        """Send a signal to the whole group; return whether anyone got it."""
        if self._is_gone:
            return False
        try:
            os.killpg(self.pid, number)
            if number in (signal.SIGINT, signal.SIGTERM):
                # A process that is stopped hears it only when it continues.
                os.killpg(self.pid, signal.SIGCONT)
        except ProcessLookupError:
            # No one can join an empty group, and its number may soon be that of another one.
            self._is_gone = self.exited.done()
            return False
        except PermissionError:
            return False
        return True

    def has_members(self) -> bool:
        """Return whether the program or anything that it left in its group still runs."""
        return self.signal(0) and _has_running_member(self.pid)


def _has_running_member(group: int) -> bool:
    """Return whether a group has a member that runs: one that is dead may only wait to be collected."""
    if not os.path.exists("/proc/self/stat"):
        return True
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError):
            # The fields after the program's name, which may hold anything: state, parent, group.
            state, _, member_of = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[:3]
            if int(member_of) == group and state not in b"ZX":
                return True
    return False


def _start(command: Command, inherited: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start a program; Python runs nothing of ours in the new process before the program."""
    program = find_executable(command)
    if command.ends_with_us and (watch := find_watch()) is not None:
        return _start_watched(command, program, inherited, watch)
    # A process that has given up its privileges may not be allowed to start its own Python.
    if not command.ends_with_us or sys.platform != "linux" or not os.access(sys.executable, os.X_OK):
        started = _popen(command, command.argv, program, inherited)
        lower_limit(started.pid)
        return started
    reader, writer = os.pipe()
    try:
        try:
            limit = ":".join(map(str, limit_for_programs() or ()))
            given = (str(os.getpid()), str(writer), limit, program)
            argv = (sys.executable, "-I", "-S", _LAUNCHER, *given, *command.argv)
            started = _popen(command, argv, sys.executable, (*inherited, writer))
        finally:
            os.close(writer)
        if failure := os.read(reader, CHUNK_BYTES):
            with started:
                started.wait()
            raise OSError(int(failure), os.strerror(int(failure)), command.argv[0])
        return started
    finally:
        os.close(reader)


def _start_watched(
    command: Command, program: str, inherited: Sequence[int], watch: EndWatch
) -> subprocess.Popen[bytes]:
    """Start a program that the process of `watch_ends` asks to stop if we are killed."""
    started = _popen(command, command.argv, program, inherited)
    lower_limit(started.pid)
    # One that cannot be watched runs all the same; only a kill of ours would not end it.
    pipes = [pipe.fileno() for pipe in (started.stdout, started.stderr) if pipe is not None]
    watch.add(started.pid, pipes)
    return started


def _popen(
    command: Command, argv: Sequence[str], program: str, inherited: Sequence[int]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        executable=program,
        bufsize=0,
        cwd=command.cwd,
        env=dict(command.env),
        stdin=subprocess.DEVNULL if command.stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A session of its own has no terminal to ask, and its process group is its own too.
        start_new_session=True,
        pass_fds=tuple(inherited),
    )
