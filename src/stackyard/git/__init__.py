"""The one door to git: its programs run through `process`, and their answers as values.

`find_repository` gives the `Repository` of a folder. What is asked of it reads git's own data, such as the
index, and not the working tree, unless its name says so. Nothing here changes a
repository, except `hook`, which installs checks before each commit.
"""

from __future__ import annotations

from stackyard.git.repository import IndexEntry, Repository, find_repository, require_repository
from stackyard.git.running import GitError

__all__ = ["GitError", "IndexEntry", "Repository", "find_repository", "require_repository"]
