"""A program on a terminal of its own, and somebody who reads and types there.

`TerminalProcess` is the program and the terminal. `Terminal` reads the text that it draws and types; what the
screen looks like, `tests.support.screen` reads.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.cli import PROGRAM

__all__ = ["CTRL_C", "PATIENCE_S", "Terminal", "TerminalProcess"]

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PATIENCE_S = 60.0
CTRL_C = "\x03"
# What would tell the program of another terminal than its own.
FOREIGN = {"COLUMNS", "LINES", "NO_COLOR"}


class TerminalProcess:
    """A program whose three streams are a terminal of a size, in rows and columns."""

    def __init__(
        self, argv: Sequence[str], *, size: tuple[int, int], env: Mapping[str, str], cwd: Path | None
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        kept = {key: value for key, value in os.environ.items() if key not in FOREIGN}
        self.process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**kept, "TERM": "xterm-256color", **env},
            cwd=cwd,
            start_new_session=True,
            # The terminal of the session, so that a key can interrupt it.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def has_output(self, timeout_s: float) -> bool:
        """Return whether something can be read within a time."""
        return bool(select.select([self._master], [], [], timeout_s)[0])

    def read(self) -> bytes | None:
        """Return what was drawn; None if the program no longer has the terminal."""
        try:
            return os.read(self._master, 65536)
        except OSError:  # Linux says so when nobody holds the terminal any more.
            return None

    def write(self, data: bytes) -> None:
        """Type."""
        os.write(self._master, data)

    def close(self) -> None:
        """Take the terminal away."""
        os.close(self._master)


class Terminal:
    """The text that a command of stackyard has drawn on a terminal, and the keys."""

    def __init__(self, *arguments: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> None:
        self._program = TerminalProcess([*PROGRAM, *arguments], size=(30, 100), env=env or {}, cwd=cwd)
        self.process = self._program.process
        self.drawn = ""

    @property
    def text(self) -> str:
        return ESCAPES.sub("", self.drawn)

    def read_until(self, wanted: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while wanted not in self.text:
            assert time.monotonic() < deadline, f"never drew {wanted!r}: {self.text}"
            if not self._read(1.0):
                break
        assert wanted in self.text, self.text

    def read_while(self, is_waiting: Callable[[], bool]) -> None:
        """Read what is drawn until something has happened that nothing tells of."""
        deadline = time.monotonic() + PATIENCE_S
        while is_waiting():
            assert time.monotonic() < deadline, self.text
            self._read(0.02)

    def press(self, keys: str) -> None:
        self._program.write(keys.encode())

    def finish(self) -> int:
        while self._read(PATIENCE_S):
            pass
        self._program.close()
        return self.process.wait(timeout=PATIENCE_S)

    def _read(self, timeout_s: float) -> bool:
        """Read what is there; return whether the program still has the terminal."""
        if not self._program.has_output(timeout_s):
            return self.process.poll() is None
        data = self._program.read()
        self.drawn += (data or b"").decode(errors="replace")
        return data is not None
