"""What differs from a commit, and the same from the cache where nothing of git has changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stackyard.clients.git.index_file import find_git_folder
from stackyard.clients.git.ref_files import RefFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.sources.stacks.cache import StackCache
    from stackyard.sources.stacks.working_tree import WorkingTree

__all__ = ["DEFAULT_BRANCHES", "Changes", "FileChange", "merge_changes", "recall_changes", "remember_changes"]

DEFAULT_BRANCHES = (
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
    "refs/heads/main",
    "refs/heads/master",
)
# How many comparisons are kept.
_MOST_KEPT = 20
_HEX_DIGITS = frozenset("0123456789abcdef")


class FileChange(NamedTuple):
    """The numbers of a file's content before and now, empty where it was not there."""

    old: str
    new: str


class Changes(NamedTuple):
    """What differs from a commit.

    Attributes:
        base: The commit; empty on the default branch, where each stack has its own.
        base_name: How to call it.
        files: What differs from it, by path from the top of the tree; from HEAD on the default branch.
        untracked: Those of them that git does not track.
        by_commit: What differs from other commits; None for one that is gone.
    """

    base: str
    base_name: str
    files: Mapping[str, FileChange]
    untracked: frozenset[str] = frozenset()
    by_commit: Mapping[str, Mapping[str, FileChange] | None] = {}


def merge_changes(
    tree: WorkingTree, staged: Mapping[str, FileChange], untracked: Iterable[str]
) -> dict[str, FileChange]:
    """Put together what differs between a commit and the index, and between the index and the disk."""
    found = dict(staged)
    tracked = {} if tree.index is None else tree.index.files
    for path, number in tree.list_changed():
        old = found[path].old if path in found else tracked[path].blob
        found[path] = FileChange(old, number)
    for path in untracked:
        old = found[path].old if path in found else ""
        found[path] = FileChange(old, tree.number(path))
    return {path: one for path, one in found.items() if one.old != one.new}


def recall_changes(tree: WorkingTree, cache: StackCache, base: str | None) -> Changes | None:
    """Return what differs without running git; None where it has to be asked.

    Only what git said of the same commits and the same index counts. Files that git does not track are left
    to the caller.
    """
    key = _key(tree, base)
    row = None if key is None else cache.diffs.get(key)
    try:
        commit, name, files = row if row is not None else (None, None, None)
        if not isinstance(files, dict):
            return None
        staged = {path: FileChange(*numbers) for path, numbers in files.items()}
    except (TypeError, ValueError):
        return None
    return Changes(str(commit), str(name), merge_changes(tree, staged, ()))


def remember_changes(
    tree: WorkingTree, cache: StackCache, base: str | None, said: Changes, staged: Mapping[str, FileChange]
) -> None:
    """Keep what git said."""
    key = _key(tree, base)
    if key is not None:
        rows = cache.diffs.load()
        for old in list(rows)[: max(0, len(rows) - _MOST_KEPT)]:
            del rows[old]
        cache.diffs.put(key, [said.base, said.base_name, {path: list(one) for path, one in staged.items()}])


def _key(tree: WorkingTree, base: str | None) -> str | None:
    """Return a text of everything that a comparison of a commit with the index depends on."""
    folder = find_git_folder(Path(tree.top))
    if folder is None or tree.index is None or not tree.index.checksum:
        return None
    refs = RefFiles(folder)
    head = refs.find("HEAD")
    if not refs.are_known or head is None:
        return None
    names: tuple[str, ...]
    if base is None:
        names = DEFAULT_BRANCHES
    elif len(base) == len(head[0]) and _HEX_DIGITS.issuperset(base):
        names = ()
    else:
        names = tuple(f"{kind}{base}" for kind in ("", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"))
    found = [f"{name} {said}" for name in names if (said := refs.find(name)) is not None]
    if names and not found:
        return None
    parts = [base or "", *found, *head, refs.branch(), tree.index.checksum, refs.shallow_sign()]
    return "\n".join(parts)
