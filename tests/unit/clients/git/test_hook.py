"""The managed pre-commit hook: one file, a list of checks, the user's own hook once, no loop."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.programs import write_program
from tests.support.repositories import git, new_repository

from stackyard.base.errors import FileError
from stackyard.clients.git import require_repository
from stackyard.clients.git.hook import InstalledHook, install_check, remove_check, upgrade_hook

SECRETS = "secrets check --staged"
DEPLOYMENT = "deployment hook"
TOKEN = "root@pam!tofu=3f2a9c1d-7b6e-4d5f-8a90-1b2c3d4e5f60"
PLAIN = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
LEGACY = """#!/bin/sh
# Written by `stackyard {verb}`.
folder=$(dirname -- "$0")
if [ -x "$folder/{kept}" ]; then
    "$folder/{kept}" "$@" || exit $?
fi
if command -v stackyard >/dev/null 2>&1; then
    exec stackyard {check}
fi
exec {python} -m stackyard {check}
"""
KEPT = "pre-commit.before-stackyard"
KEPT_OF_DEPLOYMENT = "pre-commit.before-stackyard-deployment"


def legacy(hook: Path, verb: str, check: str, kept: str) -> None:
    hook.parent.mkdir(parents=True, exist_ok=True)
    hook.write_text(LEGACY.format(verb=verb, check=check, kept=kept, python=sys.executable))
    hook.chmod(0o755)


def legacy_secrets(hook: Path) -> None:
    legacy(hook, "secrets check --install-hook", SECRETS, KEPT)


def legacy_deployment(hook: Path) -> None:
    legacy(hook, "deployment hook --install", DEPLOYMENT, KEPT_OF_DEPLOYMENT)


def install(folder: Path, check: str) -> InstalledHook:
    return asyncio.run(install_check(folder, check))


def remove(folder: Path, check: str) -> InstalledHook:
    return asyncio.run(remove_check(folder, check))


def commit(folder: Path, **files: str) -> subprocess.CompletedProcess[str]:
    """Commit files with a shell that has no virtual environment activated."""
    for name, text in files.items():
        (folder / name).write_text(text)
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "add", "--", *files], cwd=folder, env=PLAIN, check=True)
    return subprocess.run(
        ["git", *identity, "commit", "--message", "x"],
        cwd=folder,
        env=PLAIN,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def own_hook(path: Path, text: str = 'echo ran >> "$(git rev-parse --show-toplevel)/ran"') -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_program(path, text)


def test_the_hook_stops_a_commit_with_a_secret(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    install(folder, SECRETS)
    refused = commit(folder, leak=TOKEN)
    assert refused.returncode == 1
    assert "leak:1" in refused.stderr
    (folder / "leak").write_text("fine\n")
    assert git(folder, "commit", "--message", "still staged").returncode == 1
    assert commit(folder, leak="fine\n").returncode == 0


def test_both_checks_are_in_one_file_however_often_they_are_installed(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    for check in (SECRETS, DEPLOYMENT, SECRETS, DEPLOYMENT):
        installed = install(folder, check)
    assert installed.checks == (SECRETS, DEPLOYMENT)
    assert (installed.kept, installed.was_there) == (None, True)
    assert [path.name for path in installed.path.parent.glob("pre-commit*") if path.suffix != ".sample"] == [
        "pre-commit"
    ]
    assert commit(folder, fine="x").returncode == 0
    assert "leak:1" in commit(folder, leak=TOKEN).stderr
    git(folder, "rm", "--quiet", "--cached", "leak")
    refused = commit(folder, **{"deployment.json": "{}"})
    assert "E-DEPLOYMENT-TRACKED" in refused.stderr


def test_hooks_of_older_versions_that_call_each_other_are_replaced(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    hooks = folder / ".git" / "hooks"
    legacy_secrets(hooks / "pre-commit")
    legacy_deployment(hooks / KEPT)
    legacy_secrets(hooks / KEPT_OF_DEPLOYMENT)
    assert upgrade_hook(asyncio.run(require_repository(folder)))
    assert sorted(path.name for path in hooks.iterdir() if path.suffix != ".sample") == ["pre-commit"]
    assert commit(folder, fine="x").returncode == 0
    assert "leak:1" in commit(folder, leak=TOKEN).stderr
    assert install(folder, SECRETS).checks == (SECRETS, DEPLOYMENT)


@pytest.mark.parametrize("check", [SECRETS, DEPLOYMENT])
def test_a_check_that_an_older_hook_runs_replaces_that_hook(tmp_path: Path, check: str) -> None:
    folder = new_repository(tmp_path)
    hooks = folder / ".git" / "hooks"
    own_hook(hooks / KEPT_OF_DEPLOYMENT)
    legacy_deployment(hooks / KEPT)
    legacy_secrets(hooks / "pre-commit")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "stackyard", *check.split()],
        cwd=folder,
        env={**PLAIN, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "format 1" in (hooks / "pre-commit").read_text()
    assert not (hooks / KEPT).exists()
    assert commit(folder, fine="x").returncode == 0
    assert (folder / "ran").read_text() == "ran\n"


def test_a_hook_that_was_there_is_kept_and_runs_first(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    own_hook(folder / ".git" / "hooks" / "pre-commit", "touch ran; exit 3")
    installed = install(folder, SECRETS)
    assert installed.kept is not None
    assert commit(folder, file="x").returncode != 0
    assert (folder / "ran").exists()
    again = install(folder, SECRETS)
    assert (again.kept, again.was_there) == (installed.kept, True)
    assert "exit 3" in installed.kept.read_text()


def test_a_hook_of_the_users_own_runs_once_with_both_checks(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    own_hook(folder / ".git" / "hooks" / "pre-commit")
    for check in (SECRETS, DEPLOYMENT, SECRETS):
        install(folder, check)
    assert commit(folder, fine="x").returncode == 0
    assert (folder / "ran").read_text() == "ran\n"


def test_a_hook_that_calls_ours_again_does_not_loop_and_the_checks_still_run(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    hooks = folder / ".git" / "hooks"
    own_hook(hooks / "pre-commit", 'echo ran >> ran; exec "$(dirname -- "$0")/pre-commit"')
    (hooks / "pre-commit").rename(hooks / KEPT)
    install(folder, SECRETS)
    assert commit(folder, fine="x").returncode == 0
    assert (folder / "ran").read_text() == "ran\n"
    assert "leak:1" in commit(folder, leak=TOKEN).stderr


def test_a_hook_that_commits_in_another_repository_is_checked_there_too(tmp_path: Path) -> None:
    outer, inner = new_repository(tmp_path / "outer"), new_repository(tmp_path / "inner")
    install(inner, SECRETS)
    (inner / "leak").write_text(TOKEN)
    git(inner, "add", "leak")
    own_hook(
        outer / ".git" / "hooks" / "pre-commit",
        f"unset GIT_DIR GIT_INDEX_FILE GIT_PREFIX; cd {inner} && "
        "git -c user.name=t -c user.email=t@example.org commit -m x",
    )
    install(outer, SECRETS)
    assert "leak:1" in commit(outer, fine="x").stderr


def test_two_hooks_of_others_are_not_lost(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    own_hook(folder / ".git" / "hooks" / "pre-commit", "true # one")
    install(folder, SECRETS)
    os.remove(folder / ".git" / "hooks" / "pre-commit")
    own_hook(folder / ".git" / "hooks" / "pre-commit", "true # two")
    with pytest.raises(FileError, match="not ours"):
        install(folder, SECRETS)
    assert "# two" in (folder / ".git" / "hooks" / "pre-commit").read_text()


def test_removing_the_checks_puts_the_users_hook_back(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    hooks = folder / ".git" / "hooks"
    own_hook(hooks / "pre-commit")
    before = (hooks / "pre-commit").read_bytes()
    install(folder, SECRETS)
    install(folder, DEPLOYMENT)
    assert remove(folder, SECRETS).checks == (DEPLOYMENT,)
    assert commit(folder, leak=TOKEN).returncode == 0
    left = remove(folder, DEPLOYMENT)
    assert (left.checks, left.kept) == ((), None)
    assert (hooks / "pre-commit").read_bytes() == before
    assert not (hooks / KEPT).exists()
    assert remove(folder, DEPLOYMENT).was_there


def test_removing_the_only_check_leaves_no_hook(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    path = install(folder, SECRETS).path
    remove(folder, SECRETS)
    assert not path.exists()


def test_the_folder_of_hooks_and_linked_worktrees_are_respected(tmp_path: Path) -> None:
    folder = new_repository(tmp_path / "main")
    git(folder, "config", "core.hooksPath", "own-hooks")
    assert install(folder, SECRETS).path == folder / "own-hooks" / "pre-commit"
    assert "leak:1" in commit(folder, leak=TOKEN).stderr
    git(folder, "config", "--unset", "core.hooksPath")
    git(folder, "rm", "--quiet", "--cached", "leak")
    assert commit(folder, fine="x").returncode == 0
    linked = tmp_path / "linked"
    git(folder, "worktree", "add", "--quiet", str(linked))
    assert install(linked, SECRETS).path == folder / ".git" / "hooks" / "pre-commit"
    assert "leak:1" in commit(linked, leak=TOKEN).stderr


def test_a_link_to_the_users_hook_stays_what_it_was(tmp_path: Path) -> None:
    folder = new_repository(tmp_path / "main")
    own_hook(folder / "tools" / "check")
    before = (folder / "tools" / "check").read_bytes()
    (folder / ".git" / "hooks").mkdir(exist_ok=True)
    (folder / ".git" / "hooks" / "pre-commit").symlink_to(folder / "tools" / "check")
    install(folder, SECRETS)
    assert (folder / "tools" / "check").read_bytes() == before
    assert commit(folder, fine="x").returncode == 0
    assert (folder / "ran").read_text() == "ran\n"
    remove(folder, SECRETS)
    assert (folder / ".git" / "hooks" / "pre-commit").readlink() == folder / "tools" / "check"


def test_modules_of_the_working_tree_are_not_loaded(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    install(folder, SECRETS)
    (folder / "stackyard").mkdir()
    for name in ("stackyard/__init__.py", "stackyard/__main__.py", "click.py"):
        (folder / name).write_text("import pathlib; pathlib.Path('loaded').touch()\n")
    assert commit(folder, fine="x").returncode == 0
    assert not (folder / "loaded").exists()


def test_without_any_stackyard_a_commit_is_refused_with_what_to_do(tmp_path: Path) -> None:
    folder = new_repository(tmp_path)
    hook = install(folder, SECRETS).path
    hook.write_text(hook.read_text().replace(sys.executable, "/nonexistent/python"))
    refused = commit(folder, fine="x")
    assert refused.returncode != 0
    assert "install the hook again" in refused.stderr
