"""The code of a repository at another commit: what the rules compare with.

What is the same there as in the index is known by the number of its content; only the rest is read from git.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.policy.code import CodeFacts
from stackyard.policy.sources import local_folder
from stackyard.sources.stacks.changes import BaseNotFoundError
from stackyard.sources.stacks.kinds import LOCK_FILE, STACK_FILE, is_code
from stackyard.sources.stacks.repository import REPOSITORY_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.stacks.lock_file import LockFile
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["BaseCode", "read_base"]

_LARGEST_BYTES = 16 * 2**20


@dataclass(kw_only=True)
class BaseCode:
    """The code at a commit.

    Attributes:
        name: How the user named it.
        repository: The repository as it is now.
        files: By folder, the blobs of the files that count, by name; paths are from the top of the tree.
        texts: Contents by blob.
    """

    name: str
    repository: StackRepository
    files: Mapping[str, Mapping[str, str]]
    texts: Mapping[str, str]
    _facts: dict[str, CodeFacts] = field(default_factory=dict)

    def called_folders(self, path: str) -> tuple[str, ...]:
        """Return a folder and those of all local modules that its code called, at any depth."""
        found = [path]
        for folder in found:
            for said in self.code(folder).values():
                for call in said.modules:
                    place = local_folder(self.repository.reader, folder, call.source)
                    if place is not None and place not in found:
                        found.append(place)
        return tuple(found)

    def code(self, folder: str) -> dict[str, CodeFacts]:
        """Return what the files of a folder said, by their paths."""
        named = self.files.get(folder, {})
        return {f"{folder}/{name}": self._read(name, blob) for name, blob in named.items() if is_code(name)}

    def lock(self, folder: str) -> LockFile | None:
        """Return the lock file of a folder, None where it had none."""
        from stackyard.sources.stacks.lock_file import parse_lock  # lazy: tree-sitter

        text = self.texts.get(self.files.get(folder, {}).get(LOCK_FILE, ""))
        return None if text is None else parse_lock(text.encode())

    def is_critical(self, folder: str) -> bool:
        """Return whether a stack waited for others before it took a new major version."""
        own = self._settings(folder, STACK_FILE)
        if "critical" in own:
            return own["critical"] is not False
        defaults = self._settings(self.repository.prefix.rstrip("/"), REPOSITORY_FILE).get("defaults")
        return not (isinstance(defaults, dict) and defaults.get("critical") is False)

    def _settings(self, folder: str, name: str) -> dict[str, Any]:
        from yaml import YAMLError  # lazy: only with a base

        from stackyard.base.documents.yamltext import parse_yaml  # lazy: as above

        text = self.texts.get(self.files.get(folder, {}).get(name, ""))
        try:
            said = None if text is None else parse_yaml(text)
        except (YAMLError, ValueError):
            return {}
        return said if isinstance(said, dict) else {}

    def _read(self, name: str, blob: str) -> CodeFacts:
        from stackyard.policy.context import parse_code  # lazy: the other way round

        kind = "json" if name.endswith(".json") else "hcl"
        key = f"{kind}:{blob}"
        known = self._facts.get(key)
        if known is None:
            row = self.repository.cache.policy.get(key)
            try:
                known = CodeFacts() if row is None else CodeFacts.from_json(row)
            except ValueError:
                known, row = CodeFacts(), None
            if row is None and blob in self.texts:
                known = parse_code(self.texts[blob].encode(), kind)
                self.repository.cache.policy.put(key, known.to_json())
            self._facts[key] = known
        return known


async def read_base(repository: StackRepository, name: str) -> BaseCode:
    """Read the code at a commit.

    Raises:
        BaseNotFoundError: This is no git repository, or there is no such commit.
        GitError: git failed, or does not trust the repository.
    """
    from stackyard.clients import git  # lazy: processes, only with a base
    from stackyard.clients.git.compare import Comparison  # lazy: as above

    tree = repository.tree
    if not tree.is_git:
        raise BaseNotFoundError(
            f"{tree.top} is not a git repository, so that there is nothing to compare with.",
            remedy="Run the command inside a git repository, or without --base.",
        )
    compare = Comparison(top=Path(tree.top))
    commit = await compare.find_commit(name)
    if commit is None:
        raise BaseNotFoundError(f"There is no commit `{name}` in this repository.")
    if tree.index is None:
        tree.index = await compare.list_index()
    blobs = {path: one.blob for path, one in tree.index.files.items()}
    for path, changed in (await compare.list_staged_changes(commit)).items():
        blobs[path] = changed.old
    files: dict[str, dict[str, str]] = {}
    wanted: set[str] = set()
    known = repository.cache.policy.load()
    for path, blob in blobs.items():
        folder, file = os.path.split(path)
        if blob and (is_code(file) or file in (LOCK_FILE, STACK_FILE, REPOSITORY_FILE)):
            files.setdefault(folder, {})[file] = blob
            kind = "json" if file.endswith(".json") else "hcl"
            if not is_code(file) or f"{kind}:{blob}" not in known:
                wanted.add(blob)
    found = await git.require_repository(Path(tree.top))
    texts = await found.contents(sorted(wanted), largest_bytes=_LARGEST_BYTES)
    return BaseCode(name=name, repository=repository, files=files, texts=texts)
