"""A program to run, how it ended, and what can go wrong with it."""

from __future__ import annotations

import enum
import os
import shlex
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.errors import InternalError, StackyardError
from stackyard.base.redaction import NOTHING_SECRET, Redactor

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "Command",
    "Completed",
    "OnBytes",
    "OnLine",
    "ProcessFailedError",
    "ProcessOutputError",
    "ProcessTimeoutError",
    "ProcessUnstoppableError",
    "ProgramMissingError",
    "ProgramUnusableError",
    "SecretArgumentError",
    "Stream",
    "environment",
]

# What a program may need to know of the user's session; everything else is passed on purpose or not.
_INHERITED = frozenset(
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR SSH_AUTH_SOCK SSL_CERT_FILE SSL_CERT_DIR "
    "HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy".split()
)
_INHERITED_PREFIXES = ("LC_", "XDG_")

# How much of each output an error quotes: its end, where programs say what went wrong.
_QUOTED_CHARACTERS = 4000


class Stream(enum.StrEnum):
    """Which output a line came from."""

    STDOUT = "stdout"
    STDERR = "stderr"


OnLine = Callable[[Stream, str], None]
OnBytes = Callable[[bytes], None]


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
        output_limit_bytes: How much may be held of each output, of all of it or, when it is not kept, of one
            line; a program that goes beyond is stopped.
        keeps_output: Whether what it wrote is in `Completed`; a reader of its lines may be enough.
        ends_with_us: Whether it is asked to stop when we are killed; one that ends soon anyway starts faster
            without.
        pass_fds: Descriptors of ours that it has under the same numbers.
        redactor: Hides secrets in errors. Lines and outputs are passed on as they are.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: Path | None = None
    stdin: bytes | None = field(default=None, repr=False)
    timeout_s: float | None = None
    grace_s: float = 10.0
    output_limit_bytes: int = 64 * 2**20
    keeps_output: bool = True
    ends_with_us: bool = True
    pass_fds: tuple[int, ...] = ()
    redactor: Redactor = field(default=NOTHING_SECRET, repr=False)

    @property
    def shown(self) -> str:
        """The command line as a user would type it, secrets masked."""
        # Masked before and after: quotes would split a secret that holds one, and spaces may join one.
        return self.redactor(shlex.join(map(self.redactor, self.argv)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A program that has ended.

    Attributes:
        argv: The program and its arguments.
        returncode: Its exit status, negative for a signal.
        stdout: All it wrote there, as it is: it may hold secrets. Empty when it was not kept.
        stderr: The same for the other stream.
        elapsed_s: How long it ran.
        left_processes: Whether it left processes behind, which were then ended.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: str = field(repr=False)
    stderr: str = field(repr=False)
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
        how = _describe_exit(completed.returncode)
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


class ProcessOutputError(StackyardError):
    """A program wrote far more than it has any reason to, and was stopped before it filled the memory."""

    code = "E-PROCESS-OUTPUT"
    summary = "A program wrote too much"
    default_remedy = "Run the command by hand to see what it prints without end."

    def __init__(self, command: Command, stream: Stream) -> None:
        self.stream = stream
        where = "standard output" if stream is Stream.STDOUT else "standard error"
        what = "wrote more than" if command.keeps_output else "wrote a line of more than"
        limit = f"{command.output_limit_bytes / 2**20:g} MiB"
        super().__init__(f"`{command.shown}` {what} {limit} to its {where} and was stopped.")


class ProcessUnstoppableError(StackyardError):
    """A program had to be stopped, and the system does not let us: it runs as another user (sudo)."""

    code = "E-PROCESS-UNSTOPPABLE"
    summary = "A program could not be stopped"
    default_remedy = "Wait for its end, or stop it as the user that it runs as."


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a small environment for a program: the user's session, plus what is given."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
    }
    return inherited | dict(extra or {})


def _describe_exit(returncode: int) -> str:
    """Say how a program ended."""
    if returncode >= 0:
        return f"ended with status {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:  # The real-time signals between the first and the last have no names.
        name = str(-returncode)
    return f"was ended by signal {name}"
