"""A program in the background: ready when we return, alive when we are gone, never left behind unready."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.support.processes import PATIENCE_S, Watched, open_descriptors, run_python

from stackyard.base import process
from stackyard.base.errors import FileError
from stackyard.base.redaction import Redactor


def python(source: str, **settings: float) -> process.Command:
    return process.Command(argv=(sys.executable, "-c", source), env=process.environment(), **settings)  # type: ignore[arg-type] # the settings are numbers


def start(command: process.Command, log: Path, ready: str = "ready") -> process.Detached:
    return asyncio.run(process.start_detached(command, log=log, is_ready=lambda line: line.startswith(ready)))


def stop(pid: int) -> int:
    os.killpg(pid, signal.SIGTERM)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


SERVER = "import os, signal, sys; print('hello'); print('ready', os.getpid(), flush=True); signal.pause()"


def test_it_returns_when_the_program_says_ready_and_the_program_goes_on(tmp_path: Path) -> None:
    before = open_descriptors()
    started = start(python(SERVER), tmp_path / "log")
    assert started.line == f"ready {started.pid}"
    assert os.getsid(started.pid) == started.pid
    assert open_descriptors() <= before
    assert stop(started.pid) == -signal.SIGTERM


def test_the_program_outlives_the_one_that_started_it(tmp_path: Path) -> None:
    source = f"""
import asyncio, sys
from pathlib import Path
from stackyard.base import process
command = process.Command(argv=(sys.executable, "-c", {SERVER!r}), env=process.environment())
started = asyncio.run(process.start_detached(
    command, log=Path({str(tmp_path / "log")!r}), is_ready=lambda line: line.startswith("ready")))
print(started.pid)
"""
    pid = int(run_python(source))
    with Watched(pid) as watched:
        os.kill(pid, 0)
        os.kill(pid, signal.SIGTERM)
        assert watched.has_ended()


def test_a_program_that_ends_unready_fails_with_what_it_said(tmp_path: Path) -> None:
    source = "import sys; print('first'); sys.stderr.write('no port'); sys.exit(3)"
    with pytest.raises(process.ProcessFailedError, match="no port") as caught:
        start(python(source), tmp_path / "log")
    assert (caught.value.returncode, caught.value.stdout) == (3, "first")


def test_a_program_that_is_not_ready_in_time_is_ended(tmp_path: Path) -> None:
    # A shell: two seconds may be too short for a Python to be up on a busy machine.
    argv = ("sh", "-c", f"echo $$ > {tmp_path}/pid; echo up; exec sleep 1000")
    command = process.Command(argv=argv, env=process.environment(), timeout_s=2.0)
    with pytest.raises(process.ProcessTimeoutError, match="did not end within 2 s"):
        start(command, tmp_path / "log")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("endless", ["print('up')", "print('up', end='')"], ids=["lines", "one line"])
def test_a_program_that_writes_without_end_and_is_never_ready_is_ended(tmp_path: Path, endless: str) -> None:
    source = f"import os, sys; print(os.getpid(), file=sys.stderr, flush=True)\nwhile True: {endless}"
    with pytest.raises(process.ProcessOutputError, match="wrote more than"):
        start(python(source, output_limit_bytes=10_000), tmp_path / "log")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "log").read_text().split()[0]), 0)


def test_a_cancelled_wait_ends_a_program_that_does_not_listen(tmp_path: Path) -> None:
    source = (
        "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "print(os.getpid(), flush=True); signal.pause()"
    )

    async def scenario() -> int:
        said: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def is_ready(line: str) -> bool:
            said.set_result(line)
            return False

        command = python(source, grace_s=0.1)
        task = asyncio.create_task(process.start_detached(command, log=tmp_path / "log", is_ready=is_ready))
        pid = int(await asyncio.wait_for(said, PATIENCE_S))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, PATIENCE_S)
        return pid

    with pytest.raises(ProcessLookupError):
        os.kill(asyncio.run(scenario()), 0)


def test_the_log_is_private_and_holds_this_run_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of another run")
    log.chmod(0o600)
    source = "import sys; sys.stderr.write('mine'); sys.stderr.flush(); print('ready', flush=True)"
    started = start(python(source), log)
    os.waitpid(started.pid, 0)
    assert log.read_text() == "mine"
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_log_that_cannot_be_written_starts_nothing(tmp_path: Path) -> None:
    before = open_descriptors()
    with pytest.raises(FileError, match="Cannot write"):
        start(python("open('made', 'w')"), tmp_path / "missing" / "log")
    assert open_descriptors() <= before


def test_a_missing_program_and_a_secret_argument_are_refused(tmp_path: Path) -> None:
    with pytest.raises(process.ProgramMissingError, match="`no-such-program` was not found"):
        start(process.Command(argv=("no-such-program",), env=process.environment()), tmp_path / "log")
    secret = process.Command(argv=("echo", "hunter22"), env={}, redactor=Redactor(["hunter22"]))
    with pytest.raises(process.SecretArgumentError, match=r"\*{8}"):
        start(secret, tmp_path / "log")
