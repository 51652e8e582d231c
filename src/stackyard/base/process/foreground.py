r"""Running a program that talks to the user itself, such as an editor, while we wait.

It has our terminal. Ctrl-C and Ctrl-\\ are for it, not for us; a request to end us (SIGTERM, SIGHUP) is
passed on, and we continue when it has ended, so that the caller can clean up.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from stackyard.base.errors import InterruptedRunError
from stackyard.base.process.command import SecretArgumentError
from stackyard.base.process.lookup import find_executable
from stackyard.base.process.open_files import limit_for_programs, restore_limit
from stackyard.base.process.run_program import not_started

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.base.process.command import Command

__all__ = ["run_in_foreground"]

_FOR_THE_PROGRAM = (signal.SIGINT, signal.SIGQUIT)
_FOR_BOTH = (signal.SIGTERM, signal.SIGHUP)


def run_in_foreground(command: Command) -> int:
    """Run a program with our terminal, wait for it, and return its exit status, negative for a signal.

    Where our standard output is no terminal, because someone reads our result from it, the program gets the
    terminal all the same, or else our standard error.

    Raises:
        SecretArgumentError: One of the arguments holds a secret; nothing was run.
        ProgramMissingError: There is no such program.
        ProgramUnusableError: The system refuses to start it.
        InterruptedRunError: We were asked to end; the program has ended.
    """
    if any(command.redactor.hides(argument) for argument in command.argv):
        raise SecretArgumentError(f"`{command.shown}` was not run: one of its arguments is a secret.")
    received: list[int] = []
    children: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, frame: Any) -> None:
        del frame
        received.append(number)
        for child in children:
            child.send_signal(number)

    # Listening begins before the program does: it may be what sends us the first signal.
    with _handle_signals(pass_on), contextlib.ExitStack() as stack:
        stdin, stdout = _terminal(stack)
        try:
            limit = limit_for_programs()
            child = subprocess.Popen(
                command.argv,
                executable=find_executable(command),
                cwd=command.cwd,
                env=dict(command.env),
                stdin=stdin,
                stdout=stdout,
                preexec_fn=None if limit is None else lambda: restore_limit(limit),
            )
        except (OSError, ValueError) as err:
            raise not_started(command, err) from err
        children.append(child)
        for number in tuple(received):
            child.send_signal(number)
        child.wait()
    if received:
        raise InterruptedRunError(f"Stopped by {signal.Signals(received[0]).name}.")
    return child.returncode


def _leave_to_the_program(number: int, frame: Any) -> None:
    """Do nothing; unlike an ignored signal, one that is handled like this is not ignored in a new program."""
    del number, frame


@contextlib.contextmanager
def _handle_signals(pass_on: Any) -> Iterator[None]:
    """Leave keys to the program and pass requests to end on, until it has ended."""
    before = {number: signal.signal(number, _leave_to_the_program) for number in _FOR_THE_PROGRAM}
    before |= {number: signal.signal(number, pass_on) for number in _FOR_BOTH}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminal(stack: contextlib.ExitStack) -> tuple[int | IO[bytes] | None, int | IO[bytes] | None]:
    """Return where the program reads and writes; nothing where our own will do."""
    if os.isatty(0) and os.isatty(1):
        return None, None
    try:
        terminal = stack.enter_context(Path("/dev/tty").open("r+b", buffering=0))  # noqa: SIM115 - it is one
    except OSError:
        # There is no terminal, as in a script: what it says must not get into our result.
        return None, sys.stderr.fileno()
    return terminal, terminal
