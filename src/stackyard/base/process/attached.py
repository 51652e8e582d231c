"""A program that runs beside us for as long as we want it, and that we talk to over descriptors of our own.

It has no standard input; what it complains of comes line by line. It ends when it is asked to, when it wants
to, or with us.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

from stackyard.base.process.child import Child
from stackyard.base.process.run_program import not_started

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.process.command import Command, OnLine

__all__ = ["Attached", "start_attached"]


class Attached:
    """A program that runs beside us.

    Args:
        command: What it is.
        child: Its process.
    """

    def __init__(self, command: Command, child: Child) -> None:
        self._command = command
        self._child = child
        self.pid = child.pid
        self.exited: asyncio.Future[None] = child.exited

    @property
    def returncode(self) -> int:
        """How it ended: its exit status, negative for a signal."""
        return self._child.returncode

    async def end(self, *, gently: bool = False) -> None:
        """End it and all that is in its process group; at once, or after it was asked to."""
        if gently and not self.exited.done():
            self._child.signal(signal.SIGTERM)
            await asyncio.wait({self.exited}, timeout=self._command.grace_s)
        self._child.signal(signal.SIGKILL)
        # One that the system does not let us kill must not keep us.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._command.grace_s):
                await asyncio.wait({self.exited})
        self._child.close()


def start_attached(
    command: Command, on_line: OnLine | None = None, *, inherited: Sequence[int] = ()
) -> Attached:
    """Start a program and return while it runs; anyone who does so ends it with `Attached.end`.

    Args:
        command: What to run; its timeout and its input are not used.
        on_line: Called with each line that it writes.
        inherited: Descriptors of ours that it has under the same numbers.

    Raises:
        ProgramMissingError: There is no such program.
        ProgramUnusableError: The system refuses to start it.
    """
    try:
        return Attached(command, Child(command, on_line, inherited=inherited))
    except (OSError, ValueError) as err:
        raise not_started(command, err) from err
