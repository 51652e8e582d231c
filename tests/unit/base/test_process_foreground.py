"""A program that talks to the user runs while we wait, and we survive what is meant for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.programs import write_program

from stackyard.base.process import Command, ProgramMissingError, SecretArgumentError, run_in_foreground
from stackyard.base.redaction import Redactor

ENV = {"PATH": os.environ["PATH"]}


def test_its_exit_status_is_returned(tmp_path: Path) -> None:
    program = write_program(tmp_path / "editor", 'echo "$1" > "$2"; exit 3')
    assert run_in_foreground(Command(argv=(str(program), "text", str(tmp_path / "out")), env=ENV)) == 3
    assert (tmp_path / "out").read_text() == "text\n"


def test_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ProgramMissingError):
        run_in_foreground(Command(argv=("no-such-editor",), env=ENV))


def test_an_argument_that_is_a_secret_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SecretArgumentError):
        run_in_foreground(Command(argv=("true", "hunter2"), env=ENV, redactor=Redactor(["hunter2"])))
    assert list(tmp_path.iterdir()) == []


CALLER = """
import sys
from stackyard.base.errors import InterruptedRunError
from stackyard.base.process import Command, run_in_foreground
try:
    status = run_in_foreground(Command(argv=(sys.argv[1],), env={"PATH": "/usr/bin:/bin"}))
except InterruptedRunError as err:
    print(err.detail)
else:
    print(status)
"""


@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGINT, "0"), (signal.SIGTERM, "Stopped by SIGTERM."), (signal.SIGHUP, "Stopped by SIGHUP.")],
)
def test_keys_are_for_the_program_and_a_request_to_end_is_for_both(
    tmp_path: Path, number: signal.Signals, said: str
) -> None:
    # It signals us, and then ends: by itself, or because the request was passed on to it.
    script = f"kill -{number.name[3:]} $PPID; [ {number.name} = SIGINT ] && exit 0; exec sleep 600"
    program = write_program(tmp_path / "editor", script)
    done = subprocess.run(
        [sys.executable, "-c", CALLER, str(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == f"{said}\n", done.stderr
