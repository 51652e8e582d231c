"""Run the real program `stackyard` in a process of its own: forked from a loaded one, or started again."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import orjson
from tests.support.forking import run_forked

PROGRAM = (sys.executable, "-m", "stackyard")
# Only to end a program that hangs: many tests share few cores.
LONGEST_S = 300.0


@dataclass(frozen=True)
class Ended:
    """How a run of the program ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The one object on standard output."""
        lines = self.stdout.splitlines()
        assert len(lines) == 1, self.stdout
        document = orjson.loads(lines[0])
        assert isinstance(document, dict)
        return document

    @property
    def events(self) -> list[dict[str, Any]]:
        """Each line of standard output as an object."""
        return [orjson.loads(line) for line in self.stdout.splitlines()]


class Program(Protocol):
    """A way to run the program to its end."""

    def __call__(
        self, *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> Ended: ...


def stackyard(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> Ended:
    """Run the program to its end, with nothing on its standard input and no terminal."""
    status, stdout, stderr = run_forked(
        arguments, cwd=cwd, env={**os.environ, **(env or {})}, timeout_s=LONGEST_S
    )
    return Ended(status, _text(stdout), _text(stderr))


def fresh(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> Ended:
    """Run the program in a new Python, which takes a second more: for what is about its start."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def _text(data: bytes) -> str:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8").read()
