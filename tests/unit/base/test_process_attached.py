"""Programs that run beside us, and programs that we become."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys

import pytest

from stackyard.base import process

ENV = {"PATH": os.environ["PATH"]}


def command(*argv: str) -> process.Command:
    return process.Command(argv=argv, env=ENV, keeps_output=False, grace_s=10)


async def test_an_attached_program_has_the_descriptor_that_it_is_given_and_ends_when_it_is_told() -> None:
    ours, theirs = socket.socketpair()
    lines: list[str] = []
    with ours, theirs:
        number = theirs.fileno()
        code = f"import os, sys, time; print('up', file=sys.stderr); os.write({number}, b'here')"
        code += "; time.sleep(600)"
        running = process.start_attached(
            command(sys.executable, "-c", code), lambda _, line: lines.append(line), inherited=(number,)
        )
        theirs.close()
        ours.setblocking(False)
        assert await asyncio.get_running_loop().sock_recv(ours, 100) == b"here"
        assert not running.exited.done()
        await running.end()
        assert running.exited.done()
        assert running.returncode == -9
        assert lines in (["up"], [])


async def test_an_attached_program_that_is_asked_to_end_may_do_so_in_its_own_way() -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "print('ready', flush=True)\ntime.sleep(600)"
    )
    ready = asyncio.Event()
    running = process.start_attached(command(sys.executable, "-c", code), lambda *_: ready.set())
    await ready.wait()
    await running.end(gently=True)
    assert running.returncode == 5


def test_a_program_that_is_not_there_is_not_started() -> None:
    async def main() -> None:
        with pytest.raises(process.ProgramMissingError):
            process.start_attached(command("no-such-program-anywhere"))

    asyncio.run(main())
    with pytest.raises(process.ProgramMissingError):
        process.replace_process(command("no-such-program-anywhere"))


def test_who_becomes_a_program_ends_as_it_does_and_keeps_its_streams() -> None:
    code = (
        "import os\nfrom stackyard.base import process\n"
        "process.replace_process(process.Command(argv=('sh', '-c', 'cat; exit 7'), env=dict(os.environ)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"through", capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (7, b"through")
