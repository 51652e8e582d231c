"""How a program is stopped: asked first, killed after a grace period, and nothing of it goes on."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from tests.support.processes import PATIENCE_S, Watched, open_descriptors, shell

from stackyard.base import process
from stackyard.base.process import Command, ProcessFailedError, ProcessTimeoutError, Stream, environment

# Enough for a shell to be up and have set its traps, on a busy machine too.
STARTED_S = 2.0
# Never waited for.
LONG_GRACE_S = 600.0
# Short pieces: an interrupt that a shell hands to a command just when it starts it is lost (dash 0.5.12).
WORK = "while :; do sleep 0.02; done"


class Reader:
    """Keeps lines, and can wait for one."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._changed = asyncio.Event()

    def __call__(self, stream: Stream, line: str) -> None:
        self.lines.append(line)
        self._changed.set()

    async def wait_for(self, wanted: str) -> None:
        while wanted not in self.lines:
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), PATIENCE_S)

    def watched(self) -> Watched:
        """Return the process whose number was printed first."""
        return Watched(int(self.lines[0]))


def fail_at_once(stream: Stream, line: str) -> NoReturn:
    raise ZeroDivisionError(line)


def cancel_after(command: Command, *moments: str) -> list[str]:
    """Run a program, request its stop once for each of these lines as it comes, and return all lines."""

    async def scenario() -> list[str]:
        reader = Reader()
        task = asyncio.create_task(process.run(command, reader))
        for moment in moments:
            await reader.wait_for(moment)
            task.cancel()
            # Two requests in the same turn of the loop would be one.
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, PATIENCE_S)
        return reader.lines

    return asyncio.run(scenario())


def timed_out(command: Command) -> ProcessTimeoutError:
    with pytest.raises(ProcessTimeoutError) as caught:
        asyncio.run(process.run(command))
    return caught.value


def test_a_program_out_of_time_is_interrupted_and_may_finish_its_work() -> None:
    script = f"trap 'sleep 0.3; echo saved; exit 0' INT; echo working; {WORK}"
    err = timed_out(shell(script, timeout_s=STARTED_S, grace_s=LONG_GRACE_S))
    assert err.stdout == "working\nsaved\n"
    assert "did not end within 2 s and was stopped." in err.detail
    assert err.detail.endswith("\nworking\nsaved")


def test_a_program_that_goes_on_after_the_interrupt_is_killed_when_the_grace_is_over() -> None:
    script = f"trap 'echo interrupted' INT; echo $$; {WORK}"
    # Time for the shell to hear of it, on a busy machine too.
    err = timed_out(shell(script, timeout_s=STARTED_S, grace_s=1.5))
    pid, interrupted = err.stdout.split()
    assert interrupted == "interrupted"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_a_program_that_ignores_the_interrupt_is_killed_when_the_grace_is_over() -> None:
    err = timed_out(shell(f"trap '' INT TERM; echo $$; {WORK}", timeout_s=STARTED_S, grace_s=0.1))
    with pytest.raises(ProcessLookupError):
        os.kill(int(err.stdout), 0)


def test_no_time_at_all_is_a_timeout() -> None:
    assert "did not end within 0 s" in timed_out(shell("sleep 1000", timeout_s=0, grace_s=0)).detail


def test_a_program_that_ends_in_time_is_not_stopped() -> None:
    assert asyncio.run(process.run(shell("echo done", timeout_s=PATIENCE_S))).stdout == "done\n"


def test_a_stopped_program_hears_the_interrupt() -> None:
    # Said by another process when it has stopped: its own word would come before.
    ready = "until grep -q '^State:.T' /proc/$$/status; do sleep 0.01; done; echo ready"
    script = f"trap 'echo saved; exit 0' INT; ({ready}) & kill -STOP $$; {WORK}"
    assert cancel_after(shell(script, grace_s=LONG_GRACE_S), "ready")[-1] == "saved"


def test_a_cancelled_run_interrupts_the_program_and_passes_on_its_last_lines() -> None:
    script = f"trap 'sleep 0.2; echo saved; printf bye; exit 0' INT; echo ready; {WORK}"
    assert cancel_after(shell(script, grace_s=LONG_GRACE_S), "ready") == ["ready", "saved", "bye"]


