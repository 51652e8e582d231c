"""Run the real program `stackyard` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

PROGRAM = (sys.executable, "-m", "stackyard")


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


def stackyard(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> Ended:
    """Run the program to its end, with nothing on its standard input and no terminal."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        # Only to end a program that hangs: many tests share few cores.
        timeout=300,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)
