"""The program on a real terminal: live progress, colours, and a clean stop."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.programs import HANGS, write_program
from tests.support.terminal import CTRL_C, Terminal

SHOW_CURSOR = "\x1b[?25h"


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


@pytest.mark.parametrize("how", ["--no-color", "NO_COLOR", "TERM"])
@pytest.mark.parametrize("arguments", ["tolls", "tools list"])
def test_colours_can_be_refused(how: str, arguments: str) -> None:
    env = {"--no-color": {}, "NO_COLOR": {"NO_COLOR": "1"}, "TERM": {"TERM": "dumb"}}[how]
    terminal = Terminal(*(["--no-color"] if how == "--no-color" else []), *arguments.split(), env=env)
    assert terminal.finish() in (0, 64)
    assert "\x1b" not in terminal.drawn


def test_a_terminal_that_can_only_type_gets_plain_lines(tmp_path: Path) -> None:
    tofu = write_program(tmp_path / "tofu", HANGS)
    terminal = Terminal("tools", "list", env={"TERM": "dumb", "STACKYARD_TOFU": str(tofu)})
    terminal.read_until("waiting for tofu")
    terminal.press(CTRL_C)
    assert terminal.finish() == 130
    assert "Ask each program for its version ..." in terminal.drawn
    assert "\x1b" not in terminal.drawn


@pytest.mark.parametrize("columns", [1, 40, 80, 120])
def test_a_table_keeps_every_word_whatever_the_width_of_the_terminal(columns: int, tmp_path: Path) -> None:
    words = ("ansible-playbook", "missing", "health", "version", "images", "Packer")
    terminal = Terminal("tools", "list", env={"COLUMNS": str(columns), "PATH": str(tmp_path)})
    assert terminal.finish() == 0
    assert [word for word in words if word not in terminal.text] == []
    if columns >= 80:
        assert max(map(len, terminal.text.splitlines())) <= columns


def test_a_terminal_without_utf8_is_drawn_on_in_ascii(tmp_path: Path) -> None:
    tofu = write_program(tmp_path / "tofu", HANGS)
    terminal = Terminal("tools", "list", env={"PYTHONIOENCODING": "ascii", "STACKYARD_TOFU": str(tofu)})
    terminal.read_until("waiting for tofu")
    terminal.press(CTRL_C)
    assert terminal.finish() == 130
    assert terminal.drawn.isascii()
    assert "?" not in terminal.text


def test_long_work_shows_what_it_waits_for_and_stops_cleanly_on_an_interrupt(
    silent_server: str, tmp_path: Path
) -> None:
    env = {"STACKYARD_RELEASES_URL": silent_server, "XDG_CACHE_HOME": str(tmp_path), "PATH": "/nowhere"}
    terminal = Terminal("tools", "install", "tofu", env=env)
    terminal.read_until("Install OpenTofu")
    terminal.read_until("waiting for an answer from 127.0.0.1")
    terminal.read_until(" s")
    terminal.press(CTRL_C)
    terminal.read_until("Stopping cleanly")
    assert terminal.finish() == 130
    assert "Stopped cleanly by SIGINT." in terminal.text
    assert "E-INTERRUPTED" in terminal.text
    assert "Traceback" not in terminal.text
    assert SHOW_CURSOR in terminal.drawn
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"]
    assert left == []


def test_the_second_interrupt_stops_at_once_and_leaves_nothing_running_or_behind(tmp_path: Path) -> None:
    programs, cache, pid = tmp_path / "bin", tmp_path / "cache", tmp_path / "pid"
    # A compiler that answers to nothing but a kill, and would be given ten seconds to stop.
    script = f'[ "$1" = env ] && echo go1.26.6 && exit; trap "" INT TERM; echo $$ > {pid}; {HANGS}'
    write_program(programs / "go", script)
    env = {
        "STACKYARD_RELEASES_URL": "http://127.0.0.1:1",
        "XDG_CACHE_HOME": str(cache),
        "PATH": str(programs),
    }
    terminal = Terminal("tools", "install", "tofu", env=env)
    terminal.read_until("waiting for its modules")
    # That is said before the compiler is started; from here on it does not listen.
    terminal.read_while(lambda: not pid.exists() or not pid.read_text())
    terminal.press(CTRL_C)
    terminal.read_until("Stopping cleanly")
    terminal.press(CTRL_C)
    assert terminal.finish() == 130
    assert "Stopped at once by SIGINT." in terminal.text
    assert SHOW_CURSOR in terminal.drawn
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert [path.name for path in cache.rglob("*") if path.is_file()] == [".lock"]
