"""What CI runs: the tests as an ordinary user where root starts it, and always with their own status.

The programs that make and become a user are stand-ins here, because only root may use the real ones; make,
tar, the shell and the files are real.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.programs import write_program

ROOT = Path(__file__).parents[2]
SHOWS = """
PYTHON ?= none
setup:
\t@{setup}
tools:
	@true
test:
\t@echo "tests in $$(pwd) with HOME=$$HOME PATH=$$PATH PYTHON=$(PYTHON)"
\t@echo "files $$(ulimit -Sn) index=$$PIP_INDEX_URL token=$$SECRET_TOKEN cache=$$PIP_CACHE_DIR"
\t@cat file $$HOME/.config/go/env || true
\t@exit 3
"""


class Checkout:
    """A checkout with its own targets of make, and a machine on which to run it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.programs = folder / "checkout", folder / "programs"
        self.root_home, self.user_home = folder / "root", folder / "user"
        for path in (self.folder, self.programs, self.root_home / ".config" / "go", self.user_home):
            path.mkdir(parents=True)
        shutil.copytree(ROOT / ".ci", self.folder / ".ci")
        shutil.copy(ROOT / "pyproject.toml", self.folder)
        (self.folder / "file").write_text("of the checkout\n")
        (self.root_home / ".config" / "go" / "env").write_text("GOPROXY=of-root\n")
        self.make_targets()

    def make_targets(self, setup: str = "true") -> None:
        (self.folder / "Makefile").write_text(SHOWS.format(setup=setup))

    def pretend_root(self) -> None:
        user = f"stackyard-ci:x:{os.getuid()}:{os.getgid()}::{self.user_home}:/bin/sh"
        write_program(self.programs / "id", "case $1 in -u) echo 0;; -g) echo 0;; *) echo root;; esac")
        write_program(self.programs / "getent", f"echo {user}")
        write_program(self.programs / "setpriv", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')

    def run(self) -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "HOME": str(self.root_home),
            "PIP_INDEX_URL": "index-of-root",
            "PIP_CACHE_DIR": "/cache/of/root",
            "SECRET_TOKEN": "secret-of-root",
        }
        return subprocess.run(
            [self.folder / ".ci" / "run"], env=env, capture_output=True, text=True, check=False, timeout=120
        )


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_who_is_not_root_runs_the_tests_in_the_checkout_with_their_status(checkout: Checkout) -> None:
    write_program(checkout.programs / "id", "echo 1000")
    done = checkout.run()
    assert f"tests in {checkout.folder} with HOME={checkout.root_home}" in done.stdout
    assert done.returncode == 2, done.stderr


@pytest.mark.skipif(
    shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") is None, reason="no Python on a plain PATH"
)
def test_root_runs_the_tests_as_a_user_in_a_copy_with_what_registries_need(checkout: Checkout) -> None:
    checkout.pretend_root()
    done = checkout.run()
    where, limits, *files = done.stdout.splitlines()
    assert where.startswith(f"tests in {checkout.user_home}/checkout."), done.stderr
    assert f"HOME={checkout.user_home} PATH=/usr/local/bin:/usr/bin:/bin" in where
    assert "PYTHON=none" not in where
    assert limits == "files 1024 index=index-of-root token= cache="
    assert files == ["of the checkout", "GOPROXY=of-root"]
    assert "the tests run as stackyard-ci" in done.stderr
    assert done.returncode == 2
    assert [path.name for path in checkout.user_home.iterdir()] == [".config"]


def test_root_runs_the_tests_itself_where_a_user_cannot_be_prepared(checkout: Checkout) -> None:
    checkout.pretend_root()
    checkout.make_targets(setup="exit 1")
    done = checkout.run()
    assert "the user stackyard-ci has no Python that works; the tests run as root" in done.stderr
    assert f"tests in {checkout.folder} with HOME={checkout.root_home}" in done.stdout
    assert "token=secret-of-root" in done.stdout
    assert done.returncode == 2
    assert [path.name for path in checkout.user_home.iterdir()] == [".config"]


@pytest.mark.parametrize(
    ("program", "script", "said"),
    [
        ("setpriv", "exit 1", "the user stackyard-ci cannot be used, or may not write in"),
        ("tar", "exit 1", "the checkout cannot be copied"),
    ],
)
def test_what_fails_before_the_tests_is_said_and_they_run_all_the_same(
    program: str, script: str, said: str, checkout: Checkout
) -> None:
    checkout.pretend_root()
    write_program(checkout.programs / program, script)
    done = checkout.run()
    assert said in done.stderr
    assert f"tests in {checkout.folder}" in done.stdout
    assert done.returncode == 2
