"""What a merge of two commits would be, without a working tree and without running what they name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stackyard.base import process
from stackyard.base.errors import InvalidInputError
from stackyard.base.visible import on_one_line
from stackyard.clients.git.run import OWN_SETTINGS, GitError, git_command, run_git

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["GitTooOldError", "MergeConflictError", "make_merge", "merge_trees", "read_tree"]

_OLDEST = (2, 38)
_VERSION = re.compile(r"git version (\d+)\.(\d+)")
_CONFLICT = 1
_SHOWN = 20
_MERGER = {
    f"GIT_{role}_{part}": "stackyard" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
}


class GitTooOldError(GitError):
    """The installed git cannot make a merge without a working tree."""

    code = "E-GIT-TOO-OLD"
    summary = "The installed git is too old"
    default_remedy = "Install git 2.38 or newer."


class MergeConflictError(InvalidInputError):
    """Two commits change the same lines, so that there is no merge of them.

    Args:
        base: The one.
        head: The other one.
        files: Where they do.
    """

    code = "E-GIT-CONFLICT"
    summary = "A pull request does not merge with its base branch"
    default_remedy = "Merge or rebase onto the base branch, resolve the conflicts and push."

    def __init__(self, base: str, head: str, files: Sequence[str]) -> None:
        self.files = tuple(files)
        more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
        shown = ", ".join(on_one_line(one) for one in files[:_SHOWN])
        super().__init__(f"{head[:12]} and {base[:12]} are in conflict in {shown}{more}.")


async def require_version(folder: Path) -> None:
    """Refuse a git that cannot make a merge without a working tree.

    Raises:
        GitTooOldError: It cannot.
    """
    said = (await run_git(git_command(("version",), folder, extra=OWN_SETTINGS))).strip()
    found = _VERSION.match(said)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST:
        raise GitTooOldError(f"This is {said}, and a merge without a working tree needs git 2.38 or newer.")


async def merge_trees(bare: Path, base: str, head: str) -> str:
    """Return the tree of a merge of two commits, written into the repository.

    Raises:
        GitTooOldError: The installed git cannot make it.
        MergeConflictError: They are in conflict.
        GitError: One of them is not here, or they have no history in common.
    """
    arguments = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", base, head)
    completed = await process.run(_command(bare, arguments), check=False)
    tree, _, rest = completed.stdout.partition("\0")
    if completed.returncode == 0:
        return tree.strip()
    if completed.returncode == _CONFLICT:
        raise MergeConflictError(base, head, sorted(filter(None, rest.split("\0"))))
    await require_version(bare)
    raise GitError(f"{head[:12]} cannot be merged into {base[:12]}: {completed.stderr.strip()}")


async def make_merge(bare: Path, base: str, head: str, tree: str) -> str:
    """Return the commit of a merge: the same one whenever the two and the tree are."""
    date = (await _git(bare, "show", "-s", "--format=%ct", head)).strip()
    dates = {f"GIT_{role}_DATE": f"{int(date)} +0000" for role in ("AUTHOR", "COMMITTER")}
    words = ("commit-tree", "-m", f"Merge {head} into {base}", "-p", base, "-p", head, tree)
    command = _command(bare, words, {**_MERGER, **dates})
    return (await run_git(command)).strip()


async def read_tree(bare: Path, commit: str) -> str:
    """Return the tree of a commit.

    Raises:
        GitError: It is not here.
    """
    return (await _git(bare, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")).strip()


async def _git(bare: Path, *arguments: str) -> str:
    return await run_git(_command(bare, arguments))


def _command(bare: Path, arguments: Sequence[str], extra: dict[str, str] | None = None) -> process.Command:
    own = {**OWN_SETTINGS, "GIT_DIR": str(bare), "GIT_ATTR_NOSYSTEM": "1", **(extra or {})}
    return git_command(arguments, bare, extra=own)
