"""The one door to other programs.

`run` starts a program without a shell, in a process group of its own, with exactly the environment it is
given and nothing to read from the terminal, streams its lines, and waits for it. Whatever ends the wait (a
timeout, a cancelled task), the program is interrupted first and killed only after a grace period, because
OpenTofu needs that time to save its state. If we are killed ourselves, the kernel asks the program to stop.

It knows no program by name. Secrets go through the environment or standard input; an argument that holds one
is refused, because every user of the machine can read arguments.
"""

from __future__ import annotations

import asyncio
import ctypes
import enum
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from stackyard.errors import FileError, InternalError, Location, StackyardError
from stackyard.redaction import NOTHING_SECRET, Redactor

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "Command",
    "Completed",
    "OnLine",
    "ProcessFailedError",
    "ProcessTimeoutError",
    "ProgramMissingError",
    "ProgramUnusableError",
    "SecretArgumentError",
    "Stream",
    "environment",
    "run",
]

# What a program may need to know of the user's session; everything else is passed on purpose or not at all.
_INHERITED = frozenset(
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR SSH_AUTH_SOCK SSL_CERT_FILE SSL_CERT_DIR "
    "HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy".split()
)
_INHERITED_PREFIXES = ("LC_", "XDG_")

# How much of each output an error quotes: its end, where programs say what went wrong.
_QUOTED_CHARACTERS = 4000
# How long left-over members of the group get to leave, and their pipes to close, once the program has ended.
_STRAGGLER_GRACE_S = 1.0


class Stream(enum.StrEnum):
    """Which output a line came from."""

    STDOUT = "stdout"
    STDERR = "stderr"


