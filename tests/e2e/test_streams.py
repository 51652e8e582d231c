"""Standard streams that are closed, full, cut off or not UTF-8: one clear error, never a traceback."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cli import PROGRAM, Ended
from tests.support.cli import fresh as stackyard
from tests.support.programs import LONG_S, write_program

CLOSED = ["<&-", ">&-", "2>&-"]
SOME_CLOSED = [" ".join(some) for count in range(1, 4) for some in itertools.combinations(CLOSED, count)]
NOT_UTF8 = b"\xff\xfe".decode(errors="surrogateescape")


def redirected(redirection: str, *arguments: str) -> Ended:
    """Run the program with its streams as a shell sets them up."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("redirection", SOME_CLOSED)
@pytest.mark.parametrize("arguments", ["--version", "tools list", "tools list --json", "tools list --events"])
def test_a_closed_stream_stops_no_command_and_a_lost_result_is_told(arguments: str, redirection: str) -> None:
    ended = redirected(redirection, *arguments.split())
    is_lost = ">&-" in redirection.split()
    assert ended.status == (1 if is_lost else 0)
    assert bool(ended.stdout) == (not is_lost)
    is_told = "Standard output cannot be written [E-OUTPUT]" in ended.stderr
    assert is_told == (is_lost and "2>&-" not in redirection)


@pytest.mark.parametrize("redirection", SOME_CLOSED)
def test_with_any_stream_closed_a_wrong_usage_is_one(redirection: str) -> None:
    assert redirected(redirection, "tolls").status == 64


def test_a_file_that_we_open_never_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    code = (
        "import os, runpy, sys\n"
        "sys.argv = ['stackyard', '--version']\n"
        "try:\n"
        "    runpy.run_module('stackyard', run_name='__main__')\n"
        "except SystemExit:\n"
        "    os.write(os.open('opened', os.O_CREAT | os.O_WRONLY), b'mine')\n"
        "for stream in range(3):\n"
        "    os.write(stream, b'stray')\n"
    )
    command = ["sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, code]
    done = subprocess.run(command, cwd=tmp_path, timeout=LONG_S, check=False)
    assert done.returncode == 0
    assert (tmp_path / "opened").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("redirection", "status"),
    [(">/dev/full", 1), ("2>/dev/full", 0), (">/dev/full 2>/dev/full", 1), (">/dev/full 2>&-", 1)],
)
@pytest.mark.parametrize("arguments", ["--help", "tools list", "--version --json", "--version --events"])
def test_a_full_disk_behind_a_stream_stops_no_command(arguments: str, redirection: str, status: int) -> None:
    ended = redirected(redirection, *arguments.split())
    assert ended.status == status
    assert ended.stderr.count("[E-OUTPUT]") == (redirection == ">/dev/full")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("lab", "up", "--help"),
        ("completion", "bash"),
        ("--json", "--version"),
        ("--events", "--version"),
        ("tools", "list"),
        ("site", "schema", "env"),
    ],
)
def test_a_reader_that_leaves_ends_a_command_in_silence(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PROGRAM, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=LONG_S, check=False
    )
    os.close(writer)
    assert done.returncode == 141, "as a shell shows it for any program that wrote into a closed pipe"
    assert done.stderr == ""


def test_head_ends_a_long_list_in_silence_whichever_stream_it_reads() -> None:
    for pipe in ("| head -n 1", "2>&1 | head -n 1"):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {pipe}', "sh", *PROGRAM, "site", "schema", "env"],
            capture_output=True,
            text=True,
            timeout=LONG_S,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")


def test_a_command_that_fails_says_so_although_its_reader_left() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PROGRAM, "tolls", "--json"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=LONG_S,
        check=False,
    )
    os.close(writer)
    assert done.returncode == 64


def test_a_reader_that_leaves_does_not_stop_the_work(tmp_path: Path) -> None:
    """The run reports to the end, and what the work leaves behind is there."""
    mark = tmp_path / "mark"
    tofu = write_program(tmp_path / "tofu", f"/bin/sleep 2; echo done > {mark}")
    reader, writer = os.pipe()
    with subprocess.Popen(
        [*PROGRAM, "tools", "list", "--events"],
        env={**os.environ, "STACKYARD_TOFU": str(tofu)},
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        os.close(writer)
        os.read(reader, 10)
        os.close(reader)
        _, said = child.communicate(timeout=LONG_S)
    assert mark.read_text() == "done\n"
    assert child.returncode == 141
    assert said == ""


@pytest.mark.parametrize("how", ["--json", "--events"])
def test_an_argument_that_is_not_utf8_is_quoted_as_valid_json(how: str) -> None:
    ended = stackyard(NOT_UTF8, how)
    document = ended.events[-1]
    assert ended.status == 64
    assert "no command `\ufffd\ufffd`" in document.get("result", document)["error"]["detail"]


def test_an_argument_that_is_not_utf8_is_shown_byte_by_byte() -> None:
    ended = stackyard("--chdir", f"/tmp/{NOT_UTF8}", "--version")
    assert ended.status == 65
    assert "Cannot change to the folder /tmp/\\xff\\xfe: No such file" in ended.stderr


def test_a_path_that_is_not_utf8_in_a_result_is_valid_json() -> None:
    ended = stackyard("tools", "list", "--json", env={"STACKYARD_TOFU": f"/{NOT_UTF8}"})
    assert ended.status == 0
    assert "STACKYARD_TOFU=/\ufffd\ufffd" in ended.document["tools"][0]["reason"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_utf8_gets_what_it_can_show_and_json_loses_nothing(encoding: str) -> None:
    env = {"PYTHONIOENCODING": encoding}
    assert "no command `caf?`" in stackyard("caf\u20ac", env=env).stderr
    error = json.loads(stackyard("caf\u20ac", "--json", env=env).stdout)["error"]
    assert "no command `caf\u20ac`" in error["detail"]


def test_what_a_broken_program_prints_cannot_steer_the_terminal(tmp_path: Path) -> None:
    tofu = write_program(tmp_path / "tofu", r"printf '\033]0;mine\007\033[2J\233\r'")
    ended = stackyard("tools", "list", env={"STACKYARD_TOFU": str(tofu)})
    assert r"\x1b]0;mine\x07\x1b[2J" in ended.stdout
    assert not any(ord(character) < 32 and character != "\n" for character in ended.stdout)
