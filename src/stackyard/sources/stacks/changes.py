"""Which files differ between a commit and the working tree, uncommitted and untracked work included."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError
from stackyard.clients.git.compare import Comparison
from stackyard.clients.git.index_file import find_git_folder
from stackyard.clients.git.ref_files import RefFiles
from stackyard.sources.stacks.changed_files import (
    DEFAULT_BRANCHES,
    Changes,
    FileChange,
    merge_changes,
    remember_changes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.clients.git.compare import ChangedFile
    from stackyard.sources.stacks.cache import StackCache
    from stackyard.sources.stacks.working_tree import WorkingTree

__all__ = ["BaseNotFoundError", "find_changes", "find_default_tip"]

_REMOTES = "refs/remotes/"


class BaseNotFoundError(InvalidInputError):
    """What a working tree is to be compared with is not there."""

    code = "E-STACK-BASE"
    summary = "There is nothing to compare the stacks with"
    default_remedy = (
        "Name a commit or branch with `--base`, or fetch the default branch (`git fetch --unshallow`)."
    )


async def find_changes(
    tree: WorkingTree, cache: StackCache, base: str | None, applied: Iterable[str] = ()
) -> Changes:
    """Find what differs.

    Args:
        tree: The files on disk.
        cache: Keeps what git says.
        base: What to compare with; the default branch when absent.
        applied: Commits to compare with as well, when the working tree is on the default branch.

    Raises:
        BaseNotFoundError: This is no repository, or there is nothing to compare with.
        GitError: git failed, or does not trust the repository.
    """
    if not tree.is_git:
        raise BaseNotFoundError(
            f"{tree.top} is not a git repository, so that nothing says what changed.",
            remedy="Run the command inside a git repository, or without asking for changes.",
        )
    git = Comparison(top=Path(tree.top))
    # Together: the one reads the whole tree, the other a few refs.
    listing = asyncio.ensure_future(git.list_untracked())
    try:
        commit, name, is_default = await _find_base(git, tree, base)
        if tree.index is None:
            tree.index = await git.list_index()
        staged = _plain(await git.list_staged_changes(commit))
        untracked = frozenset(await listing)
    finally:
        listing.cancel()
    files = merge_changes(tree, staged, untracked)
    found = Changes("" if is_default else commit, name, files, untracked)
    remember_changes(tree, cache, base, found, staged)
    commits = sorted(set(applied)) if is_default else []
    if commits:
        compared = await git.list_changes(commits, commit)
        found = found._replace(by_commit={one: _combine(said, files) for one, said in compared.items()})
    return found


def _plain(said: Mapping[str, ChangedFile]) -> dict[str, FileChange]:
    return {path: FileChange(one.old, one.new) for path, one in said.items()}


def _combine(
    said: Mapping[str, ChangedFile] | None, own: Mapping[str, FileChange]
) -> dict[str, FileChange] | None:
    """Put what differs between HEAD and the disk on top of what differs between a commit and HEAD."""
    if said is None:
        return None
    found = _plain(said)
    for path, changed in own.items():
        found[path] = FileChange(found[path].old if path in found else changed.old, changed.new)
    return {path: one for path, one in found.items() if one.old != one.new}


async def find_default_tip(git: Comparison, *, is_shared: bool = False) -> tuple[str, str]:
    """Return the last commit of the default branch that is known here, and its name; empty where none is.

    Args:
        git: The repository.
        is_shared: Whether only the branch of a remote counts.
    """
    names = [ref for ref in DEFAULT_BRANCHES if not is_shared or ref.startswith(_REMOTES)]
    refs = await git.list_refs(*names)
    chosen = next((ref for ref in names if ref in refs), None)
    return ("", "") if chosen is None else _name_tip(chosen, *refs[chosen])


def _name_tip(ref: str, tip: str, leads_to: str) -> tuple[str, str]:
    return tip, (leads_to or ref).removeprefix("refs/").removeprefix("remotes/").removeprefix("heads/")


async def _find_base(git: Comparison, tree: WorkingTree, base: str | None) -> tuple[str, str, bool]:
    """Return the commit to compare with, its name, and whether the working tree is on the default branch."""
    refs = await git.list_refs(*DEFAULT_BRANCHES) if base is None else {}
    head = await git.find_commit("HEAD")
    if head is None:
        raise BaseNotFoundError(
            f"The repository {tree.top} has no commit yet.", remedy="Commit something first."
        )
    if base is not None:
        commit = await git.find_commit(base)
        if commit is None:
            raise BaseNotFoundError(f"There is no commit `{base}` in this repository.")
        return await git.find_merge_base(commit, head) or commit, base, False
    chosen = next((ref for ref in DEFAULT_BRANCHES if ref in refs), None)
    if chosen is None:
        names = "origin/HEAD, origin/main, origin/master, main and master"
        raise BaseNotFoundError(f"There is no default branch here: none of {names}.")
    tip, name = _name_tip(chosen, *refs[chosen])
    branch = _branch(tree)
    if branch == name.removeprefix("origin/") or (not branch and head == tip):
        return head, name, True
    merged = await git.find_merge_base(tip, head)
    if merged is None:
        raise BaseNotFoundError(
            f"HEAD and {name} have no commit in common here: the clone is shallow, or they never had one."
        )
    return merged, name, False


def _branch(tree: WorkingTree) -> str:
    folder = find_git_folder(Path(tree.top))
    return "" if folder is None else RefFiles(folder).branch()
