"""The how-to about sharing a site is true: its blocks run in order, each on the machine that it names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.forking import write_forked_program
from tests.support.path import make_yard
from tests.support.postgres import PASSWORD, new_schema, require_postgres

from stackyard import lab
from stackyard.base import errors
from stackyard.engine.version import Flavour

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "howto" / "share-a-site.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
MACHINES = {"# on the first machine": "first", "# on the second machine": "second", "# where the": "first"}


def machine_of(block: str) -> str:
    """Return where a block is to be run."""
    return next(name for start, name in MACHINES.items() if block.startswith(start))


def env_of(home: Path) -> dict[str, str]:
    """Return the surroundings of a machine of its own."""
    names = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
    return {"HOME": str(home), **{name: str(home / name.lower()) for name in names}}


@pytest.mark.tofu
@pytest.mark.timeout(300)
def test_the_page_can_be_followed_on_two_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = require_postgres()
    programs = tmp_path / "bin"
    write_forked_program(programs / "stackyard")
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / f"home-{name}").mkdir()
    for name, value in env_of(tmp_path / "home-first").items():
        monkeypatch.setenv(name, value)
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        make_yard(running, tmp_path / "first" / "site")
        shutil.copytree(tmp_path / "first" / "site", tmp_path / "second" / "site")
        shutil.rmtree(tmp_path / "second" / "site" / ".stackyard", ignore_errors=True)
        # The age key of the user is on both machines.
        shutil.copytree(tmp_path / "home-first", tmp_path / "home-second", dirs_exist_ok=True)
        env = {
            "STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path),
            "STORE": server.address(new_schema()),
            "OTHER_STORE": server.address(new_schema()),
            "PGPASSWORD": PASSWORD,
            "PATH": f"{programs}:{os.environ['PATH']}",
        }
        for block in BLOCKS:
            machine = machine_of(block)
            site = tmp_path / machine / "site"
            if machine == "second":
                # What was committed on the first machine is checked out on the second.
                shutil.copy(tmp_path / "first" / "site" / "site.yaml", site / "site.yaml")
                shutil.copy(tmp_path / "first" / "site.key", tmp_path / "second" / "site.key")
            done = subprocess.run(
                ["bash", "-euc", block],
                cwd=site,
                env={**os.environ, **env, **env_of(tmp_path / f"home-{machine}")},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"


def test_every_error_of_the_page_exists() -> None:
    known = (DOCS / "reference" / "errors.md").read_text()
    for code in re.findall(r"`(E-[A-Z-]+)`", PAGE):
        assert f"`{code}`" in known, code
    assert errors.UnreachableError.exit_status == 69
