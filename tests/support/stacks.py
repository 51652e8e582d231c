"""Repositories with stacks: files written, committed with real git, and what is selected of them."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from stackyard.sources.stacks.repository import StackRepository, find_stacks
from stackyard.sources.stacks.selection import SelectedStack, select_changed

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{role}_{part}": "test" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")},
}


def git(folder: Path, *arguments: str) -> str:
    """Run real git."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=_ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return done.stdout


def write(root: Path, files: Mapping[str, str | None]) -> None:
    """Write files by their paths, those above them too; remove those that are None."""
    for name, text in files.items():
        path = root / name
        if text is None:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def make_repository(root: Path, files: Mapping[str, str | None]) -> Path:
    """Make a repository whose branch `main` has some files, and a branch `feature` that is checked out."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "--quiet", "--initial-branch", "main")
    write(root, files)
    commit(root)
    git(root, "checkout", "--quiet", "-b", "feature")
    return root


def commit(root: Path) -> str:
    """Commit everything, and return the commit."""
    git(root, "add", "--all", "--force")
    git(root, "commit", "--quiet", "--allow-empty", "--message", "change")
    return git(root, "rev-parse", "HEAD").strip()


def select(
    root: Path, base: str | None = None, applied: Mapping[str, str] | None = None
) -> dict[str, SelectedStack]:
    """Return what is selected, by name."""
    return {one.name: one for one in asyncio.run(select_changed(find_stacks(root), base, applied))}


def repository(root: Path, files: Mapping[str, str | None]) -> StackRepository:
    """Write files without git, and find the stacks."""
    write(root, files)
    return find_stacks(root)
