"""A repository whose pull requests are looked at, and checkouts of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tests.support.repositories import git, new_repository

from stackyard.clients.forge.model import CloneAccess
from stackyard.gitops.checkout import Checkouts, open_checkouts

__all__ = ["PullRepository"]


class PullRepository:
    """A repository with a base branch and one branch that is to be merged.

    Args:
        folder: Where it, and the cache of its checkouts, are.
    """

    def __init__(self, folder: Path) -> None:
        self.work = new_repository(folder / "origin")
        self.cache = folder / "cache"
        self.access = CloneAccess(url=str(self.work), headers={})

    def write(self, files: Mapping[str, str | None]) -> None:
        """Write files; None removes one, and a text that begins with `-> ` makes a link."""
        for name, text in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink() or text is None:
                path.unlink()
            if text is None:
                continue
            if text.startswith("-> "):
                path.unlink(missing_ok=True)
                os.symlink(text.removeprefix("-> "), path)
            else:
                path.write_text(text)

    def commit(self, files: Mapping[str, str | None], *, branch: str = "main") -> str:
        """Commit files on a branch, made from main where it is not there, and return the commit."""
        if git(self.work, "rev-parse", "--verify", "--quiet", "HEAD").returncode == 0:
            made = git(self.work, "checkout", "--quiet", branch)
            if made.returncode != 0:
                assert git(self.work, "checkout", "--quiet", "-b", branch, "main").returncode == 0
        self.write(files)
        git(self.work, "add", "--all", "--force")
        done = git(self.work, "commit", "--quiet", "--allow-empty", "--message", "change")
        assert done.returncode == 0, done.stderr
        return git(self.work, "rev-parse", "HEAD").stdout.strip()

    def checkouts(self) -> Checkouts:
        """Return checkouts of it, with a cache of their own."""
        return open_checkouts(self.access.url, cache=self.cache, may_be_local=True)

    async def fetched(self, *branches: str) -> Checkouts:
        """Return checkouts that have some branches."""
        checkouts = self.checkouts()
        await checkouts.fetch(self.access, [f"refs/heads/{one}" for one in branches or ("main", "work")])
        return checkouts
