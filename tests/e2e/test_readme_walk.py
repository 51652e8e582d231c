"""From a release to a first plan of one's own Proxmox, by the commands of the page, with only Python there.

The README has one block of commands behind the comment that names this file. They run in one shell at a
terminal, in a home with nothing in it; a lab plays the Proxmox, and we answer what a person is asked.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scripts import release
from tests.support.engine import real_engine
from tests.support.pages import blocks
from tests.support.sources import copy_sources

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
README, PAGE = ROOT / "README.md", ROOT / "docs" / "howto" / "install.md"
MARK = "<!-- run by tests/e2e/test_readme_walk.py -->"
ADDRESS = "https://pve.home:8006"
ON_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
# What a person is asked, as the beginning of the question, and what is answered.
QUESTIONS = ("Trust it?", "User [", "Password of ", "Do this?", "Continue?")
MOST_BYTES = 110 * 10**6
OPTIONAL = ("boto3", "botocore", "grpc", "jsonschema_rs", "psycopg", "tf")


def block() -> str:
    """Return the commands of the README; those of the page are the same, and one more."""
    found = re.search(re.escape(MARK) + r"\s*```sh\n(.*?)```", README.read_text(), re.DOTALL)
    assert found is not None, f"README.md has no block behind {MARK}"
    first, *others = [one.script for one in blocks(PAGE.read_text())]
    assert first == found[1]
    return "".join((first, *others))


def make_release(sources: Path, folder: Path) -> None:
    folder.mkdir()
    release.build(sources, folder)
    release.write_requirements(sources, folder)
    shutil.copy(sources / "install.sh", folder)
    release.write_sums(folder)


def walk(script: str, env: dict[str, str], folder: Path, password: str) -> tuple[int, str]:
    """Run the commands at a terminal, and answer what is asked; return the status and what was shown."""
    answers = dict(zip(QUESTIONS, ("y", "", password, "", "y"), strict=True))
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, "bash", "-euc", script],
        cwd=folder,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    shown, since = "", 0
    with process.stdin, process.stdout:
        while data := _read(process.stdout.fileno(), shown):
            shown += data.decode(errors="replace")
            asked = [question for question in answers if question in shown[since:]]
            if asked:
                since = len(shown)
                # The prompt of a password throws away what was typed before it.
                time.sleep(0.2)
                process.stdin.write(f"{answers[asked[-1]]}\n".encode())
                process.stdin.flush()
    return process.wait(timeout=60), shown


def _read(number: int, shown: str) -> bytes:
    ready, _, _ = select.select([number], [], [], 180)
    assert ready, shown
    return os.read(number, 65536)


def size_of(folder: Path) -> int:
    # What folders themselves take depends on the file system.
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def test_the_commands_of_the_page_lead_from_a_release_to_a_first_plan(tmp_path: Path) -> None:
    folder, home = tmp_path / "release", tmp_path / "home"
    make_release(copy_sources(tmp_path / "sources"), folder)
    tools = home / ".cache" / "stackyard" / "tools"
    tools.parent.mkdir(parents=True)
    # What a person downloads once: the engine from the cache of this machine, where it is one of ours.
    engine = real_engine(Flavour.TOFU).path
    if engine.parents[2].name == "tools":
        tools.symlink_to(engine.parents[2])
    kept = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_", "UV_"))}
    env = {**kept, "HOME": str(home), "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "TERM": "dumb"}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(Path(sys.executable).resolve())
    with lab.running(nodes=("pve",)) as running:
        script = block().replace(ADDRESS, running.url)
        status, shown = walk(script, env, folder, running.password)
    assert status == 0, f"{script}\n{shown}"
    # The plan is the last that is shown: the first guest of the new site is to be created.
    assert re.search(r"create .*\bfirst\b", shown.rpartition("preflight")[2]), shown
    environment = next(home.rglob("site-packages"))
    parts = {path.name for path in environment.iterdir()}
    assert not parts & set(OPTIONAL)
    # pip itself is not counted.
    assert size_of(environment) - sum(size_of(environment / name) for name in {"pip"} & parts) <= MOST_BYTES
