"""The only package that calls git: it runs git through `process` and returns the answers as values.

`find_repository` returns the `Repository` of a folder. Its methods read git's own data, such as the index,
and not the working tree, unless their name says so. Nothing here changes a repository, except `hook`, which
installs checks before each commit.
"""

from __future__ import annotations

from stackyard.clients.git.repository import IndexEntry, Repository, find_repository, require_repository
from stackyard.clients.git.run import GitError

__all__ = ["GitError", "IndexEntry", "Repository", "find_repository", "require_repository"]
