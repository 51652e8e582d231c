"""Starting a program that outlives us: a server in the background, in a session of its own.

The program says on its standard output when it is ready; that pipe is all we wait for. Its standard error
goes to a log file. Unlike what `run` starts, it does not die with us.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from stackyard.base import files
from stackyard.base.process.command import (
    Completed,
    ProcessFailedError,
    ProcessOutputError,
    ProcessTimeoutError,
    SecretArgumentError,
    Stream,
)
from stackyard.base.process.lookup import find_executable
from stackyard.base.process.open_files import program_limit
from stackyard.base.process.run_program import not_started

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stackyard.base.process.command import Command

__all__ = ["Detached", "start_detached"]

# What a shell or a parent may have made it ignore.
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detached:
    """A program that runs on without us, and the line with which it said that it is ready."""

    pid: int
    line: str


async def start_detached(command: Command, *, log: Path, is_ready: Callable[[str], bool]) -> Detached:
    """Start a program in the background and wait until it says that it is ready.

    Until then it is ours: a timeout or a cancelled wait ends it. Afterwards no one reads its standard output.

    Args:
        command: What to run. It starts in our folder and reads nothing: `cwd` and `stdin` must be absent.
        log: Where its standard error goes, in place of what was there.
        is_ready: Tells whether a line of its standard output says that it is ready.

    Raises:
        SecretArgumentError: One of the arguments holds a secret; nothing was run.
        ProgramMissingError: There is no such program.
        ProgramUnusableError: The system refuses to start it.
        FileError: The log cannot be written.
        ProcessTimeoutError: It was not ready in time.
        ProcessOutputError: It wrote more than may be held of it before it was ready.
        ProcessFailedError: It ended, or closed its standard output, before it was ready.
    """
    if any(command.redactor.hides(argument) for argument in command.argv):
        raise SecretArgumentError(f"`{command.shown}` was not run: one of its arguments is a secret.")
    if command.cwd is not None or command.stdin is not None:
        raise ValueError("a detached program has our folder and no standard input")
    began = time.monotonic()
    pid, output = _spawn(command, log)
    lines: list[str] = []
    deadline = asyncio.timeout(command.timeout_s)
    with output:
        try:
            async with deadline:
                if await _says_ready(command, output, is_ready, lines):
                    return Detached(pid=pid, line=lines[-1])
        except BaseException as err:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGTERM)
            if not (isinstance(err, TimeoutError) and deadline.expired()):
                await _reap(pid, command.grace_s)
                raise
    returncode = await _reap(pid, command.grace_s)
    failure = ProcessTimeoutError if deadline.expired() else ProcessFailedError
    raise failure(
        command,
        Completed(
            argv=command.argv,
            returncode=returncode,
            stdout="\n".join(lines),
            stderr=_read_log(log),
            elapsed_s=time.monotonic() - began,
            left_processes=False,
        ),
    )


def _spawn(command: Command, log: Path) -> tuple[int, IO[bytes]]:
    """Start the program as the leader of a session; return its number and its standard output."""
    reader, writer = os.pipe()
    output = os.fdopen(reader, "rb", buffering=0)
    try:
        errors = _open_log(log)
        try:
            with program_limit():
                pid = os.posix_spawn(
                    find_executable(command),
                    command.argv,
                    dict(command.env),
                    file_actions=[
                        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                        (os.POSIX_SPAWN_DUP2, writer, 1),
                        (os.POSIX_SPAWN_DUP2, errors, 2),
                    ],
                    setsid=True,
                    setsigmask=(),
                    setsigdef=_HEARD,
                )
        finally:
            os.close(errors)
    except (OSError, ValueError) as err:
        output.close()
        raise not_started(command, err) from err
    except BaseException:
        output.close()
        raise
    finally:
        os.close(writer)
    return pid, output


def _open_log(log: Path) -> int:
    with files.open_file(log) as stream:
        return os.dup(stream.fileno())


def _read_log(log: Path) -> str:
    try:
        return log.read_text(errors="replace")
    except OSError:
        # Someone removed it meanwhile; what the program said is gone with it.
        return ""


async def _says_ready(
    command: Command, output: IO[bytes], is_ready: Callable[[str], bool], lines: list[str]
) -> bool:
    """Read lines until one says that the program is ready (True) or there are no more (False)."""
    loop = asyncio.get_running_loop()
    stream, left_bytes = asyncio.StreamReader(limit=command.output_limit_bytes), command.output_limit_bytes
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), output)
    try:
        while line := await stream.readline():
            left_bytes -= len(line)
            if left_bytes < 0:
                raise ProcessOutputError(command, Stream.STDOUT)
            lines.append(line.decode(errors="replace").rstrip("\r\n"))
            if is_ready(lines[-1]):
                return True
    except ValueError as err:
        # A line that is longer than the limit of the reader.
        raise ProcessOutputError(command, Stream.STDOUT) from err
    finally:
        transport.close()
    return False


async def _reap(pid: int, grace_s: float) -> int:
    """Wait for the end of the program, kill its group when it takes too long, and return how it ended."""
    waiting = asyncio.ensure_future(asyncio.to_thread(os.waitpid, pid, 0))
    try:
        await asyncio.wait({waiting}, timeout=grace_s)
    finally:
        if not waiting.done():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
    _, status = await waiting
    return os.waitstatus_to_exitcode(status)
