"""Real processes for tests: scripts in a Python of their own, and the end of processes that are not ours."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stackyard.base import process

# Only to end a test that hangs; nothing waits for it to pass.
PATIENCE_S = 60.0

# As root, permissions stop nobody. Put first in a script, after its imports, this makes it an ordinary user.
DROP_PRIVILEGES = """
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""


def run_python(source: str, *arguments: str) -> str:
    """Run a script in a Python of its own, warnings being errors, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", source, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


class Watched:
    """A process of anybody, whose end can be waited for."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor: int | None = None
        with contextlib.suppress(ProcessLookupError):
            self._descriptor = os.pidfd_open(pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def has_ended(self, within_s: float = PATIENCE_S) -> bool:
        """Wait for its end, and tell whether it came."""
        return self._descriptor is None or bool(select.select([self._descriptor], [], [], within_s)[0])


def open_descriptors() -> set[str]:
    """Return what this process holds open, as the system tells it."""
    held = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            held.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
    return held


@contextlib.contextmanager
def folder_for_anybody() -> Iterator[Path]:
    """Give a folder that a script without privileges reaches; what pytest gives is its owner's alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


def shell(script: str, **settings: Any) -> process.Command:
    """Return a command that runs a shell script in the usual environment."""
    return process.Command(argv=("sh", "-c", script), env=process.environment(), **settings)
