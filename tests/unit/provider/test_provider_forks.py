"""The provider runs in the process that starts all other programs, and is in the way of none of them."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, subprocess
from stackyard.provider import servicer  # with gRPC, before anything is served
from stackyard import provider

async def main():
    async with provider.serve():
        for _ in range(20):
            # A function in between makes Python fork, as our own start of programs does.
            assert subprocess.Popen(["true"], preexec_fn=lambda: None).wait() == 0

asyncio.run(main())
"""


def test_no_program_is_disturbed_between_its_fork_and_its_exec() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    # gRPC says a word at each fork that it has a hand in.
    assert (ended.returncode, ended.stderr) == (0, "")