OnLine = Callable[[Stream, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program to run, and how.

    Attributes:
        argv: The program and its arguments.
        env: Its whole environment; `environment` gives the usual start.
        cwd: The folder to run it in; ours when absent.
        stdin: What it reads; nothing when absent, never the terminal.
        timeout_s: When to give up on it; never when absent.
        grace_s: How long it may take to stop after an interrupt before it is killed.
        redactor: Hides secrets in errors. Lines and outputs are passed on as they are.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path | None = None
    stdin: bytes | None = None
    timeout_s: float | None = None
    grace_s: float = 10.0
    redactor: Redactor = NOTHING_SECRET

    @property
    def shown(self) -> str:
        """The command line as a user would type it, secrets masked."""
        return self.redactor(shlex.join(self.argv))


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A program that has ended.

    Attributes:
        argv: The program and its arguments.
        returncode: Its exit status, negative for a signal.
        stdout: All it wrote there, as it is: it may hold secrets.
        stderr: The same for the other stream.
        elapsed_s: How long it ran.
        left_processes: Whether it left processes behind, which were then ended.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    elapsed_s: float
    left_processes: bool


class ProgramMissingError(StackyardError):
    """A program that is needed is not on this machine."""

    code = "E-PROGRAM-MISSING"
    summary = "A program is not installed"
    default_remedy = "Install it, or run `stackyard tools list` to see what is needed for what."


class ProgramUnusableError(StackyardError):
    """A program was found but the system will not start it: no permission, wrong architecture."""

    code = "E-PROGRAM-UNUSABLE"
    summary = "A program cannot be started"
    default_remedy = "Check that the file is an executable for this machine."


class SecretArgumentError(InternalError):
    """A secret was about to be put on a command line, where other users can read it."""

    code = "E-SECRET-ARGUMENT"
    summary = "A secret was kept off a command line"


class ProcessFailedError(StackyardError):
    """A program ended with a failure.

    Args:
        command: What was run.
        completed: How it ended.
    """

    code = "E-PROCESS-FAILED"
    summary = "A program failed"
    default_remedy = "Its own output above says why."

    def __init__(self, command: Command, completed: Completed) -> None:
        self.returncode = completed.returncode
        self.stdout = command.redactor(completed.stdout)
        self.stderr = command.redactor(completed.stderr)
        how = _ending(completed.returncode)
        said = (self.stderr.strip() or self.stdout.strip())[-_QUOTED_CHARACTERS:]
        super().__init__(f"`{command.shown}` {how}." + (f"\n{said}" if said else " It said nothing."))


class ProcessTimeoutError(StackyardError):
    """A program did not end in the time it was given and was stopped."""

    code = "E-PROCESS-TIMEOUT"
    summary = "A program took too long"
    default_remedy = "Run the command by hand to see what it waits for."

    def __init__(self, command: Command, completed: Completed) -> None:
        self.stdout = command.redactor(completed.stdout)
        self.stderr = command.redactor(completed.stderr)
        said = (self.stderr.strip() or self.stdout.strip())[-_QUOTED_CHARACTERS:]
        super().__init__(
            f"`{command.shown}` did not end within {command.timeout_s:g} s and was stopped."
            + (f"\n{said}" if said else " It said nothing.")
        )


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a small environment for a program: the user's session, plus what is given."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
    }
    return inherited | dict(extra or {})


async def run(command: Command, on_line: OnLine | None = None, *, check: bool = True) -> Completed:
    """Run a program to its end.

    Args:
        command: What to run.
        on_line: Called with each line as it comes, without its line break.
        check: Whether a failure of the program is an error.

    Raises:
        ProgramMissingError: There is no such program.
        ProgramUnusableError: The system refuses to start it.
        ProcessTimeoutError: It did not end in time.
        ProcessFailedError: It failed, and `check` is set.
    """
    if any(command.redactor.hides(argument) for argument in command.argv):
        raise SecretArgumentError(f"`{command.shown}` was not run: one of its arguments is a secret.")
    began = time.monotonic()
    child = await _start(command, on_line)
    try:
        timed_out = await _wait(child, command)
        left_processes = await _end_group(child)
    finally:
        child.close()
    completed = Completed(
        argv=command.argv,
        returncode=child.returncode,
        stdout=child.stdout.text(),
        stderr=child.stderr.text(),
        elapsed_s=time.monotonic() - began,
        left_processes=left_processes,
    )
    if timed_out:
        raise ProcessTimeoutError(command, completed)
    if check and completed.returncode != 0:
        raise ProcessFailedError(command, completed)
    return completed


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

    def text(self) -> str:
        return b"".join(self._chunks).decode(errors="replace")


class _Child(asyncio.SubprocessProtocol):
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

    @property
    def transport(self) -> asyncio.SubprocessTransport:
        if self._transport is None:
            raise InternalError("A program was used before it was started.")
        return self._transport

    @property
    def returncode(self) -> int:
        status = self.transport.get_returncode()
        return -signal.SIGKILL if status is None else status

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._guarded(self._outputs[fd].add, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if lines := self._outputs.pop(fd, None):
            self._guarded(lines.close)
        if not self._outputs and not self.closed.done():
            self.closed.set_result(None)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    def _guarded(self, deliver: Callable[..., None], *data: bytes) -> None:
        """Hand lines on; when their reader fails, `run` fails with its error."""
        try:
            deliver(*data)
        except (
            Exception
        ) as err:  # the reader is the caller's code: its error must reach the caller, not the loop
            if not self.failed.done():
                self.failed.set_exception(err)

    def close(self) -> None:
        """Let go of the pipes, whatever happened."""
        self.transport.close()
        if self.failed.done():
            self.failed.exception()

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to the whole group; return whether anybody was left in it."""
        try:
            os.killpg(self.transport.get_pid(), number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


async def _start(command: Command, on_line: OnLine | None) -> _Child:
    """Start the program in its own process group."""
    if command.cwd is not None and not command.cwd.is_dir():
        raise FileError(
            f"Cannot run `{command.shown}` in {command.cwd}: there is no such folder.",
            where=Location(str(command.cwd)),
        )
    parent = os.getpid()
    try:
        transport, child = await asyncio.get_running_loop().subprocess_exec(
            lambda: _Child(on_line),
            *command.argv,
            cwd=command.cwd,
            env=dict(command.env),
            stdin=subprocess.DEVNULL if command.stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
            preexec_fn=lambda: _prepare_child(parent),
        )
    except FileNotFoundError as err:
        raise ProgramMissingError(f"`{command.argv[0]}` was not found.") from err
    except OSError as err:
        raise ProgramUnusableError(f"`{command.argv[0]}` cannot be started: {err.strerror or err}.") from err
    if command.stdin is not None:
        pipe = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        pipe.write(command.stdin)
        pipe.close()
    return child


async def _wait(child: _Child, command: Command) -> bool:
    """Wait until the program has ended, and return whether it took a timeout to end it."""
    deadline = asyncio.timeout(command.timeout_s)
    try:
        async with deadline:
            await asyncio.wait({child.exited, child.failed}, return_when=asyncio.FIRST_COMPLETED)
            if child.failed.done():
                child.failed.result()
    except BaseException:
        # Out of time, cancelled, or a reader of our lines failed: it must not run on unwatched.
        await _interrupt(child, command.grace_s)
        if not deadline.expired():
            raise
    return deadline.expired()


async def _interrupt(child: _Child, grace_s: float) -> None:
    """Ask the group to stop, and kill it when the grace period is over or somebody insists."""
    child.signal(signal.SIGINT)
    try:
        await asyncio.wait({child.exited}, timeout=grace_s)
    finally:
        child.signal(signal.SIGKILL)
    await child.exited


async def _end_group(child: _Child) -> bool:
    """End what the program left behind, read what is left to read; return whether there was anything."""
    left = child.signal(signal.SIGTERM)
    await asyncio.wait({child.closed}, timeout=_STRAGGLER_GRACE_S)
    child.signal(signal.SIGKILL)
    if not child.closed.done():
        # A process that ignored the signal has closed its pipes now; one that left the group has not.
        await asyncio.wait({child.closed}, timeout=_STRAGGLER_GRACE_S)
    escaped = not child.closed.done()
    if child.failed.done():
        child.failed.result()
    return left or escaped


def _ending(returncode: int) -> str:
    """Say how a program ended."""
    if returncode >= 0:
        return f"ended with status {returncode}"
    return f"was ended by signal {signal.Signals(-returncode).name}"


_PR_SET_PDEATHSIG = 1
# Loaded before any fork: a child between fork and exec may not import or allocate much.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def _prepare_child(parent: int) -> None:
    """Run in the child before the program: die with the parent, and listen to interrupts.

    Interrupts are ignored in background jobs of a shell and that would be inherited.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
