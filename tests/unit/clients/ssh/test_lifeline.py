"""A script on another machine: its lines as they come, and its end with ours."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.ssh_hosts import ScriptedHost, real_shell, scripted

from stackyard.clients import ssh

LONG_S = 30.0


@contextlib.asynccontextmanager
async def run(folder: Path) -> AsyncIterator[ssh.Shell]:
    async with real_shell(folder) as host, ssh.connect(host) as shell:
        yield shell


async def test_lines_come_while_the_script_runs_and_both_outputs_are_kept(tmp_path: Path) -> None:
    async with run(tmp_path) as shell:
        first = asyncio.Event()
        lines: list[str] = []

        def take(line: str) -> None:
            lines.append(line)
            first.set()

        os.mkfifo(tmp_path / "go")
        script = f"echo one; cat {shlex.quote(str(tmp_path / 'go'))}; echo two >&2; printf three; exit 7"
        running = asyncio.create_task(ssh.attend(shell, ssh.Script(text=script), take))
        async with asyncio.timeout(LONG_S):
            await first.wait()
            assert lines == ["one"]
            await asyncio.to_thread((tmp_path / "go").write_text, "middle\n")
            done = await running
        assert lines == ["one", "middle", "two", "three"]
        assert (done.status, done.output, done.timed_out) == (7, "one\nmiddle\ntwo\nthree", False)


@pytest.mark.parametrize(
    "given", ["a secret", "several\nlines 'with' \"quotes\" $HOME `x` \\ ä\n", "x" * 100_000]
)
async def test_standard_input_reaches_the_script_as_it_is(given: str, tmp_path: Path) -> None:
    async with run(tmp_path) as shell:
        done = await ssh.attend(shell, ssh.Script(text="cat", stdin=given))
        assert done.output == given.rstrip("\n")
        assert (await ssh.attend(shell, ssh.Script(text="cat; echo end"))).output == "end"


async def _gone(pid: int) -> None:
    """Wait until a process is no more; the kernel tells nobody but its parent."""
    while Path(f"/proc/{pid}").exists():
        await asyncio.sleep(0.01)


async def _started(
    shell: ssh.Shell, folder: Path, script: ssh.Script
) -> tuple[asyncio.Task[ssh.ScriptResult], int]:
    """Start a script that prints a process id first; return it running, and that id."""
    pids: asyncio.Queue[str] = asyncio.Queue()
    running = asyncio.create_task(ssh.attend(shell, script, pids.put_nowait))
    return running, int(await pids.get())


# The grandchild has to go, too: `apt-get` is one of the script.
SLEEPING = "sleep 1000 & echo $!; wait"


async def test_a_script_that_is_cancelled_ends_over_there_with_all_its_children(tmp_path: Path) -> None:
    async with run(tmp_path) as shell:
        async with asyncio.timeout(LONG_S):
            running, pid = await _started(shell, tmp_path, ssh.Script(text=SLEEPING))
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await _gone(pid)
        assert (await ssh.attend(shell, ssh.Script(text="echo still here"))).output == "still here"


async def test_a_script_whose_time_is_over_is_ended_and_says_so(tmp_path: Path) -> None:
    async with run(tmp_path) as shell:
        async with asyncio.timeout(LONG_S):
            # Enough for the script to begin on a busy machine.
            running, pid = await _started(shell, tmp_path, ssh.Script(text=SLEEPING, timeout_s=2.0))
            done = await running
            await _gone(pid)
        assert done.timed_out
        assert done.status is None


async def test_a_script_ends_when_the_connection_breaks(tmp_path: Path) -> None:
    async with run(tmp_path) as shell:
        async with asyncio.timeout(LONG_S):
            running, pid = await _started(shell, tmp_path, ssh.Script(text=SLEEPING))
            shell._connection.abort()
            with pytest.raises(ssh.SshError, match="broke"):
                await running
            await _gone(pid)


def test_a_connection_that_breaks_in_the_middle_is_not_taken_for_an_end(tmp_path: Path) -> None:
    machine = ScriptedHost()
    machine.answer("install", lambda ran: None)

    async def go() -> None:
        async with scripted(machine, tmp_path) as host, ssh.connect(host) as shell:
            with pytest.raises(ssh.SshError, match="broke"):
                await ssh.attend(shell, ssh.Script(text="install", becomes_root=True))

    asyncio.run(go())
    assert machine.ran[0].as_root


def test_a_script_that_needs_input_and_its_secret_never_stand_on_a_command_line() -> None:
    script = ssh.Script(text="cat", stdin="hunter-2-secret")
    assert "hunter-2-secret" not in script.command()
    assert "hunter-2-secret" not in repr(script)


async def test_a_file_is_received_from_an_offset_on(tmp_path: Path) -> None:
    async with run(tmp_path) as shell:
        source = tmp_path / "image"
        source.write_bytes(bytes(range(256)) * 1000)
        target = tmp_path / "copy"
        target.write_bytes(source.read_bytes()[:1000])
        with target.open("ab") as stream:
            assert await ssh.receive_file(shell, str(source), stream, offset=1000) == 255_000
        assert target.read_bytes() == source.read_bytes()
        with target.open("ab") as stream, pytest.raises(ssh.SshError, match="Cannot read"):
            await ssh.receive_file(shell, str(tmp_path / "none"), stream)
