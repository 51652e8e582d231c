"""From a changed file to the stacks that read it, by way of what each stack reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.sources.stacks.globs import compile_glob, literal_prefix
from stackyard.sources.stacks.kinds import (
    LOCK_FILE,
    STACK_FILE,
    is_auto_loaded,
    is_code,
    is_left_out,
    is_values,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.stacks.stack_reads import Link, StackReads

__all__ = ["Match", "ReadIndex"]

# The name of a stack, the chain from the file to it, and where the first step is.
Match = tuple[str, tuple[str, ...], str]


class ReadIndex:
    """What stacks read, turned around.

    Args:
        repository: The stacks.
        reads: What each reads.
        prefix: The repository from the top of the tree.
        names: The stacks to look at; all when absent.
    """

    def __init__(
        self,
        repository: StackRepository,
        reads: Mapping[str, StackReads],
        prefix: str,
        names: Sequence[str] | None = None,
    ) -> None:
        self._repository = repository
        self._reads = reads
        self._prefix = prefix
        self._folders: dict[str, list[str]] = {}
        self._paths: dict[str, list[str]] = {}
        self._globs: dict[str, list[tuple[str, str]]] = {}
        self._code_folders: set[str] | None = None
        for name in reads if names is None else names:
            self._add(name, reads[name])

    def _add(self, name: str, reads: StackReads) -> None:
        for folder in reads.folders:
            self._folders.setdefault(folder, []).append(name)
        for path in reads.paths:
            self._paths.setdefault(path, []).append(name)
        for pattern in reads.globs:
            self._globs.setdefault(literal_prefix(pattern), []).append((pattern, name))

    def readers(self, path: str, *, is_tracked: bool = True) -> Iterator[Match]:
        """Return the stacks that read a file, each once, with the way from the file to it.

        Args:
            path: From the top of the tree.
            is_tracked: Whether git knows the file: one that it does not counts only if it is surely read.
        """
        found: dict[str, tuple[str, Link]] = {}
        for name, link in self._by_name(path):
            found.setdefault(name, ("", link))
        for name, folder in self._by_folder(path, is_tracked=is_tracked):
            found.setdefault(name, (folder, self._reads[name].folders[folder]))
        for name, (folder, link) in found.items():
            yield (name, *self._chain(name, path, folder, link))

    def _by_name(self, path: str) -> Iterator[tuple[str, Link]]:
        """Return who names a file, a folder above it, or a pattern that it matches."""
        above = path
        while above:
            for name in self._paths.get(above, ()):
                yield name, self._reads[name].paths[above]
            above = above.rpartition("/")[0]
            for pattern, name in self._globs.get(above, ()):
                if compile_glob(pattern).fullmatch(path):
                    yield name, self._reads[name].globs[pattern]

    def _by_folder(self, path: str, *, is_tracked: bool) -> Iterator[tuple[str, str]]:
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            names = self._folders.get(folder)
            for name in names or ():
                if self._counts(name, folder, path, is_tracked=is_tracked):
                    yield name, folder
            if not folder:
                break

    def _counts(self, name: str, folder: str, path: str, *, is_tracked: bool) -> bool:
        """Return whether a file below a folder of code is a part of it for a stack."""
        rest = path[len(folder) + 1 :] if folder else path
        own = rest if "/" not in rest else ""
        is_own_stack = not self._reads[name].folders[folder][0]
        if own and is_code(own):
            return True
        if is_code(path.rpartition("/")[2]):
            # Code further down is a module of its own.
            return False
        if own in (STACK_FILE, LOCK_FILE):
            return is_own_stack
        if is_values(path.rpartition("/")[2]):
            return is_own_stack and bool(own) and self._reads_values(name, own)
        if not is_tracked or is_left_out(rest) or rest.endswith((f"/{STACK_FILE}", f"/{LOCK_FILE}")):
            return False
        return not self._is_in_module(folder, path)

    def _reads_values(self, name: str, file: str) -> bool:
        return self._repository.stacks[name].settings.var_files is None or is_auto_loaded(file)

    def _is_in_module(self, folder: str, path: str) -> bool:
        """Return whether a folder between a file and a folder of code has code itself."""
        if self._code_folders is None:
            index = self._repository.tree.index
            self._code_folders = {
                one.rpartition("/")[0]
                for one in (index.files if index is not None else ())
                if is_code(one.rpartition("/")[2])
            }
        between = path.rpartition("/")[0]
        while len(between) > len(folder):
            if between in self._code_folders:
                return True
            between = between.rpartition("/")[0]
        return False

    def _chain(self, name: str, path: str, folder: str, link: Link) -> tuple[tuple[str, ...], str]:
        folders = self._reads[name].folders
        reader, where, how = link
        steps = [path, *([folder] if folder and reader else [])]
        detail = f"{how} at {where}" if where and how else ""
        while reader:
            steps.append(reader)
            above = folders.get(reader)
            reader = above[0] if above is not None else ""
        if not link[0]:
            steps.append(folder)
        if steps[-1] != (own := self._own_folder(name)):
            steps.append(own)
        return tuple(steps), detail

    def _own_folder(self, name: str) -> str:
        return f"{self._prefix}{self._repository.stacks[name].path}"
