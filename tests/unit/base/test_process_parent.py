"""What a program inherits from us, and what becomes of it when we end: a real Python process runs it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.processes import PATIENCE_S, Watched, run_python, shell

from stackyard.base import process
from stackyard.base.errors import StackyardError

WORK = "while :; do sleep 0.02; done"
RUN = """
import asyncio, os, signal, sys
from stackyard.base import process

def said(stream, line):
    print(line, flush=True)

async def main():
    {body}

def command(script, **settings):
    return process.Command(argv=("sh", "-c", script), env=process.environment(), **settings)

asyncio.run(main())
"""


def script(body: str) -> str:
    return RUN.replace("{body}", body).replace("{work}", WORK)


@contextlib.contextmanager
def running(program: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a process of ours that runs this shell script, and give it and the first line that it says."""
    source = script(f"await process.run(command({program!r}), said)")
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None
            yield parent, parent.stdout.readline().strip()
        finally:
            parent.kill()


only_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells a process of its parent's death"
)


@only_linux
def test_the_program_ends_when_we_are_killed() -> None:
    with running("echo $$; exec sleep 1000") as (parent, pid), Watched(int(pid)) as program:
        assert not program.has_ended(within_s=0)
        parent.kill()
        assert program.has_ended()


@only_linux
def test_the_program_may_save_its_work_when_we_are_killed(tmp_path: Path) -> None:
    program = f"trap 'sleep 0.2; echo saved > {tmp_path}/work; exit' TERM; echo $$; {WORK}"
    with running(program) as (parent, pid), Watched(int(pid)) as watched:
        parent.kill()
        assert watched.has_ended()
    assert (tmp_path / "work").read_text() == "saved\n"


MANY = """
    with process.watch_ends():
        script = "trap 'echo stopping; echo saved >> {place}; exit' TERM; echo $$; {work}"
        await asyncio.gather(*(process.run(command(script), said) for _ in range(3)))
"""


@only_linux
def test_every_program_of_a_watched_block_may_save_its_work_when_we_are_killed(tmp_path: Path) -> None:
    source = script(MANY.replace("{place}", str(tmp_path / "work")))
    with (
        subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as parent,
        contextlib.ExitStack() as stack,
    ):
        assert parent.stdout is not None
        watched = [stack.enter_context(Watched(int(parent.stdout.readline()))) for _ in range(3)]
        assert not any(one.has_ended(within_s=0) for one in watched)
        parent.kill()
        assert all(one.has_ended() for one in watched)
    assert (tmp_path / "work").read_text() == "saved\n" * 3


def test_a_watched_block_leaves_no_process_and_starts_nothing_but_the_program() -> None:
    body = """
    with process.watch_ends():
        done = await process.run(command("tr '\\\\0' ' ' < /proc/$PPID/cmdline"))
    print(done.stdout)
    with open(f"/proc/self/task/{os.getpid()}/children") as children:
        print(children.read())
"""
    said = run_python(script(body))
    assert "launcher" not in said
    assert said.endswith("\n\n")


def test_watched_blocks_that_overlap_end_no_program_of_each_other() -> None:
    async def one(script: str) -> int:
        with process.watch_ends():
            return (await process.run(shell(script), check=False)).returncode

    async def both(folder: str) -> list[int]:
        # The first ends while the second, which began later, still works.
        short = asyncio.create_task(one(f"until [ -e {folder}/began ]; do sleep 0.01; done"))
        await asyncio.sleep(0)
        return list(await asyncio.gather(short, one(f"touch {folder}/began; sleep 0.3; exit 7")))

    with tempfile.TemporaryDirectory() as folder:
        assert asyncio.run(both(folder)) == [0, 7]


def test_what_a_task_without_a_block_starts_outlives_the_block_of_another() -> None:
    async def watched(folder: str) -> None:
        with process.watch_ends():
            await process.run(shell(f"until [ -e {folder}/began ]; do sleep 0.01; done"))

    async def both(folder: str) -> int:
        other = asyncio.create_task(watched(folder))
        await asyncio.sleep(0)
        ended = await process.run(shell(f"touch {folder}/began; sleep 0.3; exit 7"), check=False)
        await other
        return ended.returncode

    with tempfile.TemporaryDirectory() as folder:
        assert asyncio.run(both(folder)) == 7


