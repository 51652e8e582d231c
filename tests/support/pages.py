"""The pages of the documentation as a reader follows them: each block of commands, in the order of the page.

A comment directly above a block says what a test must know: `<!-- exits with 1 -->`, or `<!-- not run: it
needs a machine of yours -->`. A picture directly below a block shows what its last command prints on a
terminal (`tests.support.pictures`).
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.forking import write_forked_program
from tests.support.pictures import check_picture
from tests.support.screen import screenshot

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"(?:^<!-- (?:exits with (?P<status>\d+)|not run: (?P<reason>[^\n]+?)) -->\n)?"
    r"^```sh\n(?P<script>.*?)^```\n"
    r"(?:\n!\[[^\]]*\]\([./a-z]*pictures/(?P<picture>[a-z0-9-]+)\.svg\))?",
    re.DOTALL | re.MULTILINE,
)
# Tests run beside each other, each with labs of its own.
WRAPPER = """#!/bin/sh
if [ "$1 $2" = "lab up" ]; then
    case "$*" in *--port*) ;; *) set -- "$@" --port 0 ;; esac
fi
exec {program} "$@"
"""
LONGEST_S = 240.0


@dataclass(frozen=True)
class Block:
    """Commands that a page shows together."""

    script: str
    status: int = 0
    not_run: str | None = None
    picture: str | None = None


def blocks(text: str) -> list[Block]:
    """Return every block of commands of a page."""
    return [
        Block(
            script=found["script"],
            status=int(found["status"] or 0),
            not_run=found["reason"],
            picture=found["picture"],
        )
        for found in BLOCK.finditer(text)
    ]


def blocks_of(page: str) -> list[Block]:
    """Return the blocks that are to be run of a page, which is named from the root of the project."""
    return [block for block in blocks((ROOT / page).read_text()) if block.not_run is None]


@dataclass
class Reader:
    """Somebody who types what a page shows, in one terminal.

    Attributes:
        folder: Where they are; a `cd` of theirs changes it, and what they export stays.
        env: What their environment has beside that of the test.
        programs: The folder of their programs, the first of which is `stackyard`.
    """

    folder: Path
    programs: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        program = write_forked_program(self.programs / "forked" / "stackyard")
        (self.programs / "stackyard").write_text(WRAPPER.format(program=program))
        (self.programs / "stackyard").chmod(0o755)

    def follow(self, page: str) -> Iterator[tuple[Block, str]]:
        """Type every block of a page; give each with what it printed."""
        for block in blocks_of(page):
            yield block, self.type(block)

    def type(self, block: Block) -> str:
        """Type a block; return what it printed."""
        if block.picture is not None:
            return self._type_and_draw(block, block.picture)
        # A command that fails ends the block; where the reader is then, and what they have exported, stays.
        after, exported = self.programs / "folder", self.programs / "exported"
        keep = f"pwd > {shlex.quote(str(after))}; export -p > {shlex.quote(str(exported))}"
        before = f". {shlex.quote(str(exported))}\n" if exported.exists() else ""
        done = subprocess.run(
            ["bash", "-euc", f"{before}trap {shlex.quote(keep)} EXIT\n{block.script}"],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        printed = done.stdout + done.stderr
        assert done.returncode == block.status, f"{block.script}\n{printed}"
        self.folder = Path(after.read_text().strip())
        return printed

    def _type_and_draw(self, block: Block, name: str) -> str:
        """Type a block on a terminal and compare what it shows with its picture."""
        screen = screenshot(["bash", "-euc", block.script], self.folder, self._environment(), 100, 60)
        assert screen.status == block.status, f"{block.script}\n{screen.text}"
        check_picture(name, screen, f"$ {block.script.strip().splitlines()[-1]}")
        return screen.text

    def _environment(self) -> dict[str, str]:
        # Ansible and others are installed beside the Python of the tests.
        path = f"{self.programs}:{os.environ['PATH']}:{Path(sys.executable).parent}"
        return {**os.environ, "PATH": path, **self.env}
