"""A repository and its index."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.clients.git.blobs import describe_objects, read_objects
from stackyard.clients.git.run import GitError, git_command, run_git

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stackyard.base import process

__all__ = ["GitError", "IndexEntry", "Repository", "find_repository", "require_repository"]

_REGULAR_FILES = ("100644", "100755")
_SHARED_SCOPES = ("global", "system")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """A file as it would be committed now.

    Attributes:
        path: Where it is, from the root of the repository, with slashes.
        blob: The number of its content.
    """

    path: str
    blob: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository with a working tree.

    Attributes:
        root: The top of its working tree.
        hooks: The folder of its hooks, as `core.hooksPath` says or the usual one.
    """

    root: Path
    hooks: Path

    async def index(self) -> tuple[IndexEntry, ...]:
        """Return every regular file of the index: all that is tracked or staged."""
        found = []
        for line in await self._list_paths("ls-files", "--stage", "-z"):
            described, _, path = line.partition("\t")
            mode, blob, stage = described.split(" ")
            if mode in _REGULAR_FILES and stage == "0":
                found.append(IndexEntry(path=path, blob=blob))
        return tuple(found)

    async def list_staged(self) -> tuple[IndexEntry, ...]:
        """Return the files of the index that the next commit adds or changes."""
        arguments = (
            "diff",
            "--cached",
            "--name-only",
            "-z",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--diff-filter=AMT",
        )
        changed = set(await self._list_paths(*arguments))
        return tuple(entry for entry in await self.index() if entry.path in changed)

    async def list_tracked(self, paths: Iterable[Path]) -> frozenset[Path]:
        """Return those of some files that are tracked or staged."""
        return await self._list_files(("ls-files", "-z", "--cached"), paths)

    async def list_ignored(self, paths: Iterable[Path]) -> frozenset[Path]:
        """Return those of some files that git ignores and does not track."""
        return await self._list_files(
            ("ls-files", "-z", "--others", "--ignored", "--exclude-standard"), paths
        )

    async def has_shared_hooks(self) -> bool:
        """Return whether the folder of hooks is that of all repositories of the user or the machine."""
        asked = ("config", "--show-scope", "--get", "core.hooksPath")
        try:
            said = await run_git(git_command(asked, self.root, for_hook=True, with_hooks_path=True))
        except GitError:
            # It is not set, or git is too old to say where.
            return False
        return said.partition("\t")[0] in _SHARED_SCOPES

    async def list_marked(self, paths: Iterable[str], attribute: str) -> frozenset[str]:
        """Return those of some files of the index for which `.gitattributes` sets an attribute."""
        asked = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
        words = ("check-attr", "--cached", "-z", "--stdin", attribute)
        fields = (await run_git(self._command(words, asked))).split("\0")
        return frozenset(
            path for path, value in zip(fields[0::3], fields[2::3], strict=False) if value == "set"
        )

    async def _list_files(self, arguments: Sequence[str], paths: Iterable[Path]) -> frozenset[Path]:
        asked = {}
        for path in paths:
            # The file itself may be a link; git knows it by its own name.
            real = path.parent.resolve() / path.name
            if real.is_relative_to(self.root):
                asked[real.relative_to(self.root).as_posix()] = path
        if not asked:
            return frozenset()
        found = await self._list_paths(*arguments, "--", *(f":(literal){name}" for name in asked))
        return frozenset(asked[name] for name in found if name in asked)

    async def contents(self, blobs: Iterable[str], *, largest_bytes: int) -> dict[str, str]:
        """Return the text of blobs; larger ones are left out, and bytes that are no text are replaced."""
        objects = await describe_objects(self._command, blobs)
        texts: dict[str, str] = {}
        async for batch in read_objects(self._command, (one for one in objects if one.size <= largest_bytes)):
            texts |= {one.number: _decode(content) for one, content in batch}
        return texts

    async def _list_paths(self, *arguments: str) -> list[str]:
        # Two names that are no text have to stay two.
        answer = await run_git(self._command(arguments))
        return [one for one in answer.split("\0") if one]

    def _command(self, arguments: Sequence[str], stdin: bytes | None = None) -> process.Command:
        return git_command(arguments, self.root, stdin=stdin, for_hook=True)


def _decode(content: bytes) -> str:
    """Return a text; those of Windows may be in UTF-16, which begins with a mark."""
    is_wide = content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return content.decode("utf-16" if is_wide else "utf-8", errors="replace")


async def find_repository(folder: Path) -> Repository | None:
    """Return the repository that a folder is in, if it is in one.

    Raises:
        GitError: git cannot be run, or does not trust the repository.
    """
    asked = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "hooks")
    try:
        answer = await run_git(git_command(asked, folder, for_hook=True, with_hooks_path=True))
    except GitError as err:
        if "not a git repository" in err.detail:
            return None
        raise
    root, hooks = answer.removesuffix("\n").split("\n")
    return Repository(root=Path(root), hooks=Path(hooks))


async def require_repository(folder: Path) -> Repository:
    """Return the repository that a folder is in.

    Raises:
        GitError: It is in none.
    """
    found = await find_repository(folder)
    if found is None:
        raise GitError(f"{folder} is not inside a git repository.")
    return found
