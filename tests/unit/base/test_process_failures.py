"""Programs that cannot be started or fail: one clear error each, and no secret in any of them."""

from __future__ import annotations

import asyncio
import json
import shlex
import traceback
import urllib.parse
from pathlib import Path

import pytest
from tests.support.processes import DROP_PRIVILEGES, folder_for_anybody, run_python, shell

from stackyard.base import process
from stackyard.base.diagnostics import describe
from stackyard.base.errors import FileError, StackyardError
from stackyard.base.process import (
    Command,
    ProcessFailedError,
    ProcessTimeoutError,
    ProgramMissingError,
    ProgramUnusableError,
    SecretArgumentError,
    environment,
)
from stackyard.base.redaction import MASK, Redactor


def refused(command: Command) -> StackyardError:
    with pytest.raises(StackyardError) as caught:
        asyncio.run(process.run(command))
    return caught.value


def starting(*argv: str, cwd: Path | None = None) -> Command:
    return Command(argv=argv, env=environment(), cwd=cwd)


@pytest.mark.parametrize("program", ["no-such-program-anywhere", "/no/such/program", "./missing"])
def test_a_program_that_is_not_there_is_missing(program: str, tmp_path: Path) -> None:
    err = refused(starting(program, cwd=tmp_path))
    assert isinstance(err, ProgramMissingError)
    assert err.detail == f"`{program}` was not found."
    assert "stackyard tools list" in err.remedy


def executable(path: Path, data: bytes, mode: int = 0o755) -> str:
    path.write_bytes(data)
    path.chmod(mode)
    return str(path)


def test_a_folder_is_no_program(tmp_path: Path) -> None:
    err = refused(starting(str(tmp_path)))
    assert isinstance(err, ProgramUnusableError)
    assert err.detail == f"`{tmp_path}` cannot be started: Permission denied."


def test_a_file_that_may_not_be_executed_is_no_program(tmp_path: Path) -> None:
    program = executable(tmp_path / "tofu", b"#!/bin/sh\n", mode=0o644)
    err = refused(starting(program))
    assert isinstance(err, ProgramUnusableError)
    assert err.detail == f"`{program}` cannot be started: Permission denied."


@pytest.mark.parametrize("data", [b"just text", b"\x7fELF and then nothing", b"MZ\x90\x00", b""])
def test_a_file_in_the_wrong_format_is_no_program(data: bytes, tmp_path: Path) -> None:
    program = executable(tmp_path / "tofu", data)
    err = refused(starting(program))
    assert isinstance(err, ProgramUnusableError)
    assert err.detail == f"`{program}` cannot be started: Exec format error."
    assert err.remedy == "Check that the file is an executable for this machine."


@pytest.mark.parametrize("is_found_on_path", [True, False])
def test_a_script_whose_interpreter_is_missing_is_not_called_missing(
    is_found_on_path: bool, tmp_path: Path
) -> None:
    executable(tmp_path / "tofu", b"#!/no/such/interpreter\n")
    if is_found_on_path:
        command = Command(argv=("tofu",), env={"PATH": str(tmp_path)})
    else:
        command = starting("./tofu", cwd=tmp_path)
    err = refused(command)
    assert isinstance(err, ProgramUnusableError)
    assert err.detail.startswith(
        f"`{command.argv[0]}` cannot be started: the interpreter that its first line names"
    )


def test_a_command_line_that_is_too_long_is_refused() -> None:
    err = refused(starting("true", "x" * 10_000_000))
    assert isinstance(err, ProgramUnusableError)
    assert err.detail == "`true` cannot be started: Argument list too long."


@pytest.mark.parametrize(
    "command",
    [
        Command(argv=("true", "a\0b"), env={}),
        Command(argv=("true",), env={"A": "a\0b"}),
        Command(argv=("true",), env={"A=B": "c"}),
        Command(argv=("true", "\ud800"), env={}),
    ],
    ids=["NUL in an argument", "NUL in a variable", "= in a name", "half a surrogate pair"],
)
def test_what_no_program_can_be_given_is_refused(command: Command) -> None:
    err = refused(command)
    assert isinstance(err, ProgramUnusableError)
    assert err.detail.startswith("`true` cannot be started: ")
    assert err.remedy == "Correct what it is given."


