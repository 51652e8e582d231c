"""A program on a terminal of its own, and somebody who reads and types there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.cli import PROGRAM

__all__ = ["CTRL_C", "PATIENCE_S", "Terminal"]

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PATIENCE_S = 60.0
CTRL_C = "\x03"


class Terminal:
    """A program whose three streams are a terminal, and what it has drawn."""

    def __init__(self, *arguments: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [*PROGRAM, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30", **(env or {})},
            cwd=cwd,
            start_new_session=True,
            # The terminal of the session, so that a key can interrupt it.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
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
        os.write(self._master, keys.encode())

    def finish(self) -> int:
        while self._read(PATIENCE_S):
            pass
        os.close(self._master)
        return self.process.wait(timeout=PATIENCE_S)

    def _read(self, timeout_s: float) -> bool:
        """Read what is there; return whether the program still has the terminal."""
        ready, _, _ = select.select([self._master], [], [], timeout_s)
        if not ready:
            return self.process.poll() is None
        try:
            self.drawn += os.read(self._master, 65536).decode(errors="replace")
        except OSError:
            return False
        return True
