"""A question at a terminal, asked while a run waits: locks are kept alive, and Ctrl-C works."""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from typing import TYPE_CHECKING

from stackyard.base.errors import NotConfirmedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["NotConfirmedError", "can_ask", "confirm"]

_YES = ("y", "yes")
_LONGEST_ANSWER = 4096


def can_ask(session: Session) -> bool:
    """Return whether somebody can be asked: at a terminal, also where the result goes to a file or a pipe."""
    streams = (sys.stdin, sys.stderr)
    is_terminal = all(stream is not None and stream.isatty() for stream in streams)
    return is_terminal and session.output.question_writer is not None


async def confirm(session: Session, question: str, show: Callable[[TextWriter], None]) -> bool:
    """Show something on the terminal and ask for a yes; a no where nobody can be asked.

    Args:
        session: The command.
        question: What to ask.
        show: Writes what the question is about.
    """
    writer = session.output.question_writer
    if writer is None:
        return False
    session.progress.close()
    show(writer)
    writer.flush()
    # What was typed before the question is no answer to it.
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    writer.text(f"{question} [y/N]: ")
    writer.flush()
    answer = await _read_line()
    if not answer.endswith("\n"):
        writer.line()
    return answer.strip().lower() in _YES


async def _read_line() -> str:
    """Read one line of the terminal without blocking the event loop; empty at its end."""
    import asyncio  # lazy: 40 ms, and the help of a command asks nothing

    loop = asyncio.get_running_loop()
    ready: asyncio.Future[bytes] = loop.create_future()
    descriptor = sys.stdin.fileno()

    def read() -> None:
        if not ready.done():
            # A terminal gives whole lines.
            ready.set_result(os.read(descriptor, _LONGEST_ANSWER))

    loop.add_reader(descriptor, read)
    try:
        return (await ready).decode(errors="replace")
    finally:
        with contextlib.suppress(OSError, ValueError):
            loop.remove_reader(descriptor)
