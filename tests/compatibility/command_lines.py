"""Recorded command lines, run again with `--json` in a folder of their own.

A file `fixtures/verbs/NAME.commands` begins with `# program: here` (in this process) or `# program: forked`.
Each line is a command line, as a shell would read it, without the program's name. Other lines prepare files:
`copy SOURCE TARGET` (from `fixtures/sources`), `write FILE TEXT`, `replace FILE OLD NEW`. `save NAME A.B`
keeps a value of the last answer, which later lines use as `$NAME`.
"""

from __future__ import annotations

import getpass
import json
import re
import shlex
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.compatibility.golden import FIXTURES
from tests.compatibility.in_process import run_here
from tests.compatibility.normalising import Names, normalised
from tests.compatibility.verb_rules import FIELDS, PATTERNS, is_unstable, without_machine
from tests.support.cli import Ended, Program, stackyard

__all__ = ["COMMANDS", "command_lines", "needs_engine", "run_file"]

COMMANDS = {path.stem: path for path in sorted((FIXTURES / "verbs").glob("*.commands"))}

PROGRAMS: dict[str, Program] = {"here": run_here, "forked": stackyard}


class Player:
    """Runs the lines of one file.

    Args:
        folder: The folder that they begin in.
        home: The HOME of the program.
        program: Runs the program.
        engine: The OpenTofu to use.
    """

    def __init__(self, folder: Path, home: Path, program: Program, engine: str) -> None:
        self._folder = folder
        self._program = program
        # An editor that changes nothing.
        self._env = {"EDITOR": "true", "STACKYARD_TOFU": engine}
        # The program of this Python, which a unit of systemd names.
        here = str(Path(sys.executable).parent)
        who = f"{getpass.getuser()}@{socket.gethostname()}"
        places = {str(folder): "WORK", str(home): "HOME", str(folder.parent): "ABOVE"}
        self._names = Names({who: "USER@HOST", here: "BIN", **places}, PATTERNS)
        self._kept: dict[str, str] = {}
        self._last: dict[str, Any] = {}
        self._steps: dict[str, Callable[..., None]] = {
            "copy": self._copy,
            "write": self._write,
            "replace": self._replace,
            "save": self._save,
        }

    def play(self, line: str) -> dict[str, Any] | None:
        """Run a line; return the answer where it is a command line."""
        words = [self._filled(word) for word in shlex.split(line)]
        step = self._steps.get(words[0])
        if step is not None:
            step(*words[1:])
            return None
        ended = self._program(*words, "--json", cwd=self._folder, env=self._env)
        self._last = _document(ended)
        answer = {"status": ended.status, "document": without_machine(line, self._last)}
        return {"command": line, **normalised(answer, self._names, FIELDS, is_unstable)}

    def _filled(self, word: str) -> str:
        return re.sub(r"\$([A-Z]+)", lambda found: self._kept[found[1]], word)

    def _copy(self, source: str, target: str) -> None:
        place = FIXTURES / "sources" / source
        if place.is_dir():
            shutil.copytree(place, self._folder / target, dirs_exist_ok=True)
        else:
            shutil.copy(place, self._folder / target)

    def _write(self, file: str, text: str) -> None:
        path = self._folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("\\n", "\n"))

    def _replace(self, file: str, old: str, new: str) -> None:
        text = (self._folder / file).read_text()
        assert old in text, f"{file} has no {old!r}"
        self._write(file, text.replace(old, new))

    def _save(self, name: str, path: str) -> None:
        value: Any = self._last
        for part in path.split("."):
            assert isinstance(value, list) or part in value, f"no {path} in {self._last}"
            value = value[int(part)] if isinstance(value, list) else value[part]
        self._kept[name] = str(value)


def _document(ended: Ended) -> dict[str, Any]:
    """Return the one object; a run without one shows what it wrote."""
    try:
        found = json.loads(ended.stdout)
    except ValueError:
        return {"stdout": ended.stdout, "stderr": ended.stderr}
    return found if isinstance(found, dict) else {"value": found}


def command_lines(name: str) -> list[str]:
    """Return the lines of a file that mean something."""
    lines = COMMANDS[name].read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def needs_engine(name: str) -> bool:
    """Tell whether a file plans and applies."""
    return any(line.startswith(("plan ", "apply ")) and "--site" in line for line in command_lines(name))


def run_file(name: str, folder: Path, home: Path, engine: str) -> list[dict[str, Any]]:
    """Run all lines of a file; return the answer of each command line."""
    first = COMMANDS[name].read_text().partition("\n")[0]
    player = Player(folder, home, PROGRAMS[first.removeprefix("# program: ")], engine)
    answers = [player.play(line) for line in command_lines(name)]
    return [answer for answer in answers if answer is not None]