def test_a_program_is_interrupted_although_its_start_is_not_complete_on_our_side(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    script = f"trap 'echo saved > work; exit' INT; echo > ready; {WORK}"

    async def scenario() -> None:
        ready = os.open(tmp_path / "ready", os.O_RDONLY | os.O_NONBLOCK)
        task = asyncio.create_task(process.run(shell(script, cwd=tmp_path, grace_s=LONG_GRACE_S)))
        # The loop goes on turn by turn, so that the program is ahead of it.
        while not select.select([ready], [], [], 0.3)[0]:
            await asyncio.sleep(0)
        os.close(ready)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, PATIENCE_S)

    asyncio.run(scenario())
    assert (tmp_path / "work").read_text() == "saved\n"


def test_a_request_before_the_start_starts_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        task = asyncio.create_task(process.run(shell("touch ran", cwd=tmp_path)))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("turns", range(8))
def test_a_loop_that_ends_at_any_moment_of_a_start_ends_the_program_and_nothing_hangs(turns: int) -> None:
    gc.collect()
    before = open_descriptors()

    async def scenario() -> asyncio.Task[process.Completed]:
        task = asyncio.create_task(process.run(shell("exec sleep 1000", grace_s=LONG_GRACE_S)))
        for _ in range(turns):
            await asyncio.sleep(0)
        # The end of the loop cancels every task that is left at once, not ours alone.
        return task

    assert asyncio.run(scenario()).cancelled()
    gc.collect()
    assert open_descriptors() <= before


def test_a_second_request_kills_at_once() -> None:
    script = f"trap 'echo interrupted' INT; echo ready; {WORK}"
    lines = cancel_after(shell(script, grace_s=LONG_GRACE_S), "ready", "interrupted")
    assert lines == ["ready", "interrupted"]


async def test_a_program_killed_by_the_second_request_is_gone_when_the_run_ends() -> None:
    script = "trap '' INT TERM; sleep 1000 & echo $!; echo ready; wait"

    reader = Reader()
    task = asyncio.create_task(process.run(shell(script, grace_s=LONG_GRACE_S), reader))
    await reader.wait_for("ready")
    with reader.watched() as grandchild:
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, PATIENCE_S)
        assert grandchild.has_ended()


def test_the_first_request_leaves_its_grace_to_a_program_that_is_already_out_of_time() -> None:
    script = f"trap 'echo saving; sleep 0.5; echo saved; exit 0' INT; echo ready; {WORK}"
    command = shell(script, timeout_s=STARTED_S, grace_s=LONG_GRACE_S)
    assert cancel_after(command, "saving") == ["ready", "saving", "saved"]


def test_the_second_request_ends_a_program_that_is_already_out_of_time() -> None:
    script = f"trap 'echo saving; echo still here' INT; echo ready; {WORK}"
    lines = cancel_after(shell(script, timeout_s=STARTED_S, grace_s=LONG_GRACE_S), "saving", "still here")
    assert lines == ["ready", "saving", "still here"]


def test_a_timeout_around_the_run_stops_the_program_too() -> None:
    async def scenario() -> list[str]:
        reader = Reader()
        script = f"trap 'echo saved; exit 0' INT; echo ready; {WORK}"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(STARTED_S):
                await process.run(shell(script, grace_s=LONG_GRACE_S), reader)
        return reader.lines

    assert asyncio.run(scenario()) == ["ready", "saved"]


def test_a_reader_of_lines_that_fails_ends_the_program_and_its_error_comes_out() -> None:
    lines: list[str] = []

    def fail(stream: Stream, line: str) -> None:
        lines.append(line)
        if line == "second":
            raise ZeroDivisionError("reader")

    script = f"trap 'echo third; exit 0' INT; echo $$; echo second; echo more; {WORK}"
    with pytest.raises(ZeroDivisionError, match="reader"):
        asyncio.run(process.run(shell(script, grace_s=LONG_GRACE_S), fail))
    assert lines[1:] == ["second"]
    with pytest.raises(ProcessLookupError):
        os.kill(int(lines[0]), 0)


@pytest.mark.parametrize("script", ["echo only", "printf unfinished", "echo error >&2; exit 1"])
def test_a_reader_that_fails_on_the_last_line_is_an_error_too(script: str) -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(process.run(shell(script), fail_at_once))


async def test_processes_in_the_same_group_end_with_the_program() -> None:
    reader = Reader()
    script = "sh -c 'echo $$; echo ready; exec sleep 1000'; echo never"
    task = asyncio.create_task(process.run(shell(script), reader))
    await reader.wait_for("ready")
    with reader.watched() as grandchild:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, PATIENCE_S)
        assert grandchild.has_ended()
    assert reader.lines[1:] == ["ready"]


