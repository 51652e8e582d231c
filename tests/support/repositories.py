"""Real git repositories for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["all_objects", "commit", "git", "new_repository"]


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in a folder, with a user of its own."""
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


def new_repository(folder: Path) -> Path:
    """Make an empty repository."""
    folder.mkdir(parents=True, exist_ok=True)
    assert git(folder, "init", "--quiet", "--initial-branch=main").returncode == 0
    return folder


def commit(folder: Path, **files: str) -> None:
    """Write files, given by their names with double underscores for dots, and commit them."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    git(folder, "add", "--all")
    done = git(folder, "commit", "--quiet", "--message", "change")
    assert done.returncode == 0, done.stderr


def all_objects(bare: Path) -> bytes:
    """Return the content of everything that a repository stores, whether a ref leads to it or not."""
    asked = ["git", "cat-file", "--batch-all-objects", "--batch", "--unordered"]
    return subprocess.run(asked, cwd=bare, capture_output=True, timeout=60, check=True).stdout
