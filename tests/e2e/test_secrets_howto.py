"""The page about secrets is true: what it shows is run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "secrets.md").read_text()
SCRIPTS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.skipif(not all(map(shutil.which, ("bash", "git"))), reason="needs bash and git")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.splitlines()[0][:40])
def test_the_commands_of_the_page_work(script: str, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "stackyard").write_text(f'#!/bin/sh\nexec {sys.executable} -m stackyard "$@"\n')
    (programs / "stackyard").chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
