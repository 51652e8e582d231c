"""Folders of code as they are on disk: the files in each, and what they say."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from stackyard.sources.stacks.kinds import is_code, is_values

if TYPE_CHECKING:
    from stackyard.sources.stacks.cache import StackCache
    from stackyard.sources.stacks.code_file import CodeFile
    from stackyard.sources.stacks.stack_reads import StackReads
    from stackyard.sources.stacks.working_tree import WorkingTree

__all__ = ["CodeReader", "FolderFile"]

# Nobody writes such code; a value of this size comes from a program.
_LARGEST_BYTES = 16 * 2**20
_MARK = "\0"


class FolderFile(NamedTuple):
    """A file of code or values.

    Attributes:
        path: From the top of the tree.
        number: The number of its content.
        real: Where it really is, for a link; empty where it is none.
    """

    path: str
    number: str
    real: str = ""


@dataclass(slots=True)
class CodeReader:
    """Reads folders of code, each once.

    Attributes:
        tree: The files on disk.
        cache: What is known from before.
        known: What stacks read, by their paths, as far as it was asked for.
        alike: By folder, whether a module reads the same whoever calls it.
    """

    tree: WorkingTree
    cache: StackCache
    known: dict[str, StackReads] = field(default_factory=dict)
    alike: dict[str, bool] = field(default_factory=dict)
    _links: dict[str, bool] = field(default_factory=dict)
    _folders: dict[str, dict[str, FolderFile]] = field(default_factory=dict)
    _signatures: dict[str, str] = field(default_factory=dict)
    _read: dict[str, CodeFile] = field(default_factory=dict)

    def files(self, folder: str, names: tuple[str, ...] | None = None) -> dict[str, FolderFile]:
        """Return the files of code and values in a folder by name.

        Args:
            folder: From the top of the tree.
            names: The names of all files in it, where they are known.
        """
        known = self._folders.get(folder)
        if known is None:
            if names is None:
                try:
                    names = tuple(os.listdir(f"{self.tree.top}/{folder}"))
                except OSError:
                    names = ()
            known = {}
            for name in sorted(names):
                if is_code(name) or is_values(name):
                    known[name] = self._file(f"{folder}/{name}" if folder else name)
            self._folders[folder] = known
        return known

    def signature(self, folder: str, names: tuple[str, ...] | None = None) -> str:
        """Return a text that is another one whenever the code or the values of a folder are others."""
        known = self._signatures.get(folder)
        if known is None:
            parts = [
                f"{name}{_MARK}{file.number}{_MARK}{file.real}"
                for name, file in self.files(folder, names).items()
            ]
            known = self._signatures[folder] = "\n".join(parts)
        return known

    def code(self, file: FolderFile) -> CodeFile:
        """Return what a file of code says."""
        kind = "json" if file.path.endswith(".json") else "hcl"
        key = f"{kind}:{file.number}"
        known = self._read.get(key)
        if known is None:
            known = self._read[key] = self._from_cache(key) or self._parse(file, key, kind)
        return known

    def content(self, file: FolderFile) -> bytes | None:
        """Return what a file holds, None where it cannot be read or is larger than code is."""
        try:
            with open(f"{self.tree.top}/{file.real or file.path}", "rb") as stream:
                is_read = os.fstat(stream.fileno()).st_size <= _LARGEST_BYTES
                return stream.read() if is_read else None
        except (OSError, ValueError):
            return None

    def real(self, place: str) -> str:
        """Return where a place really is; each folder of the tree is looked at once."""
        is_plain = place.startswith(f"{self.tree.top}/") and not self.links_to(place)
        return place if is_plain else os.path.realpath(place)

    def links_to(self, place: str) -> list[str]:
        """Return the links on the way to a place, from the top of the tree."""
        top = f"{self.tree.top}/"
        found: list[str] = []
        end = len(top) if place.startswith(top) else -1
        while end > 0:
            end = place.find("/", end + 1)
            above = place if end < 0 else place[:end]
            is_link = self._links.get(above)
            if is_link is None:
                is_link = self._links[above] = os.path.islink(above)
            if is_link:
                found.append(above[len(top) :])
        return found

    def _from_cache(self, key: str) -> CodeFile | None:
        from stackyard.sources.stacks.code_file import CodeFile  # lazy: only where code is looked at

        row = self.cache.code.get(key)
        try:
            return None if row is None else CodeFile.from_json(row)
        except ValueError:
            return None

    def _parse(self, file: FolderFile, key: str, kind: str) -> CodeFile:
        from stackyard.sources.stacks.code_file import CodeFile  # lazy: as above

        data = self.content(file)
        if data is None:
            return CodeFile(problem=(1, "The file cannot be read, or is larger than 16 MiB."))
        if kind == "json":
            from stackyard.sources.stacks.json_code import parse_json_code  # lazy: for files that are new

            found = parse_json_code(data)
        else:
            from stackyard.sources.stacks.hcl import parse_hcl  # lazy: tree-sitter, for files that are new

            found = parse_hcl(data)
        if file.number and file.number != "unreadable":
            self.cache.code.put(key, found.to_json())
        return found

    def _file(self, path: str) -> FolderFile:
        number = self.tree.number(path)
        if path not in self.tree.links:
            return FolderFile(path, number)
        real = os.path.relpath(os.path.realpath(f"{self.tree.top}/{path}"), self.tree.top)
        return FolderFile(path, self.tree.number(real), real)
