"""A repository of stacks, and the program run in it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.support.cli import Ended, stackyard
from tests.support.engine import find_real

from stackyard.engine.version import Flavour

__all__ = ["StackRepo", "make_repo"]

_AUTHOR = {
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.org",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.org",
}


@dataclass(kw_only=True)
class StackRepo:
    """A repository of stacks."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def write(self, files: Mapping[str, str]) -> None:
        """Write files; their text is dedented."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text))

    def git(self, *arguments: str) -> str:
        """Run git in the repository."""
        ended = subprocess.run(
            ("git", *arguments),
            cwd=self.root,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.root), **_AUTHOR},
            check=True,
            capture_output=True,
            text=True,
        )
        return ended.stdout.strip()

    def commit(self, message: str = "change") -> str:
        """Commit everything, and return the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def run(self, *arguments: str, status: int | None = 0) -> Ended:
        """Run the program in the repository; check how it ends, unless that is left open."""
        ended = stackyard(*arguments, cwd=self.root, env=self.env)
        if status is not None:
            assert ended.status == status, f"{arguments}\n{ended.stdout}\n{ended.stderr}"
        return ended

    def json(self, *arguments: str, status: int | None = 0) -> dict[str, Any]:
        """Run the program and return its one object; `--json` stands before what goes to the engine."""
        words = list(arguments)
        at = words.index("--") if "--" in words else len(words)
        return self.run(*words[:at], "--json", *words[at:], status=status).document

    def actions(self, *arguments: str, status: int | None = 0) -> dict[str, str]:
        """Plan, and return what happens to each address."""
        planned = self.json("plan", *arguments, status=status)
        return {change["address"]: change["action"] for change in planned["changes"]}


def make_repo(folder: Path, files: Mapping[str, str], *, env: Mapping[str, str] | None = None) -> StackRepo:
    """Make a repository with files, committed on `main`; its stacks are run with OpenTofu.

    A test has a HOME of its own, in which no OpenTofu is found: a terraform on PATH would be used.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tofu = find_real(Flavour.TOFU)
    chosen = {} if isinstance(tofu, str) else {"STACKYARD_TOFU": str(tofu.path)}
    repo = StackRepo(root=folder, env={**chosen, **(env or {})})
    repo.git("init", "-q", "-b", "main")
    repo.write({".gitignore": ".stackyard/\n*.tfstate*\n.terraform/\n", **files})
    repo.commit("begin")
    return repo
