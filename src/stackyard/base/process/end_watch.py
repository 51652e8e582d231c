"""One process that ends many programs with us, in place of a launcher for each.

The launcher is a start of Python for each program, which is nothing beside an OpenTofu and too much beside
a thousand short programs. In a block of `watch_ends` programs are started directly, and a descriptor of each
is given to one small process, which asks them to stop if we are killed, and reads what they still write: with
a launcher they would be killed by their first line, before they have saved their work.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["EndWatch", "find_watch", "watch_ends"]

# Beside this file and in its form: on an inner host there is bytecode in place of sources.
_WATCHER = str(Path(__file__).with_name(f"watcher{Path(__file__).suffix}"))
# A watcher that takes nothing for so long is stopped or dead.
_PATIENCE_S = 5.0
_NEEDED = (signal.SIGINT, signal.SIGTERM)

_current: EndWatch | None = None
_blocks = 0
# Whether this task is in a block. What another task starts meanwhile may outlive that block.
_is_inside: contextvars.ContextVar[bool] = contextvars.ContextVar("is_inside", default=False)


class EndWatch:
    """The process that watches."""

    def __init__(self) -> None:
        self._link, theirs = socket.socketpair()
        self._link.settimeout(_PATIENCE_S)
        with theirs:
            self._process = subprocess.Popen(
                (sys.executable, "-I", "-S", _WATCHER, str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Ctrl-C is for us: it must live until we have ended.
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )

    def add(self, pid: int, pipes: Sequence[int]) -> bool:
        """Watch a program that was just started; return whether that is so.

        Args:
            pid: The program.
            pipes: Our ends of what it writes to, which are read on when we have been killed.
        """
        try:
            number = os.pidfd_open(pid)
        except OSError:
            return False
        try:
            socket.send_fds(self._link, [b"+"], [number, *pipes])
        except OSError:
            return False
        finally:
            os.close(number)
        return True

    def close(self) -> None:
        """End it; what it still watches is asked to stop."""
        self._link.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def find_watch() -> EndWatch | None:
    """Return the process that watches now, if one does and a program may be started without a launcher."""
    return _current if _current is not None and _is_inside.get() and _are_signals_heard() else None


@contextlib.contextmanager
def watch_ends() -> Iterator[None]:
    """Have the programs that are started in the block end with us without a launcher for each.

    Blocks that overlap share the process: it ends with the last of them.
    """
    global _current, _blocks
    if _current is None and sys.platform == "linux" and os.access(sys.executable, os.X_OK):
        # Without it each program has its launcher.
        with contextlib.suppress(OSError):
            _current = EndWatch()
    _blocks += 1
    before = _is_inside.get()
    _is_inside.set(True)
    try:
        yield
    finally:
        _is_inside.set(before)
        _blocks -= 1
        if _blocks == 0 and _current is not None:
            _current.close()
            _current = None


def _are_signals_heard() -> bool:
    """Return whether a program hears the signals that stop it: what we ignore or block, it would too."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return not any(signal.getsignal(one) is signal.SIG_IGN or one in blocked for one in _NEEDED)
