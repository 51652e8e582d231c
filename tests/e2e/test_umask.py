"""Whoever starts the program with `umask 0` gets no file, folder or socket that others may write.

What is private (states, keys, tokens, plans, the data of servers) is not readable by others either.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.processes import PATIENCE_S
from tests.support.secrets import RECIPIENT

from stackyard.engine.version import Flavour

PROGRAM = (sys.executable, "-m", "stackyard")
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def run(*arguments: str, cwd: Path, **variables: str) -> str:
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S * 4,
        check=False,
        umask=0,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def serve_once(*arguments: str, cwd: Path) -> None:
    """Start a server, wait until it is ready, and stop it."""
    with subprocess.Popen(
        [*PROGRAM, *arguments], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, umask=0
    ) as server:
        assert server.stdout is not None
        json.loads(server.stdout.readline())
        server.terminate()
        server.wait(PATIENCE_S)


def modes(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield everything below a folder with its mode; links have none of their own."""
    for path in sorted(folder.rglob("*")):
        if not path.is_symlink():
            yield str(path.relative_to(folder)), stat.S_IMODE(path.lstat().st_mode)


def for_others(folder: Path, bits: int) -> list[str]:
    return [f"{name} {mode:o}" for name, mode in modes(folder) if mode & bits]


def test_servers_keep_everything_they_make_to_themselves(tmp_path: Path) -> None:
    home = Path(os.environ["HOME"])
    serve_once("state", "serve", "--json", "--port", "0", "--data", str(tmp_path / "state"), cwd=tmp_path)
    serve_once(
        *("lab", "up", "--foreground", "--json", "--port", "0", "--data", str(tmp_path / "lab")), cwd=tmp_path
    )
    run("init", "site", cwd=tmp_path)
    served = ("serve", "--json", "--port", "0", "--bind", "127.0.0.1", "--site", str(tmp_path / "site"))
    serve_once(*served, "--state", str(tmp_path / "states"), cwd=tmp_path)
    for folder in ("state", "lab", "states"):
        assert for_others(tmp_path / folder, OTHERS) == [], folder
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) & OTHERS == 0
    assert for_others(tmp_path, OTHERS_WRITE) == []
    assert for_others(home, OTHERS_WRITE) == []
    assert for_others(home / ".local", OTHERS) == []


@pytest.mark.tofu
@pytest.mark.timeout(300)
def test_a_run_keeps_its_state_plans_and_secrets_to_itself(tmp_path: Path) -> None:
    engine = {"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path)}
    run("lab", "up", "--port", "0", cwd=tmp_path)
    try:
        site = tmp_path / "site"
        run("init", "site", cwd=tmp_path)
        run("plan", "dev", "--out", "dev.plan", cwd=site, **engine)
        run("apply", "dev", cwd=site, **engine)
        (site / "more.yaml").write_text("password: hunter2\n")
        run("secrets", "encrypt", "more.yaml", "--age", RECIPIENT, cwd=site)
    finally:
        run("lab", "down", cwd=tmp_path)
    assert for_others(site, OTHERS_WRITE) == []
    # What the engine makes for itself holds no secret; the folder around it keeps others out all the same.
    own = [line for line in for_others(site / ".stackyard", OTHERS) if "/.terraform/" not in line]
    assert own == []
    assert stat.S_IMODE((site / ".stackyard").stat().st_mode) & OTHERS == 0
    assert stat.S_IMODE((site / "dev.plan").stat().st_mode) & OTHERS == 0
    home = Path(os.environ["HOME"])
    assert for_others(home, OTHERS_WRITE) == []
