"""Becoming another program: it has our place, our terminal and our standard streams, and its end is ours."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from stackyard.base.process.command import SecretArgumentError
from stackyard.base.process.lookup import find_executable
from stackyard.base.process.open_files import limit_for_programs, restore_limit
from stackyard.base.process.run_program import not_started

if TYPE_CHECKING:
    from stackyard.base.process.command import Command

__all__ = ["replace_process"]


def replace_process(command: Command) -> NoReturn:
    """Replace this process by a program; nothing of ours is cleaned up.

    Raises:
        SecretArgumentError: One of the arguments holds a secret.
        ProgramMissingError: There is no such program.
        ProgramUnusableError: The system refuses to start it.
    """
    if any(command.redactor.hides(argument) for argument in command.argv):
        raise SecretArgumentError(f"`{command.shown}` was not run: one of its arguments is a secret.")
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores this one, and the program would inherit that.
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    restore_limit(limit_for_programs())
    try:
        program = find_executable(command)
        os.execve(program, command.argv, dict(command.env))  # noqa: S606 - no shell is wanted
    except (OSError, ValueError) as err:
        signal.signal(signal.SIGPIPE, before)
        raise not_started(command, err) from err
