"""Which files differ between a commit and the working tree, uncommitted and untracked work included."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError
from stackyard.clients.git.compare import ChangedFile, Comparison
from stackyard.clients.git.index_file import find_git_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.sources.stacks.working_tree import WorkingTree

__all__ = ["BaseNotFoundError", "Changes", "find_changes", "find_default_tip"]

_CANDIDATES = (
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
    "refs/heads/main",
    "refs/heads/master",
)


class BaseNotFoundError(InvalidInputError):
    """What a working tree is to be compared with is not there."""

    code = "E-STACK-BASE"
    summary = "There is nothing to compare the stacks with"
    default_remedy = (
        "Name a commit or branch with `--base`, or fetch the default branch (`git fetch --unshallow`)."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What differs from a commit.

    Attributes:
        base: The commit; empty where each stack has its own.
        base_name: How to call it.
        files: What differs from it, by path from the top of the tree.
        untracked: Those of them that git does not track.
        by_commit: The same for other commits; None for one that is gone.
    """

    base: str
    base_name: str
    files: Mapping[str, ChangedFile]
    untracked: frozenset[str] = frozenset()
    by_commit: Mapping[str, Mapping[str, ChangedFile] | None] = field(default_factory=dict)


async def find_changes(tree: WorkingTree, base: str | None, applied: Iterable[str] | None = None) -> Changes:
    """Find what differs.

    Args:
        tree: The files on disk.
        base: What to compare with; the default branch when absent.
        applied: Commits to compare with instead, when the working tree is on the default branch.

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
    listing = asyncio.ensure_future(git.list_untracked())
    try:
        if base is not None:
            commit, name, is_default = await _find_named(git, base), base, False
        else:
            commit, name, is_default = await _find_default(git, tree)
        dirty = dict(tree.list_changed())
        untracked = frozenset(await listing)
        if is_default:
            return await _compare_applied(git, tree, commit, dirty, untracked, name, applied or ())
        staged = await git.list_staged_changes(commit)
    finally:
        if not listing.done():
            listing.cancel()
    return Changes(
        base=commit, base_name=name, files=_merge(tree, staged, dirty, untracked), untracked=untracked
    )


async def _compare_applied(
    git: Comparison,
    tree: WorkingTree,
    head: str,
    dirty: Mapping[str, str],
    untracked: frozenset[str],
    name: str,
    applied: Iterable[str],
) -> Changes:
    staged = await git.list_staged_changes(head)
    own = _merge(tree, staged, dirty, untracked)
    commits = sorted(set(applied))
    compared = await git.list_changes(commits, head) if commits else {}
    by_commit: dict[str, Mapping[str, ChangedFile] | None] = {}
    for commit, files in compared.items():
        if files is None:
            by_commit[commit] = None
            continue
        merged = dict(files)
        for path, changed in own.items():
            old = files[path].old if path in files else changed.old
            merged[path] = ChangedFile(old=old, new=changed.new)
        by_commit[commit] = {path: one for path, one in merged.items() if one.old != one.new}
    return Changes(base="", base_name=name, files=own, untracked=untracked, by_commit=by_commit)


def _merge(
    tree: WorkingTree,
    staged: Mapping[str, ChangedFile],
    dirty: Mapping[str, str],
    untracked: Iterable[str],
) -> dict[str, ChangedFile]:
    """Put together what differs between a commit and the index, and between the index and the disk."""
    found = dict(staged)
    tracked = {} if tree.index is None else tree.index.files
    for path, number in dirty.items():
        old = found[path].old if path in found else tracked[path].blob
        found[path] = ChangedFile(old=old, new=number)
    for path in untracked:
        old = found[path].old if path in found else ""
        found[path] = ChangedFile(old=old, new=tree.number(path))
    return {path: one for path, one in found.items() if one.old != one.new}


async def _find_named(git: Comparison, base: str) -> str:
    commit = await git.find_commit(base)
    if commit is None:
        raise BaseNotFoundError(f"There is no commit `{base}` in this repository.")
    merged = await git.find_merge_base(commit, "HEAD")
    return merged or commit


async def find_default_tip(git: Comparison) -> tuple[str, str]:
    """Return the last commit of the default branch that is known here, and its name; empty where none is."""
    refs = await git.list_refs("refs/remotes/origin/HEAD", *_CANDIDATES[1:])
    chosen = next((ref for ref in _CANDIDATES if ref in refs), None)
    if chosen is None:
        return "", ""
    tip, leads_to = refs[chosen]
    return tip, (leads_to or chosen).removeprefix("refs/").removeprefix("remotes/").removeprefix("heads/")


async def _find_default(git: Comparison, tree: WorkingTree) -> tuple[str, str, bool]:
    """Return the commit to compare with, its name, and whether the working tree is on the default branch."""
    refs = await git.list_refs("refs/remotes/origin/HEAD", *_CANDIDATES[1:])
    chosen = next((ref for ref in _CANDIDATES if ref in refs), None)
    head = await git.find_commit("HEAD")
    if head is None:
        raise BaseNotFoundError(
            f"The repository {tree.top} has no commit yet.", remedy="Commit something first."
        )
    if chosen is None:
        raise BaseNotFoundError(
            "There is no default branch here: none of origin/HEAD, origin/main, origin/master, main and master."
        )
    tip, leads_to = refs[chosen]
    name = (leads_to or chosen).removeprefix("refs/").removeprefix("remotes/").removeprefix("heads/")
    branch = _branch(tree)
    short = name.removeprefix("origin/")
    if branch == short or (not branch and head == tip):
        return head, name, True
    merged = await git.find_merge_base(tip, "HEAD")
    if merged is None:
        raise BaseNotFoundError(
            f"HEAD and {name} have no commit in common here: the clone is shallow, or they never had one."
        )
    return merged, name, False


def _branch(tree: WorkingTree) -> str:
    """Return the branch that HEAD names, empty for a detached one."""
    folder = find_git_folder(Path(tree.top))
    try:
        said = (folder / "HEAD").read_text().strip() if folder is not None else ""
    except (OSError, UnicodeDecodeError):
        return ""
    return said.removeprefix("ref: refs/heads/") if said.startswith("ref: refs/heads/") else ""
