"""The limit of open files: raised by servers, not inherited by what they start, and never run into."""

from __future__ import annotations

import errno

import pytest
from tests.support.processes import run_python

from stackyard.base.errors import StackyardError
from stackyard.base.process import open_files

PROGRAMS = """
import asyncio, resource
from pathlib import Path
from stackyard.base import process, serving
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))

async def handler(request):
    return serving.respond(200)

async def run():
    async with serving.serve(handler):
        mine = resource.getrlimit(resource.RLIMIT_NOFILE)
        command = process.Command(argv=("sh", "-c", "ulimit -Sn; ulimit -Hn"), env=process.environment())
        theirs = (await process.run(command)).stdout.split()
        detached = process.Command(
            argv=("sh", "-c", "ulimit -Sn"), env=process.environment(), timeout_s=30.0
        )
        behind = await process.start_detached(detached, log=Path("/dev/null"), is_ready=str.isdigit)
        status = process.run_in_foreground(
            process.Command(argv=("sh", "-c", 'test "$(ulimit -Sn)" = 200'), env=process.environment())
        )
        print(*mine, *theirs, behind.line, status)

asyncio.run(run())
"""


def test_a_server_raises_its_limit_and_its_programs_have_the_old_one() -> None:
    assert run_python(PROGRAMS).split() == ["300", "300", "200", "300", "200", "0"]


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_shortage_is_seen_through_the_errors_that_it_causes(number: int) -> None:
    failure = StackyardError("a program cannot be started")
    failure.__cause__ = OSError(number, "no more")
    assert open_files.is_shortage(failure)
    assert not open_files.is_shortage(OSError(errno.ENOENT, "missing"))
    assert not open_files.is_shortage(None)


def test_room_ends_when_a_quarter_of_the_descriptors_is_left() -> None:
    source = """
import os, resource
from stackyard.base.process import open_files
resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))
held = []
while open_files.has_room(0):
    held.append(os.open(os.devnull, os.O_RDONLY))
print(max(held) + 1, open_files.most_programs())
held += [os.open(os.devnull, os.O_RDONLY) for _ in range(100)]
print(open_files.has_room(0))
"""
    assert run_python(source).split() == ["300", "6", "False"]


def test_a_program_that_does_not_end_with_the_server_has_the_old_limit_too() -> None:
    source = """
import asyncio, resource
from stackyard.base import process
from stackyard.base.process import open_files
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
open_files.raise_limit()
# It looks once there is something to read, and by then the limit is set.
command = process.Command(
    argv=("sh", "-c", "read line; ulimit -Sn"), env=process.environment(), stdin=b"go\\n", ends_with_us=False
)
print(asyncio.run(process.run(command)).stdout.strip())
"""
    assert run_python(source) == "200\n"
