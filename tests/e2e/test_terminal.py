"""The program on a real terminal: live progress, colours, and a clean stop."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import PROGRAM

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PATIENCE_S = 60.0


class Terminal:
    """A program whose three streams are a terminal, and what it has drawn."""

    def __init__(self, *arguments: str, env: dict[str, str] | None = None) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [*PROGRAM, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30", **(env or {})},
            start_new_session=True,
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


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    held.append(listener.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in held:
            connection.close()


def test_a_mistyped_verb_is_shown_in_red() -> None:
    terminal = Terminal("tolls")
    assert terminal.finish() == 64
    assert "\x1b[31m" in terminal.drawn


@pytest.mark.parametrize("how", ["--no-color", "NO_COLOR"])
def test_colours_can_be_refused(how: str) -> None:
    terminal = Terminal(*(["--no-color"] if how == "--no-color" else []), "tolls", env={"NO_COLOR": "1"})
    assert terminal.finish() == 64
    assert "\x1b[31m" not in terminal.drawn


def test_long_work_shows_what_it_waits_for_and_stops_cleanly_on_an_interrupt(
    silent_server: str, tmp_path: Path
) -> None:
    env = {"STACKYARD_RELEASES_URL": silent_server, "XDG_CACHE_HOME": str(tmp_path), "PATH": "/nowhere"}
    terminal = Terminal("tools", "install", "tofu", env=env)
    terminal.read_until("Install OpenTofu")
    terminal.read_until(" s")
    terminal.process.send_signal(signal.SIGINT)
    terminal.read_until("Stopping cleanly")
    assert terminal.finish() == 130
    assert "E-INTERRUPTED" in terminal.text
    assert "Traceback" not in terminal.text
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"]
    assert left == []
