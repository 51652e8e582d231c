"""Running a program to its end, whatever that is."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import FileError, StackyardError
from stackyard.base.process.child import Child
from stackyard.base.process.command import (
    Completed,
    ProcessFailedError,
    ProcessTimeoutError,
    ProcessUnstoppableError,
    ProgramMissingError,
    ProgramUnusableError,
    SecretArgumentError,
)

if TYPE_CHECKING:
    from stackyard.base.process.command import Command, OnBytes, OnLine

__all__ = ["not_started", "run"]

# How long members left of the group get to leave, and then the pipes to close, when the program has ended.
_STRAGGLER_GRACE_S = 1.0
# How often to look whether they have left: the kernel tells of the end of a process, not of a group.
_LOOK_AGAIN_S = 0.05
# A loop that was busy elsewhere may be out of time before it has read what is there. Each turn reads 256 KiB,
# a pipe holds 1 MiB at most, and the news of its end take three turns.
_READING_TURNS = 10


async def run(
    command: Command,
    on_line: OnLine | None = None,
    *,
    on_bytes: OnBytes | None = None,
    check: bool = True,
) -> Completed:
    """Run a program to its end.

    Args:
        command: What to run.
        on_line: Called with each line as it comes, without its line break.
        on_bytes: Called with the standard output as it comes, for a program that does not write text; it is
            then neither limited nor kept.
        check: Whether a failure of the program is an error.

    Raises:
        SecretArgumentError: One of the arguments holds a secret; nothing was run.
        ProgramMissingError: There is no such program.
        ProgramUnusableError: The system refuses to start it.
        FileError: The folder to run it in cannot be entered.
        ProcessTimeoutError: It did not end in time.
        ProcessOutputError: It wrote more than may be held of it.
        ProcessFailedError: It failed, and `check` is set.
        ProcessUnstoppableError: It had to be stopped and still runs.
    """
    if any(command.redactor.hides(argument) for argument in command.argv):
        raise SecretArgumentError(f"`{command.shown}` was not run: one of its arguments is a secret.")
    began = time.monotonic()
    child = _start(command, on_line, on_bytes)
    try:
        try:
            timed_out = await _wait(child, command)
        finally:
            # Also when it was stopped: its last lines say what it saved.
            left_processes = await _end_group(child)
        if child.failed.done():
            child.failed.result()
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


def _start(command: Command, on_line: OnLine | None, on_bytes: OnBytes | None) -> Child:
    try:
        return Child(command, on_line, on_bytes=on_bytes)
    except (OSError, ValueError) as err:
        raise not_started(command, err) from err


def not_started(command: Command, err: OSError | ValueError) -> StackyardError:
    """Return the error for a program that the system, or Python for it, refused to start."""
    program = command.argv[0]
    if isinstance(err, ValueError):
        return ProgramUnusableError(
            f"`{program}` cannot be started: {err}.", remedy="Correct what it is given."
        )
    if command.cwd is not None and err.filename == command.cwd:
        return FileError.from_os_error(err, f"run `{command.shown}` in", command.cwd)
    if err.errno in (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM):
        return ProgramUnusableError(
            f"`{program}` cannot be started: {err.strerror}.",
            remedy="The machine or a limit (`ulimit -a`) is used up: run fewer things at once.",
        )
    if not isinstance(err, FileNotFoundError):
        return ProgramUnusableError(f"`{program}` cannot be started: {err.strerror or err}.")
    place = (command.cwd or Path()) / program if "/" in program else program
    if shutil.which(place, path=command.env.get("PATH", os.defpath)) is None:
        return ProgramMissingError(f"`{program}` was not found.")
    return ProgramUnusableError(
        f"`{program}` cannot be started: the interpreter that its first line names, or the loader that it is "
        f"linked to, was not found."
    )


async def _wait(child: Child, command: Command) -> bool:
    """Wait until the program has ended, and return whether it took a timeout to end it."""
    deadline = asyncio.timeout(command.timeout_s)
    try:
        async with deadline:
            await asyncio.wait({child.exited, child.failed}, return_when=asyncio.FIRST_COMPLETED)
            if child.failed.done():
                child.failed.result()
    except BaseException as err:
        # Out of time, cancelled, it wrote too much, or a reader of its lines failed: it must not run on.
        await _stop(child, command, is_requested=isinstance(err, asyncio.CancelledError))
        if not (deadline.expired() and isinstance(err, TimeoutError)):
            raise
        return True
    return False


async def _stop(child: Child, command: Command, *, is_requested: bool) -> None:
    """Ask the group to stop, and kill it when the grace period is over or a second request comes."""
    until = time.monotonic() + command.grace_s
    child.signal(signal.SIGINT)
    try:
        try:
            await _leave(child, until)
        except asyncio.CancelledError:
            if not is_requested:
                # This is the first request: it found the program already stopping.
                await _leave(child, until)
            raise
    finally:
        was_allowed = child.signal(signal.SIGKILL)
        await asyncio.wait({child.exited}, timeout=None if was_allowed else _STRAGGLER_GRACE_S)
        if not child.exited.done():
            raise ProcessUnstoppableError(
                f"`{command.shown}` (process {child.pid}) still runs: the system does not let us stop it."
            )


async def _leave(child: Child, until: float) -> None:
    """Wait until the program has ended and its group is empty, or the time is over."""
    await asyncio.wait({child.exited}, timeout=until - time.monotonic())
    # The kernel has no event for an empty group.
    while child.has_members() and (left_s := until - time.monotonic()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(_LOOK_AGAIN_S, left_s))


async def _end_group(child: Child) -> bool:
    """End what the program left behind, read what is left to read; return whether there was anything."""
    left = child.has_members()
    try:
        if left:
            child.signal(signal.SIGTERM)
            await _leave(child, time.monotonic() + _STRAGGLER_GRACE_S)
    finally:
        child.signal(signal.SIGKILL)
    await asyncio.wait({child.closed}, timeout=_STRAGGLER_GRACE_S)
    for _ in range(_READING_TURNS):
        if child.closed.done():
            return left
        await asyncio.sleep(0)
    # Only a process that left the group can still hold a pipe open.
    child.flush()
    return True
