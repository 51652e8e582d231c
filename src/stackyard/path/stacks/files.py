"""The files that a stack reads, one by one: what a plan is bound to, and which changes touch it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stackyard.sources.stacks.globs import compile_glob, literal_prefix
from stackyard.sources.stacks.matching import ReadIndex
from stackyard.sources.stacks.reads import read_stack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["StackFiles"]

_SKIPPED = (".git", ".terraform", ".stackyard")


class StackFiles:
    """What one stack reads.

    Args:
        repository: All stacks.
        stack: The stack.
    """

    def __init__(self, repository: StackRepository, stack: Stack) -> None:
        self._top = repository.tree.top
        self._name = stack.name
        self._reads = read_stack(repository, stack)
        prefix = os.path.relpath(repository.root, self._top)
        prefix = "" if prefix == "." else f"{prefix}/"
        self._index = ReadIndex(repository, {stack.name: self._reads}, prefix)

    def reads(self, path: str) -> bool:
        """Return whether the stack reads a file, by its path from the top of the tree."""
        return any(name == self._name for name, _, _ in self._index.readers(path))

    def select(self, paths: Iterable[str]) -> list[str]:
        """Return those of some files that the stack reads."""
        return [path for path in paths if self.reads(path)]

    def list(self) -> list[str]:
        """Return every file that the stack reads and that is there, from the top of the tree."""
        found = {path for path in self._reads.paths if os.path.isfile(os.path.join(self._top, path))}
        for folder in self._reads.folders:
            found.update(self.select(self._walk(folder)))
        for pattern in self._reads.globs:
            matches = compile_glob(pattern).fullmatch
            found.update(path for path in self._walk(literal_prefix(pattern)) if matches(path))
        return sorted(found)

    def _walk(self, folder: str) -> Iterator[str]:
        for place, folders, names in os.walk(os.path.join(self._top, folder)):
            folders[:] = [name for name in folders if name not in _SKIPPED]
            below = os.path.relpath(place, self._top)
            yield from (name if below == "." else f"{below}/{name}" for name in names)
