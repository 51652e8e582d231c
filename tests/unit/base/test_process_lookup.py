"""Programs are looked up on PATH as a shell does it, whatever else is in its folders."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.support.processes import DROP_PRIVILEGES, folder_for_anybody, run_python

from stackyard.base import process
from stackyard.base.process import Command, ProgramMissingError, ProgramUnusableError

WAYS = f"""
import asyncio, os, sys
from pathlib import Path
from stackyard.base import process
from stackyard.base.errors import StackyardError
{DROP_PRIVILEGES}
folder = Path(sys.argv[1])
path = f"{{folder / 'closed'}}{{os.pathsep}}{{os.environ['PATH']}}"

def command(*argv):
    return process.Command(argv=argv, env={{"PATH": path}})

async def attach(started):
    await process.start_attached(started).end()

def detach(started):
    return process.start_detached(started, log=folder / "log", is_ready=bool)

for argv in (("no-such-program-anywhere",), ("plain",), ("true", "x" * 200_000)):
    for start in (process.run, attach, detach, process.run_in_foreground, process.replace_process):
        try:
            started = start(command(*argv))
            if asyncio.iscoroutine(started):
                asyncio.run(started)
        except StackyardError as err:
            print(err.code, err.detail)
print(asyncio.run(process.run(command("sh", "-c", "echo found"))).stdout, end="")
"""


def test_a_folder_of_path_that_may_not_be_read_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with folder_for_anybody() as folder:
        for name in ("closed", "open"):
            (folder / name).mkdir(mode=0o755)
        (folder / "open" / "plain").touch(mode=0o644)
        (folder / "closed").chmod(0o000)
        monkeypatch.setenv("PATH", f"{folder / 'open'}{os.pathsep}{os.environ['PATH']}")
        said = run_python(WAYS, str(folder))
        (folder / "closed").chmod(0o700)
    assert said.splitlines() == [
        *["E-PROGRAM-MISSING `no-such-program-anywhere` was not found."] * 5,
        *["E-PROGRAM-UNUSABLE `plain` cannot be started: Permission denied."] * 5,
        *["E-PROGRAM-UNUSABLE `true` cannot be started: Argument list too long."] * 5,
        "found",
    ]


def test_a_bare_name_is_never_a_program_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "greet"
    program.write_text("#!/bin/sh\necho ready\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    command = Command(argv=("greet",), env={"PATH": "/usr/bin"})

    async def start() -> None:
        await process.start_detached(command, log=tmp_path / "log", is_ready=bool)

    with pytest.raises(ProgramMissingError):
        asyncio.run(start())


def test_a_relative_folder_of_path_is_meant_from_where_we_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bin", "elsewhere"):
        (tmp_path / name).mkdir()
    program = tmp_path / "bin" / "greet"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    command = Command(argv=("greet",), env={"PATH": "bin"}, cwd=tmp_path / "elsewhere")
    assert asyncio.run(process.run(command)).stdout == "hello\n"


@pytest.mark.parametrize("name", ["folder", "link"])
def test_what_is_no_file_is_no_program_of_path(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(ProgramMissingError):
        asyncio.run(process.run(Command(argv=(name,), env={"PATH": str(tmp_path)})))


def test_a_program_of_path_that_may_not_be_executed_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "tofu").touch(mode=0o644)
    with pytest.raises(ProgramUnusableError, match="Permission denied"):
        asyncio.run(process.run(Command(argv=("tofu",), env={"PATH": str(tmp_path)})))