@pytest.mark.parametrize("argv", [("stackyard-no-such-program",), ("/etc/passwd",), ("true",)])
def test_a_program_that_cannot_be_started_in_a_watched_block_is_an_error(
    argv: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "gone" if argv == ("true",) else None
    command = process.Command(argv=argv, env=process.environment(), cwd=folder)
    with process.watch_ends(), pytest.raises(StackyardError) as caught:
        asyncio.run(process.run(command))
    assert argv[0] in caught.value.detail


def test_an_interrupt_of_ours_reaches_the_program_and_we_wait_for_it() -> None:
    with running(f"trap 'sleep 0.2; echo saved; exit' INT; echo ready; {WORK}") as (parent, said):
        assert said == "ready"
        parent.send_signal(signal.SIGINT)
        # Python tells of the interrupt itself; what counts is that the program came to its end first.
        rest, _ = parent.communicate(timeout=PATIENCE_S)
    assert rest == "saved\n"


INTERRUPT_WHEN_READY = """
    ready = asyncio.Event()

    def heard(stream, line):
        print(line, flush=True)
        ready.set()

    script = "trap 'echo saved; exit' INT; echo ready; {work}"
    task = asyncio.create_task(process.run(command(script, grace_s=600), heard))
    await ready.wait()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled")
"""


@pytest.mark.parametrize(
    "deaf",
    [
        "signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})",
    ],
    ids=["ignored", "blocked"],
)
def test_a_program_can_be_interrupted_although_we_were_started_deaf(deaf: str) -> None:
    # A shell cannot trap a signal that was ignored when it started: without help it would never hear it.
    source = script(INTERRUPT_WHEN_READY).replace("asyncio.run(main())", f"{deaf}\nasyncio.run(main())")
    assert run_python(source).splitlines() == ["ready", "saved", "cancelled"]


def test_a_watched_block_does_not_make_programs_deaf() -> None:
    source = (
        script(INTERRUPT_WHEN_READY)
        .replace("process.run(", "within(")
        .replace(
            "asyncio.run(main())",
            "async def within(*given, **more):\n"
            "    with process.watch_ends():\n        return await process.run(*given, **more)\n"
            "signal.signal(signal.SIGINT, signal.SIG_IGN)\nasyncio.run(main())",
        )
    )
    assert run_python(source).splitlines() == ["ready", "saved", "cancelled"]


def test_a_program_can_be_terminated_although_we_ignore_that() -> None:
    source = script("await process.run(command('kill -TERM $$; echo survived'), said, check=False)")
    deaf = source.replace(
        "asyncio.run(main())", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nasyncio.run(main())"
    )
    assert run_python(deaf) == ""


ON_A_TERMINAL = script(
    """
    completed = await process.run(
        command("cat; (read word </dev/tty) 2>/dev/null && echo asked || echo no terminal", timeout_s=30)
    )
    print(completed.stdout, end="")
"""
).replace(
    "asyncio.run(main())", "os.open(sys.argv[1], os.O_RDWR)\nopen('/dev/tty').close()\nasyncio.run(main())"
)


def test_a_program_cannot_ask_the_terminal() -> None:
    ours, theirs = os.openpty()
    try:
        # The first terminal that the leader of a session opens is its own.
        done = subprocess.run(
            [sys.executable, "-c", ON_A_TERMINAL, os.ttyname(theirs)],
            start_new_session=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert (done.stdout, done.stderr) == ("no terminal\n", "")


def test_a_program_leads_a_group_and_session_of_its_own() -> None:
    show = "import os; print(os.getpid(), os.getpgid(0), os.getsid(0))"
    command = process.Command(argv=(sys.executable, "-c", show), env=process.environment())
    pid, group, session = asyncio.run(process.run(command)).stdout.split()
    assert pid == group == session
    assert int(group) != os.getpgid(0)


def test_a_program_inherits_no_open_file() -> None:
    readable, writable = os.pipe()
    try:
        os.set_inheritable(writable, True)
        held = asyncio.run(process.run(shell("ls /proc/self/fd"))).stdout.split()
    finally:
        os.close(readable)
        os.close(writable)
    # The fourth is the folder that is being listed.
    assert held == ["0", "1", "2", "3"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not stop its program")
def test_a_program_that_we_may_not_stop_is_told() -> None:
    body = """
    def drop(stream, line):
        print(line, flush=True)
        os.setuid(65534)

    try:
        await process.run(command("trap '' INT; echo $$; exec sleep 1000", timeout_s=2, grace_s=0.1), drop)
    except process.ProcessUnstoppableError as err:
        print(err.detail)
"""
    pid, told = run_python(script(body)).splitlines()
    with Watched(int(pid)) as program:
        assert told.endswith(f"(process {pid}) still runs: the system does not let us stop it.")
        assert not program.has_ended(within_s=0)
        os.kill(int(pid), signal.SIGKILL)
        assert program.has_ended()


def test_a_program_has_exactly_the_environment_and_the_signals_that_it_is_given() -> None:
    """Python adds a locale to its own environment and ignores two signals; none of that is inherited."""
    show = "tr '\\0' '\\n' </proc/self/environ; grep -E '^Sig(Ign|Blk)' /proc/self/status"
    command = process.Command(
        argv=("sh", "-c", f"exec cat <<END\n$({show})\nEND"), env={"PATH": os.environ["PATH"]}
    )
    shown = asyncio.run(process.run(command)).stdout
    assert "LC_" not in shown
    masks = re.findall(r"Sig(?:Ign|Blk):\t([0-9a-f]+)", shown)
    assert len(masks) == 2
    for mask in masks:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
            assert not int(mask, 16) >> (number - 1) & 1
