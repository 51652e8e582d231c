"""The one tree of errors, and the exit statuses that it maps to.

::

    StackyardError                  something failed or was refused            exit 1
    ├── UsageError                  the command line is wrong                  exit 64
    ├── InvalidInputError           input was read and is wrong                exit 65
    ├── UnreachableError            a service or store cannot be reached       exit 69
    ├── BusyError                   a lock or lease was not obtained in time   exit 75
    ├── NotConfirmedError           a question was answered with no             exit 1
    ├── InterruptedRunError         the user or the system asked us to stop    exit 130
    └── InternalError               a defect of stackyard itself               exit 1

Each package hangs its own errors under one of these and gives each a stable `code`. A class carries fixed
text (`code`, `summary`, `remedy`); an instance carries the facts (`detail`, `where`). Nothing here prints.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.base.diagnostics import Diagnostic

__all__ = [
    "BusyError",
    "ExitStatus",
    "FileError",
    "InternalError",
    "InterruptedRunError",
    "InvalidInputError",
    "Location",
    "NotConfirmedError",
    "OutputClosedError",
    "OutputFailedError",
    "StackyardError",
    "UnreachableError",
    "UsageError",
]


class ExitStatus(enum.IntEnum):
    """What a command tells the shell."""

    DONE = 0
    FAILED = 1
    CHANGES = 2
    INVALID_SPEC = 3
    # Of `plan`, where no spec is read: the guard would refuse to apply it.
    REFUSED = 3
    USAGE = 64
    INVALID = 65
    UNREACHABLE = 69
    BUSY = 75
    INTERRUPTED = 130
    # What a shell shows for a program whose reader left: 128 and SIGPIPE.
    OUTPUT_CLOSED = 141


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file; line and column count from one and may be unknown."""

    path: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        if self.line is None:
            return self.path
        return f"{self.path}:{self.line}" if self.column is None else f"{self.path}:{self.line}:{self.column}"


class StackyardError(Exception):
    """Something failed or was refused.

    Args:
        detail: What is wrong, in full sentences, naming the things involved. Never a secret.
        where: The file, line and column at fault, where there is one.
        remedy: What to do about it, when the instance knows better than its class.
    """

    code: ClassVar[str] = "E-FAILED"
    summary: ClassVar[str] = "The command failed"
    default_remedy: ClassVar[str] = ""
    exit_status: ClassVar[ExitStatus] = ExitStatus.FAILED

    def __init__(self, detail: str, *, where: Location | None = None, remedy: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.where = where
        self.remedy = self.default_remedy if remedy is None else remedy

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The single findings behind this error, when it collected several."""
        return ()


class UsageError(StackyardError):
    """The command line names a verb, option or value that does not exist or does not fit."""

    code = "E-USAGE"
    summary = "The command line is not understood"
    default_remedy = "Run the command with --help to see what it takes."
    exit_status = ExitStatus.USAGE


class InvalidInputError(StackyardError):
    """A file or value was read and is wrong; nothing was changed.

    Args:
        detail: What was being read.
        findings: Everything that is wrong with it, not only the first.
        where: The file as a whole, where it is one.
        remedy: What to do about it.
    """

    code = "E-INVALID"
    summary = "The input is not valid"
    default_remedy = "Correct every place listed and run the command again; nothing was changed."
    exit_status = ExitStatus.INVALID

    def __init__(
        self,
        detail: str,
        findings: tuple[Diagnostic, ...] = (),
        *,
        where: Location | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(detail, where=where, remedy=remedy)
        self._findings = findings

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything that was found wrong."""
        return self._findings


class FileError(InvalidInputError):
    """A file or folder cannot be read or written: missing, no permission, not UTF-8, disk full."""

    code = "E-FILE"
    summary = "A file cannot be used"
    default_remedy = "Check that the path exists and that you may read and write it."

    @classmethod
    def from_os_error(cls, err: OSError | ValueError, doing: str, path: Path | str) -> FileError:
        """Say what we were doing to which path when the system, or Python for it, refused."""
        reason = (err.strerror if isinstance(err, OSError) else None) or str(err)
        return cls(f"Cannot {doing} {path}: {reason}.", where=Location(str(path)))


class UnreachableError(StackyardError):
    """A service, store or host did not answer."""

    code = "E-UNREACHABLE"
    summary = "A service cannot be reached"
    default_remedy = "Check the address and the network, then run the command again."
    exit_status = ExitStatus.UNREACHABLE


class BusyError(StackyardError):
    """A lock or lease was not obtained in time."""

    code = "E-BUSY"
    summary = "Another client holds the lock"
    default_remedy = "Wait for the other run to end, then run the command again."
    exit_status = ExitStatus.BUSY


class InterruptedRunError(StackyardError):
    """The user (Ctrl-C) or the system (SIGTERM) asked the run to stop, and it stopped cleanly."""

    code = "E-INTERRUPTED"
    summary = "Stopped on request"
    default_remedy = "Run the command again: it continues with the existing objects."
    exit_status = ExitStatus.INTERRUPTED


class NotConfirmedError(StackyardError):
    """A change was shown, and no one said yes to it."""

    code = "E-NOT-CONFIRMED"
    summary = "The action was not confirmed"
    default_remedy = "Say `y` when you are asked, or give --yes."


class OutputClosedError(StackyardError):
    """The reader of standard output went away (`| head`): nothing is said, and the work runs to its end."""

    code = "E-OUTPUT-CLOSED"
    summary = "Standard output was closed before everything was written"
    default_remedy = "The work was not affected; only its output was cut off."
    exit_status = ExitStatus.OUTPUT_CLOSED


class OutputFailedError(StackyardError):
    """Standard output could not be written, for example because the disk is full."""

    code = "E-OUTPUT"
    summary = "Standard output cannot be written"
    default_remedy = "Free some space or send the output elsewhere; the work itself was not affected."


class InternalError(StackyardError):
    """Something happened that stackyard believed impossible."""

    code = "E-INTERNAL"
    summary = "This is a bug in stackyard"
    default_remedy = "Run the command again with -v and report what it prints."
