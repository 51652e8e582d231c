"""Each noun works in a program that has loaded nothing yet; most other tests fork one that has loaded all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cli import fresh
from tests.support.controller import make_site

# In a site with specs and nothing else: the status, and a word of the answer. What the tutorials and some
# of the pages run is started anew there.
STARTS = [
    ("create -M nothing -H nowhere", 65, "E-"),
    ("deployment history", 65, "E-DEPLOYMENT-MISSING"),
    ("explain nothing", 65, "E-"),
    ("import env:nothing", 65, "E-"),
    ("inventory show env:nothing", 64, "E-"),
    ("manifest list", 0, "manifests"),
    ("plan nothing", 64, "E-"),
    ("scenario list", 0, "bootstrap-install"),
    ("serve status --port 1", 1, "running"),
    ("serve token list", 0, "tokens"),
    ("site validate", 0, ""),
    ("spec list", 0, "base"),
]


@pytest.mark.parametrize(("line", "status", "word"), STARTS, ids=[line for line, _, _ in STARTS])
def test_a_command_starts_from_nothing(line: str, status: int, word: str, tmp_path: Path) -> None:
    ended = fresh(*line.split(), "--json", cwd=make_site(tmp_path))
    assert ended.status == status, ended
    assert "E-INTERNAL" not in ended.stdout
    assert word in ended.stdout
    assert ended.document


# Something that only a search for garbage finds, as there are thousands in a program that has loaded much.
LEFT = """
import os, sys
class Left:
    def __del__(self):
        os.write(2, b"found")
left = Left()
left.itself = left
from stackyard.__main__ import run
run()
"""


def test_a_program_that_ends_does_not_look_for_garbage() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LEFT, "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("stackyard ")
