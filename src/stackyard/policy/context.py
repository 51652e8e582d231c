"""Everything that the rules look at: modules and stacks with the facts of their files, each read once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError
from stackyard.policy.code import CodeFacts
from stackyard.policy.folders import find_modules
from stackyard.policy.sources import local_folder
from stackyard.sources.stacks.kinds import LOCK_FILE, is_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.policy.base_code import BaseCode
    from stackyard.policy.tracked import TrackedProblem
    from stackyard.sources.stacks.code_reader import FolderFile
    from stackyard.sources.stacks.isolation import Isolation
    from stackyard.sources.stacks.lock_file import LockFile
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["CodeFolder", "NothingToCheckError", "PolicyContext", "StackFolder", "read_context"]


class NothingToCheckError(InvalidInputError):
    """A repository has neither modules nor stacks."""

    code = "E-POLICY-NOTHING"
    summary = "There is nothing to check"
    default_remedy = (
        "Run the command in a repository with OpenTofu code below `modules/`, `stacks/`, `tofu/stacks/` or "
        "`infrastructure/NN-name/`, or name the folders that hold stacks in `roots` of stackyard.yaml."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFolder:
    """A folder with code.

    Attributes:
        path: From the top of the tree.
        names: The names of all files in it.
        code: What its files of code say, by their paths from the top of the tree.
    """

    path: str
    names: tuple[str, ...]
    code: Mapping[str, CodeFacts]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFolder:
    """A stack, and the folder of its code."""

    stack: Stack
    folder: CodeFolder


@dataclass(kw_only=True)
class PolicyContext:
    """What the rules look at.

    Attributes:
        repository: The repository.
        modules: Modules by their paths from the top of the tree.
        stacks: Stacks by name.
        tracked: What git tracks and must not; None where there is no git.
        base: The code at the commit to compare with, where one was named.
    """

    repository: StackRepository
    modules: dict[str, CodeFolder] = field(default_factory=dict)
    stacks: dict[str, StackFolder] = field(default_factory=dict)
    tracked: Sequence[TrackedProblem] | None = None
    base: BaseCode | None = None
    _folders: dict[str, CodeFolder] = field(default_factory=dict)
    _called: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _locks: dict[str, LockFile | None] = field(default_factory=dict)

    @property
    def folders(self) -> Iterator[CodeFolder]:
        """Every module and every stack."""
        yield from self.modules.values()
        for one in self.stacks.values():
            if one.folder.path not in self.modules:
                yield one.folder

    @cached_property
    def isolation(self) -> Isolation:
        """What is wrong with where stacks keep their states, and with whose states they read."""
        from stackyard.sources.stacks.isolation import check_isolation  # lazy: reads what stacks read

        return check_isolation(self.repository)

    def folder(self, path: str, names: tuple[str, ...] | None = None) -> CodeFolder:
        """Return a folder of code by its path from the top of the tree; without code where there is none."""
        known = self._folders.get(path)
        if known is None:
            known = self._folders[path] = self._read_folder(path, names)
        return known

    def called_folders(self, path: str) -> tuple[str, ...]:
        """Return a folder and those of all local modules that its code calls, at any depth."""
        known = self._called.get(path)
        if known is None:
            found = [path]
            for folder in found:
                for said in self.folder(folder).code.values():
                    for call in said.modules:
                        place = local_folder(self.repository.reader, folder, call.source)
                        if place is not None and place not in found:
                            found.append(place)
            known = self._called[path] = tuple(found)
        return known

    def lock(self, path: str) -> LockFile | None:
        """Return the lock file of a folder, None where it has none."""
        if path not in self._locks:
            data = self.read(f"{path}/{LOCK_FILE}")
            if data is None:
                self._locks[path] = None
            else:
                from stackyard.sources.stacks.lock_file import parse_lock  # lazy: tree-sitter

                self._locks[path] = parse_lock(data)
        return self._locks[path]

    def read(self, path: str) -> bytes | None:
        """Return what a file holds, None where it cannot be read."""
        try:
            with open(f"{self.repository.tree.top}/{path}", "rb") as stream:
                return stream.read()
        except (OSError, ValueError):
            return None

    def from_root(self, path: str) -> str:
        """Return a path of the tree as stackyard.yaml would name it."""
        return path.removeprefix(self.repository.prefix)

    def _read_folder(self, path: str, names: tuple[str, ...] | None) -> CodeFolder:
        reader = self.repository.reader
        if names is None:
            try:
                names = tuple(os.listdir(f"{reader.tree.top}/{path}"))
            except OSError:
                names = ()
        files = reader.files(path, names)
        code = {file.path: self._facts(file) for name, file in files.items() if is_code(name)}
        return CodeFolder(path=path, names=names, code=code)

    def _facts(self, file: FolderFile) -> CodeFacts:
        kind = "json" if file.path.endswith(".json") else "hcl"
        key = f"{kind}:{file.number}"
        row = self.repository.cache.policy.get(key)
        if row is not None:
            try:
                return CodeFacts.from_json(row)
            except ValueError:
                pass
        data = self.repository.reader.content(file)
        if data is None:
            return CodeFacts(problem=(1, "it cannot be read, or is larger than 16 MiB"))
        found = parse_code(data, kind)
        if file.number and file.number != "unreadable":
            self.repository.cache.policy.put(key, found.to_json())
        return found


def parse_code(data: bytes, kind: str) -> CodeFacts:
    """Return what a file of code says; `kind` is `hcl` or `json`."""
    if kind == "json":
        from stackyard.policy.json_facts import read_json  # lazy: for files that are new

        return read_json(data)
    from stackyard.policy.hcl_facts import read_hcl  # lazy: tree-sitter, for files that are new

    return read_hcl(data)


def read_context(repository: StackRepository) -> PolicyContext:
    """Read every module and stack of a repository.

    Raises:
        NothingToCheckError: There is neither.
    """
    found = PolicyContext(repository=repository)
    for path, names in sorted(find_modules(str(repository.root))):
        full = f"{repository.prefix}{path}"
        found.modules[full] = found.folder(full, names)
    for name, stack in repository.stacks.items():
        names = repository.files.get(stack.path, ())
        folder = found.folder(f"{repository.prefix}{stack.path}", names)
        found.stacks[name] = StackFolder(stack=stack, folder=folder)
    if not found.modules and not found.stacks and not repository.broken:
        raise NothingToCheckError(f"There is neither a module nor a stack in {repository.root}.")
    return found
