"""Whether there are files that git does not track and that a stack may read, without asking git.

git alone knows which files are ignored. Where no file of a kind that counts is new, it need not be asked.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stackyard.sources.stacks.globs import compile_glob, literal_prefix
from stackyard.sources.stacks.kinds import LOCK_FILE, STACK_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.stacks.stack_reads import StackReads

__all__ = ["may_be_untracked"]

# In larger folders git is quicker.
_MOST_FILES = 2000


def may_be_untracked(repository: StackRepository, reads: Mapping[str, StackReads]) -> bool:
    """Return whether a file that a stack reads is not tracked; `True` where that is not known."""
    index = repository.tree.index
    if index is None:
        return True
    tracked = index.files
    folders: set[str] = set()
    named: set[str] = set()
    globs: set[str] = set()
    for one in reads.values():
        folders.update(one.folders)
        named.update(one.paths)
        globs.update(one.globs)
    for folder in folders:
        if any(file.path not in tracked for file in repository.reader.files(folder).values()):
            return True
    for path, names in repository.files.items():
        for name in (STACK_FILE, LOCK_FILE):
            if name in names and f"{repository.prefix}{path}/{name}" not in tracked:
                return True
    top = repository.tree.top
    new = [path for path in named if path not in tracked and os.path.lexists(f"{top}/{path}")]
    return bool(new) or _any_matches(top, globs, tracked)


def _any_matches(top: str, globs: Iterable[str], tracked: Mapping[str, object]) -> bool:
    left = _MOST_FILES
    for pattern in globs:
        matches = compile_glob(pattern).fullmatch
        for folder, names, files in os.walk(f"{top}/{literal_prefix(pattern)}".rstrip("/")):
            names[:] = [name for name in names if name != ".git"]
            left -= len(files) + 1
            if left < 0:
                return True
            below = folder[len(top) + 1 :]
            paths = (f"{below}/{name}" if below else name for name in files)
            if any(path not in tracked and matches(path) for path in paths):
                return True
    return False
