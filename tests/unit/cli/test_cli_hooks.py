"""`secrets check --install-hook` and `deployment hook --install` share one hook."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import stackyard
from tests.support.repositories import git, new_repository


def test_the_two_verbs_in_turn_install_one_hook_that_ends(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    turn = (("secrets", "check", "--install-hook"), ("deployment", "hook", "--install"))
    for verb in (turn[0], turn[1], turn[0]):
        done = stackyard("--json", *verb, cwd=folder)
        assert done.status == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["checks"] == ["secrets check --staged", "deployment hook"]
    (folder / "file").write_text("x")
    git(folder, "add", "file")
    committed = git(folder, "commit", "--message", "x")
    assert committed.returncode == 0, committed.stderr


def test_what_is_installed_can_be_removed(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    stackyard("secrets", "check", "--install-hook", cwd=folder)
    stackyard("deployment", "hook", "--install", cwd=folder)
    left = stackyard("secrets", "check", "--uninstall-hook", cwd=folder)
    assert "runs `stackyard deployment hook`." in left.stdout
    none = stackyard("deployment", "hook", "--uninstall", cwd=folder)
    assert "No hook of stackyard" in none.stdout
    both = stackyard("deployment", "hook", "--uninstall", "--install", cwd=folder)
    assert both.status == 64
