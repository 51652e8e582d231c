"""The how-to about the controller is true: each of its blocks runs, and its Python too."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.controller import make_site, repository
from tests.support.forking import write_forked_program
from tests.support.ports import free_port

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "controller.md").read_text()
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
BLOCKS = [
    (section.partition("\n")[0], block)
    for section in SECTIONS
    for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
]


@pytest.mark.parametrize(("title", "script"), BLOCKS, ids=[title for title, _ in BLOCKS])
def test_the_commands_of_the_page_work(title: str, script: str, tmp_path: Path) -> None:
    del title
    if "curl" in script and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    site = make_site(tmp_path)
    repository(tmp_path / "bootstrap")
    port = str(free_port())
    programs = tmp_path / "bin"
    write_forked_program(programs / "stackyard")
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script.replace("8443", port)],
        cwd=site,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done
    if "clone" in script:
        assert "origin/_working" in done.stdout
        assert "echo changed" in done.stdout


def test_the_program_of_the_page_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (source,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(source, names)
    asyncio.run(names["provision"](make_site(tmp_path)))
    url, pin, token = capsys.readouterr().out.split()
    assert (url.startswith("https://127.0.0.1:"), pin.startswith("sha256//"), "." in token) == (
        True,
        True,
        True,
    )
