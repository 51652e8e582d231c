"""What goes into a program and what comes out: environment, standard input, lines of any shape."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import threading
import time
from pathlib import Path

import pytest
from tests.support.processes import PATIENCE_S, Watched, open_descriptors, shell

from stackyard.base import process
from stackyard.base.process import Command, Completed, ProcessOutputError, Stream, environment


def run_lines(command: Command) -> tuple[list[tuple[Stream, str]], Completed]:
    lines: list[tuple[Stream, str]] = []
    completed = asyncio.run(process.run(command, lambda stream, line: lines.append((stream, line))))
    return lines, completed


def stdout_lines(script: str) -> list[str]:
    lines, completed = run_lines(shell(script))
    assert {stream for stream, _ in lines} <= {Stream.STDOUT}
    assert completed.returncode == 0
    return [line for _, line in lines]


@pytest.mark.parametrize(
    ("printed", "lines"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("one\\n", ["one"], id="one line"),
        pytest.param("one\\ntwo", ["one", "two"], id="no line break at the end"),
        pytest.param("one\\r\\ntwo\\r\\n", ["one", "two"], id="windows line breaks"),
        pytest.param("one\\r", ["one"], id="a carriage return at the end"),
        pytest.param("10%%\\r20%%\\n", ["10%\r20%"], id="carriage returns inside"),
        pytest.param("\\n\\none\\n\\n", ["", "", "one", ""], id="empty lines"),
        pytest.param("caf\\303\\251\\n", ["café"], id="utf-8"),
        pytest.param(
            "a\\377b\\303\\n\\251c", ["a\N{REPLACEMENT CHARACTER}b\ufffd", "\ufffdc"], id="not utf-8"
        ),
        pytest.param("a\\000b\\n", ["a\0b"], id="a NUL"),
        pytest.param("a\\302\\205b\\n", ["a\x85b"], id="a line break that only Unicode knows"),
    ],
)
def test_lines_are_cut_at_line_breaks_alone(printed: str, lines: list[str]) -> None:
    assert stdout_lines(f"printf '{printed}'") == lines


def test_output_is_kept_as_it_is_beside_the_lines() -> None:
    lines, completed = run_lines(shell("printf 'a\\r\\nb'; printf 'c\\nd' >&2"))
    assert (completed.stdout, completed.stderr) == ("a\r\nb", "c\nd")
    assert [line for stream, line in lines if stream is Stream.STDOUT] == ["a", "b"]
    assert [line for stream, line in lines if stream is Stream.STDERR] == ["c", "d"]


def test_a_line_of_many_megabytes_comes_whole() -> None:
    (line,) = stdout_lines("head -c 5000000 /dev/zero | tr '\\0' x")
    assert len(line) == 5_000_000
    assert set(line) == {"x"}


def test_characters_that_fall_on_the_edge_of_a_chunk_stay_whole() -> None:
    # One byte in front, so that no power of two falls between characters; the last character is cut off.
    (line,) = stdout_lines("{ printf a; yes é | tr -d '\\n'; } | head -c 1000002")
    assert line == "a" + "é" * 500_000 + "\ufffd"


def test_many_lines_come_in_order() -> None:
    assert stdout_lines("seq 1 100000") == [str(number) for number in range(1, 100_001)]


def test_lines_come_while_the_program_runs(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    lines = []

    def answer(stream: Stream, line: str) -> None:
        lines.append(line)
        if line == "first":
            # The program waits for this; if lines came at its end only, it would wait forever.
            go.write_text("on\n")

    command = shell(f"echo first; read word < {go}; echo second $word", timeout_s=PATIENCE_S)
    asyncio.run(process.run(command, answer))
    assert lines == ["first", "second on"]


def test_a_slow_reader_of_lines_gets_them_all() -> None:
    lines: list[str] = []

    def slow(stream: Stream, line: str) -> None:
        if line == "1":
            # Longer than a program that has ended gets to close its pipes.
            time.sleep(1.3)
        lines.append(line)

    completed = asyncio.run(process.run(shell("echo 1; echo 2; printf 3"), slow))
    assert lines == ["1", "2", "3"]
    assert not completed.left_processes


def test_a_program_sees_the_environment_it_is_given_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "leaks")
    given = {"ONE": "1", "TWO": "a=b", "UMLAUT": "ü", "EMPTY": "", "LINES_": "a b"}
    completed = asyncio.run(process.run(Command(argv=("env", "-0"), env=given)))
    assert sorted(completed.stdout.strip("\0").split("\0")) == sorted(
        f"{name}={value}" for name, value in given.items()
    )
    assert asyncio.run(process.run(Command(argv=("env",), env={}))).stdout == ""


def test_the_usual_environment_is_the_session_of_the_user_and_what_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("TF_VAR_password", "AWS_SECRET_ACCESS_KEY", "STACKYARD_TOKEN", "LD_PRELOAD_X", "PYTHONPATH"):
        monkeypatch.setenv(name, "leaks")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    inherited = environment()
    assert "leaks" not in inherited.values()
    assert inherited["PATH"] == os.environ["PATH"]
    assert (inherited["LC_ALL"], inherited["SSH_AUTH_SOCK"]) == ("C.UTF-8", "/run/agent")
    assert inherited["XDG_CACHE_HOME"] == os.environ["XDG_CACHE_HOME"]
    assert environment({"LC_ALL": "C", "NEW": "x"}) == inherited | {"LC_ALL": "C", "NEW": "x"}


def test_a_program_is_looked_up_on_the_path_that_it_is_given(tmp_path: Path) -> None:
    program = tmp_path / "greet"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    assert asyncio.run(process.run(Command(argv=("greet",), env={"PATH": str(tmp_path)}))).stdout == "hello\n"
    with pytest.raises(process.ProgramMissingError):
        asyncio.run(process.run(Command(argv=("greet",), env=environment())))


def test_a_program_runs_in_the_folder_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    completed = asyncio.run(process.run(shell("pwd -P", cwd=tmp_path / "here")))
    assert completed.stdout.strip() == str((tmp_path / "here").resolve())


def test_a_program_gets_all_of_a_large_input() -> None:
    data = os.urandom(1000) * 5000
    completed = asyncio.run(process.run(shell("sha256sum", stdin=data, timeout_s=PATIENCE_S)))
    assert completed.stdout.split()[0] == hashlib.sha256(data).hexdigest()


def test_an_empty_input_ends_at_once() -> None:
    assert asyncio.run(process.run(shell("cat; echo end", stdin=b"", timeout_s=PATIENCE_S))).stdout == "end\n"


@pytest.mark.parametrize("script", ["exit 0", "exec 0<&-; sleep 0.2", "head -c 1 >/dev/null"])
def test_a_program_may_leave_its_input_unread(script: str) -> None:
    completed = asyncio.run(process.run(shell(script, stdin=b"x" * 5_000_000, timeout_s=PATIENCE_S)))
    assert completed.returncode == 0


def test_a_program_that_is_given_no_input_has_none() -> None:
    assert asyncio.run(process.run(shell("cat; echo end", timeout_s=PATIENCE_S))).stdout == "end\n"


def test_a_failure_is_a_value_when_it_is_not_checked() -> None:
    command = shell("echo no >&2; exit 3")
    completed = asyncio.run(process.run(command, check=False))
    assert (completed.returncode, completed.stderr, completed.argv) == (3, "no\n", command.argv)
    assert not completed.left_processes
    assert completed.elapsed_s > 0


def test_hundreds_of_programs_run_side_by_side_and_leave_nothing_open() -> None:
    async def scenario() -> list[Completed]:
        return await asyncio.gather(
            *(process.run(shell(f"cat; echo {number} >&2", stdin=b"in" * number)) for number in range(200))
        )

    gc.collect()
    before = open_descriptors()
    done = asyncio.run(scenario())
    gc.collect()
    assert open_descriptors() <= before
    assert [completed.stderr for completed in done] == [f"{number}\n" for number in range(200)]
    assert [completed.stdout for completed in done] == ["in" * number for number in range(200)]
    assert not any(completed.left_processes for completed in done)


def test_a_program_can_be_run_from_any_thread() -> None:
    said: list[str] = []

    def work() -> None:
        said.append(asyncio.run(process.run(shell("echo hello"))).stdout)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE_S)
    assert said == ["hello\n"]


def test_a_process_that_escapes_with_the_pipes_does_not_hold_us_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    # It has its own session, our outputs, and an input that is never read.
    script = (
        "exec 3<&0; setsid sh -c 'echo $$ > ready; exec sleep 1000' <&3 & "
        "read pid < ready; echo $pid; printf unfinished"
    )
    lines: list[str] = []
    gc.collect()
    before = open_descriptors()
    command = shell(script, cwd=tmp_path, stdin=b"x" * 1_000_000)
    completed = asyncio.run(process.run(command, lambda _, line: lines.append(line)))
    gc.collect()
    pid = int(lines[0])
    with Watched(pid) as escaped:
        assert not escaped.has_ended(within_s=0)
        os.kill(pid, 9)
        assert escaped.has_ended()
    assert lines[1:] == ["unfinished"]
    assert completed.left_processes
    assert (completed.returncode, completed.stdout) == (0, f"{pid}\nunfinished")
    assert open_descriptors() <= before


@pytest.mark.parametrize("redirect", ["", ">&2"])
def test_a_program_that_writes_without_end_is_stopped(redirect: str) -> None:
    endless = shell(f"exec yes {redirect}", output_limit_bytes=2**20)
    with pytest.raises(ProcessOutputError) as caught:
        asyncio.run(process.run(endless))
    where = "standard error" if redirect else "standard output"
    assert caught.value.detail.endswith(f"wrote more than 1 MiB to its {where} and was stopped.")


def test_a_program_that_wrote_too_much_may_save_its_work(tmp_path: Path) -> None:
    script = "trap 'echo saved > work; exit 0' INT; while :; do echo 0123456789; done"
    with pytest.raises(ProcessOutputError):
        asyncio.run(process.run(shell(script, cwd=tmp_path, output_limit_bytes=1000, grace_s=PATIENCE_S)))
    assert (tmp_path / "work").read_text() == "saved\n"


def test_too_much_at_the_very_end_is_too_much() -> None:
    with pytest.raises(ProcessOutputError):
        asyncio.run(process.run(shell("printf 12345", output_limit_bytes=4)))
    assert asyncio.run(process.run(shell("printf 1234", output_limit_bytes=4))).stdout == "1234"


def test_output_that_is_not_kept_may_be_endless_as_long_as_it_has_lines() -> None:
    command = shell("seq 20000; printf 1234567", output_limit_bytes=7, keeps_output=False)
    lines, completed = run_lines(command)
    assert [line for _, line in lines] == [*map(str, range(1, 20001)), "1234567"]
    assert completed.stdout == ""
    too_long = shell("seq 3; printf 12345678; exec sleep 1000", output_limit_bytes=7, keeps_output=False)
    with pytest.raises(ProcessOutputError, match="wrote a line of more than"):
        run_lines(too_long)
