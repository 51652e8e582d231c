"""The only package that calls git: it runs git through `process` and returns the answers as values.

`find_repository` returns the `Repository` of a folder. Its methods read git's own data, such as the index,
and not the working tree, unless their name says so. Nothing here changes a repository, except `hook`, which
installs checks before each commit. `index_file` and `ref_files` read files of git without running it, so
that the names below are loaded when they are used: to run a program costs more than to read a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stackyard.clients.git.repository import (
        IndexEntry,
        Repository,
        find_repository,
        require_repository,
    )
    from stackyard.clients.git.run import GitError

__all__ = ["GitError", "IndexEntry", "Repository", "find_repository", "require_repository"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stackyard.clients.git import repository  # lazy: asyncio, for those who run git

    return getattr(repository, name)