@pytest.mark.parametrize(
    ("name", "reason"), [("missing", "No such file or directory"), ("file", "Not a directory")]
)
def test_a_folder_to_run_in_that_is_none_is_one_clear_error(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    err = refused(starting("true", "a b", cwd=tmp_path / name))
    assert isinstance(err, FileError)
    assert err.detail == f"Cannot run `true 'a b'` in {tmp_path / name}: {reason}."
    assert str(err.where) == str(tmp_path / name)


WITHOUT_PERMISSION = f"""
import asyncio, os, sys
from pathlib import Path
from stackyard.base import process
from stackyard.base.errors import StackyardError
{DROP_PRIVILEGES}
folder = Path(sys.argv[1])
for argv, cwd in [
    (("true",), folder / "closed"),
    (("true",), folder / "closed" / "below"),
    ((str(folder / "closed" / "program"),), None),
]:
    try:
        asyncio.run(process.run(process.Command(argv=argv, env={{}}, cwd=cwd)))
    except StackyardError as err:
        print(err.code, err.detail.replace(str(folder), ""))
"""


def test_a_folder_without_permission_is_one_clear_error() -> None:
    with folder_for_anybody() as folder:
        (folder / "closed" / "below").mkdir(parents=True)
        executable(folder / "closed" / "program", b"#!/bin/sh\n")
        (folder / "closed").chmod(0o000)
        said = run_python(WITHOUT_PERMISSION, str(folder))
        (folder / "closed").chmod(0o700)
    assert said.splitlines() == [
        "E-FILE Cannot run `true` in /closed: Permission denied.",
        "E-FILE Cannot run `true` in /closed/below: Permission denied.",
        "E-PROGRAM-UNUSABLE `/closed/program` cannot be started: Permission denied.",
    ]


USED_UP = """
import asyncio, os, resource
from stackyard.base import process

async def scenario():
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, lowest + 1))
    try:
        await process.run(process.Command(argv=("true",), env={}))
    except process.ProgramUnusableError as err:
        print(err.detail, err.remedy)

asyncio.run(scenario())
"""


def test_when_too_much_is_open_the_error_says_so() -> None:
    said = run_python(USED_UP)
    assert said.startswith("`true` cannot be started: Too many open files.")
    assert "run fewer things at once" in said


def test_a_failure_quotes_the_end_of_what_the_program_said() -> None:
    err = refused(shell("seq 1 5000 >&2; echo out; exit 7"))
    assert isinstance(err, ProcessFailedError)
    first, *quoted = err.detail.splitlines()
    assert first == "`sh -c 'seq 1 5000 >&2; echo out; exit 7'` ended with status 7."
    assert (quoted[-1], err.returncode) == ("5000", 7)
    assert len(err.detail) < 4200
    assert err.stderr.startswith("1\n2\n")
    assert err.stdout == "out\n"


def test_a_failure_quotes_standard_output_when_there_is_nothing_else() -> None:
    assert refused(shell("echo sorry; exit 1")).detail.endswith("ended with status 1.\nsorry")
    assert refused(shell("exit 1")).detail.endswith("ended with status 1. It said nothing.")


SECRET = "pa'ss/w\"ord <&> ümläut"
KEY = "-----BEGIN KEY-----\nZmlyc3QgbGluZQ==\nc2Vjb25kIGxpbmU=\n-----END KEY-----\n"
LEAKS = (
    SECRET,
    urllib.parse.quote(SECRET, safe=""),
    json.dumps(SECRET)[1:-1],
    "Zmlyc3QgbGluZQ==",
    "c2Vjb25kIGxpbmU=",
    urllib.parse.quote("c2Vjb25kIGxpbmU=", safe=""),
)
# What a careless program does with a secret in its environment.
PRINT_SECRETS = 'cat; printf "%s\\n" "$TOKEN" "$KEY"; cat <<END >&2\nfailed with $TOKEN and $KEY\nEND\n'


def everything_in(err: StackyardError) -> str:
    chain = "".join(traceback.format_exception(err))
    return "\n".join([str(err), repr(err), repr(vars(err)), json.dumps(describe(err)), repr(err.args), chain])


def careless(script: str, timeout_s: float | None = None) -> Command:
    return Command(
        argv=("sh", "-c", PRINT_SECRETS + script),
        env=environment({"TOKEN": SECRET, "KEY": KEY}),
        stdin="\n".join(LEAKS).encode(),
        timeout_s=timeout_s,
        redactor=Redactor([SECRET, KEY]),
    )


def test_a_failure_holds_no_secret_anywhere() -> None:
    err = refused(careless("exit 1"))
    assert isinstance(err, ProcessFailedError)
    assert err.stderr == f"failed with {MASK} and {MASK}\n\n"
    assert MASK in err.stdout
    assert [leak for leak in LEAKS if leak in everything_in(err)] == []


def test_a_timeout_holds_no_secret_anywhere() -> None:
    err = refused(careless("exec sleep 1000", timeout_s=2))
    assert isinstance(err, ProcessTimeoutError)
    assert err.stderr == f"failed with {MASK} and {MASK}\n\n"
    assert [leak for leak in LEAKS if leak in everything_in(err)] == []


def test_a_secret_at_the_edge_of_what_is_quoted_is_not_cut_in_half() -> None:
    command = Command(
        argv=("sh", "-c", 'printf %s "$TOKEN"; head -c 3990 /dev/zero | tr "\\0" x; exit 1'),
        env=environment({"TOKEN": "hunter2-" * 4}),
        redactor=Redactor(["hunter2-" * 4]),
    )
    assert "hunter2" not in everything_in(refused(command))


@pytest.mark.parametrize(
    "argument",
    [
        SECRET,
        f"--password={SECRET}",
        urllib.parse.quote(SECRET, safe=""),
        json.dumps({"password": SECRET}),
        shlex.quote(SECRET),
        "Zmlyc3QgbGluZQ==",
        KEY,
    ],
)
def test_a_secret_never_gets_onto_a_command_line(argument: str, tmp_path: Path) -> None:
    command = Command(
        argv=("touch", str(tmp_path / "ran"), argument), env=environment(), redactor=Redactor([SECRET, KEY])
    )
    err = refused(command)
    assert isinstance(err, SecretArgumentError)
    assert err.detail.startswith("`touch ")
    assert MASK in err.detail
    assert [leak for leak in LEAKS if leak in everything_in(err)] == []
    assert list(tmp_path.iterdir()) == []


def test_a_command_and_its_result_show_no_secret_when_they_are_printed() -> None:
    command = Command(
        argv=("sh", "-c", PRINT_SECRETS),
        env=environment({"TOKEN": SECRET, "KEY": KEY}),
        stdin=SECRET.encode(),
        redactor=Redactor([SECRET, KEY]),
    )
    completed = asyncio.run(process.run(command))
    assert SECRET in completed.stdout
    shown = f"{command} {command.shown} {completed}"
    assert [leak for leak in ("pa'ss", 'w"ord', 'w\\"ord', *LEAKS) if leak in shown] == []


def test_a_command_is_shown_as_a_user_would_type_it() -> None:
    assert starting("tofu", "plan", "-out", "a plan").shown == "tofu plan -out 'a plan'"
