"""Files on disk and the numbers of their contents, as git counts them, without reading what has not changed.

For a file that git tracks, the index says what its content was when its times and size were last looked at.
For the others, the cache does. Only what differs from both is read. Paths are from the top of the tree.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.clients.git.index_file import IndexFile, find_git_folder, read_index_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["WorkingTree", "open_tree"]

# Times of files have steps: what is this young could change again without a sign of it.
_SETTLED_NS = 2 * 10**9
_LOW = 0xFFFFFFFF
_SECOND_NS = 10**9
_LINK = stat.S_IFLNK

# Modification and change time, inode and size.
Stat = tuple[int, int, int, int]


@dataclass(slots=True, kw_only=True)
class WorkingTree:
    """The files of a repository.

    Attributes:
        top: The top of the working tree of git; the folder itself where there is no git.
        index: What git tracks; None where there is no git, or its index has a form that is not known.
        is_git: Whether there is a repository of git.
        stats: By path, what `stat` said of files that the index does not know, and their contents' numbers.
        fresh: The same as far as it was found out now.
        links: The files asked for that are links.
    """

    top: str
    index: IndexFile | None = None
    is_git: bool = False
    stats: dict[str, list[int | str]] = field(default_factory=dict)
    fresh: dict[str, list[int | str]] = field(default_factory=dict)
    links: set[str] = field(default_factory=set)
    _numbers: dict[str, str] = field(default_factory=dict)

    def number(self, path: str) -> str:
        """Return the number of a file's content, that of its text for a link, empty where there is none."""
        known = self._numbers.get(path)
        if known is None:
            known = self._numbers[path] = self._find_number(path)
        return known

    def is_tracked(self, path: Path) -> bool:
        """Return whether git tracks a file, by its absolute path; False where that is not known."""
        if self.index is None:
            return False
        # The file itself may be a link; git knows it by its own name.
        return os.path.relpath(path.parent.resolve() / path.name, self.top) in self.index.files

    def list_changed(self) -> Iterator[tuple[str, str]]:
        """Return the tracked files that are not as the index has them, with their numbers now."""
        for path, tracked in (self.index.files if self.index is not None else {}).items():
            number = self.number(path)
            if number != tracked.blob:
                yield path, number

    def _find_number(self, path: str) -> str:
        place = f"{self.top}/{path}"
        try:
            said = os.lstat(place)
        except (OSError, ValueError):
            return ""
        if stat.S_IFMT(said.st_mode) == _LINK:
            self.links.add(path)
        tracked = self.index.files.get(path) if self.index is not None else None
        if tracked is not None and self._is_as_tracked(said, tracked.stat):
            return tracked.blob
        if tracked is not None and tracked.mode == 0o160000:
            # A submodule is a folder, and what it holds is another repository's.
            return tracked.blob
        now: Stat = (said.st_mtime_ns, said.st_ctime_ns, said.st_ino, said.st_size)
        row = self.stats.get(path)
        if row is not None and len(row) == 5 and tuple(row[:4]) == now:
            self.fresh[path] = row
            return str(row[4])
        number = self._hash(place, said, "" if tracked is None else tracked.blob)
        if max(now[0], now[1]) < time.time_ns() - _SETTLED_NS:
            self.fresh[path] = [*now, number]
        return number

    def _is_as_tracked(self, said: os.stat_result, known: tuple[int, int, int, int, int, int]) -> bool:
        mtime, ctime = said.st_mtime_ns, said.st_ctime_ns
        return (
            known[0] == mtime // _SECOND_NS & _LOW
            and known[1] == mtime % _SECOND_NS
            and known[5] == said.st_size & _LOW
            and known[4] == said.st_ino & _LOW
            and known[2] == ctime // _SECOND_NS & _LOW
            and known[3] == ctime % _SECOND_NS
            # What changed when the index was written or later may have changed again since it was looked at.
            and self.index is not None
            and max(mtime, ctime) < self.index.written_ns
        )

    def _hash(self, place: str, said: os.stat_result, tracked: str) -> str:
        if stat.S_IFMT(said.st_mode) == _LINK:
            data = os.fsencode(os.readlink(place))
        elif stat.S_ISREG(said.st_mode):
            try:
                with open(place, "rb") as stream:
                    data = stream.read()
            except OSError:
                return "unreadable"
        else:
            return ""
        form = "sha1" if self.index is None else self.index.object_format
        number = hash_content(data, form)
        if tracked and number != tracked and b"\r\n" in data:
            # git may keep the lines of this file with other ends than the working tree has.
            other = hash_content(data.replace(b"\r\n", b"\n"), form)
            number = other if other == tracked else number
        return number


def hash_content(data: bytes, form: str = "sha1") -> str:
    """Return the number that git gives a content."""
    import hashlib  # lazy: OpenSSL, only for what changed

    made = hashlib.new(form, b"blob %d\0" % len(data), usedforsecurity=False)
    made.update(data)
    return made.hexdigest()


def open_tree(root: Path) -> WorkingTree:
    """Return the tree that a folder is in: that of git, or the folder itself."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            git_folder = find_git_folder(folder)
            if git_folder is not None and git_folder.is_dir():
                return WorkingTree(top=str(folder), index=read_index_file(git_folder), is_git=True)
    return WorkingTree(top=str(root))