# A program that dies of the interrupt at once, while a process that it started still has work to save.
LEADER = f"""
import signal, subprocess
signal.signal(signal.SIGINT, signal.SIG_DFL)
subprocess.Popen(["sh", "-c", "trap 'sleep 0.5; echo saved; exit 0' INT; echo ready; {WORK}"])
signal.pause()
"""


def test_the_grace_is_for_the_whole_group() -> None:
    command = Command(argv=(sys.executable, "-c", LEADER), env=environment(), grace_s=LONG_GRACE_S)
    assert cancel_after(command, "ready") == ["ready", "saved"]


def left_behind(tmp_path: Path, script: str) -> tuple[process.Completed, Callable[[], bool]]:
    """Run a program that starts this script in the background and ends when it says so, with its number."""
    os.mkfifo(tmp_path / "ready")
    watched: list[Watched] = []

    def watch(stream: Stream, line: str) -> None:
        watched.append(Watched(int(line)))

    starter = f"{script} & read pid < ready; echo $pid"
    completed = asyncio.run(process.run(shell(starter, cwd=tmp_path), watch))
    (straggler,) = watched

    def has_ended() -> bool:
        with straggler:
            return straggler.has_ended()

    return completed, has_ended


def test_what_a_program_leaves_behind_is_ended_and_told(tmp_path: Path) -> None:
    completed, has_ended = left_behind(tmp_path, "sh -c 'echo $$ > ready; exec sleep 1000'")
    assert completed.left_processes
    assert completed.returncode == 0
    assert has_ended()


def test_what_is_left_behind_may_clean_up_first(tmp_path: Path) -> None:
    script = f"trap 'echo cleaned > mark; exit' TERM; echo $$ > ready; {WORK}"
    completed, has_ended = left_behind(
        tmp_path, f'sh -c "{script.replace("$", chr(92) + "$")}" >/dev/null 2>&1'
    )
    assert has_ended()
    assert completed.left_processes
    assert (tmp_path / "mark").read_text() == "cleaned\n"


@pytest.mark.parametrize("output", ["", ">/dev/null 2>&1"])
def test_what_is_left_behind_and_stubborn_is_killed(output: str, tmp_path: Path) -> None:
    script = "sh -c 'trap \"\" INT TERM HUP; echo $$ > ready; exec sleep 1000'"
    completed, has_ended = left_behind(tmp_path, f"{script} {output}")
    assert completed.left_processes
    assert has_ended()


# Ends when its child has ended, of which it hears without collecting it.
CHILDLESS = """
import os
child = os.fork()
if child == 0:
    os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
os._exit(0)
"""


def test_a_dead_child_that_nobody_collected_is_not_left_behind() -> None:
    completed = asyncio.run(process.run(Command(argv=(sys.executable, "-c", CHILDLESS), env=environment())))
    assert not completed.left_processes


async def test_cancelling_while_stragglers_get_their_grace_kills_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    straggler_script = f"sh -c 'trap \"echo asked\" TERM; echo $$ > ready; {WORK}'"

    reader = Reader()
    command = shell(f"{straggler_script} & read pid < ready; echo $pid", cwd=tmp_path)
    task = asyncio.create_task(process.run(command, reader))
    await reader.wait_for("asked")
    with reader.watched() as straggler:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, PATIENCE_S)
        assert straggler.has_ended()


@pytest.mark.parametrize(
    ("number", "name"),
    [(signal.SIGKILL, "SIGKILL"), (signal.SIGSEGV, "SIGSEGV"), (signal.SIGRTMIN + 1, "35")],
)
def test_a_program_ended_by_a_signal_says_which(number: int, name: str) -> None:
    with pytest.raises(ProcessFailedError, match=f"was ended by signal {name}") as caught:
        asyncio.run(process.run(shell(f"ulimit -c 0; kill -{int(number)} $$")))
    assert caught.value.returncode == -number


def test_stopping_in_every_way_leaves_nothing_open() -> None:
    gc.collect()
    before = open_descriptors()
    cancel_after(
        shell(f"trap 'echo interrupted' INT; echo ready; {WORK}", stdin=b"x" * 10**6),
        "ready",
        "interrupted",
    )
    timed_out(shell("sleep 1000", timeout_s=0, grace_s=0))
    with pytest.raises(ZeroDivisionError):
        asyncio.run(process.run(shell("echo 1; exec sleep 1000"), fail_at_once))
    gc.collect()
    assert open_descriptors() <= before
