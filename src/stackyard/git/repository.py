"""A repository and its index."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard import process
from stackyard.errors import StackyardError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["GitError", "IndexEntry", "Repository", "find_repository", "require_repository"]

_TIMEOUT_S = 300.0
# What is read of blobs at once: a good part of what a program may write.
_BATCH_BYTES = 16 * 2**20
_REGULAR_FILES = ("100644", "100755")


class GitError(StackyardError):
    """git refused or failed, or there is no repository where one is needed."""

    code = "E-GIT"
    summary = "git could not do what was needed"
    default_remedy = "Run the command inside a git repository that you own."


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
        for line in await self._listed("ls-files", "--stage", "-z"):
            described, _, path = line.partition("\t")
            mode, blob, stage = described.split(" ")
            if mode in _REGULAR_FILES and stage == "0":
                found.append(IndexEntry(path=path, blob=blob))
        return tuple(found)

    async def staged(self) -> tuple[IndexEntry, ...]:
        """Return the files of the index that the next commit adds or changes."""
        arguments = ("diff", "--cached", "--name-only", "-z", "--no-renames", "--diff-filter=AMT")
        changed = set(await self._listed(*arguments))
        return tuple(entry for entry in await self.index() if entry.path in changed)

    async def named(self, names: Sequence[str]) -> list[str]:
        """Return the files of these names anywhere in the working tree, tracked, new or ignored."""
        patterns = [f":(top,glob)**/{name}" for name in names]
        return sorted(set(await self._listed("ls-files", "-z", "--cached", "--others", "--", *patterns)))

    async def contents(self, blobs: Iterable[str], *, largest_bytes: int) -> dict[str, str]:
        """Return the text of blobs; larger ones are left out, and bytes that are not UTF-8 are replaced."""
        wanted = list(dict.fromkeys(blobs))
        asked = "".join(f"{blob}\n" for blob in wanted).encode()
        answer = await self._run("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=asked)
        sizes = [(line.split(" ")[0], int(line.split(" ")[1])) for line in answer.splitlines()]
        texts: dict[str, str] = {}
        for batch in _batches([one for one in sizes if one[1] <= largest_bytes]):
            texts |= await self._batch(batch)
        return texts

    async def _batch(self, blobs: Sequence[str]) -> dict[str, str]:
        # Sizes are in bytes and the answer is text: a line that no blob can hold separates them.
        mark = secrets.token_hex(16)
        asked = "".join(f"{blob}\n" for blob in blobs).encode()
        answer = await self._run("cat-file", f"--batch={mark} %(objectname)", stdin=asked)
        texts = {}
        for part in f"\n{answer}".split(f"\n{mark} ")[1:]:
            blob, _, text = part.partition("\n")
            texts[blob] = text
        return {blob: text.removesuffix("\n") if blob == blobs[-1] else text for blob, text in texts.items()}

    async def _listed(self, *arguments: str) -> list[str]:
        return [one for one in (await self._run(*arguments)).split("\0") if one]

    async def _run(self, *arguments: str, stdin: bytes | None = None) -> str:
        return await _git(arguments, self.root, stdin=stdin)


def _batches(sizes: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    batch: list[str] = []
    total = 0
    for blob, size in sizes:
        if batch and total + size > _BATCH_BYTES:
            yield batch
            batch, total = [], 0
        batch.append(blob)
        total += size
    if batch:
        yield batch


async def find_repository(folder: Path) -> Repository | None:
    """Return the repository that a folder is in, if it is in one.

    Raises:
        GitError: git cannot be run, or does not trust the repository.
    """
    asked = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "hooks")
    try:
        answer = await _git(asked, folder)
    except GitError as err:
        if "not a git repository" in err.detail:
            return None
        raise
    root, hooks = answer.splitlines()
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


async def _git(arguments: Sequence[str], folder: Path, *, stdin: bytes | None = None) -> str:
    # A hook is told by such variables which index is about to be committed.
    ours = {name: value for name, value in os.environ.items() if name.startswith("GIT_")}
    env = process.environment({**ours, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"})
    command = process.Command(
        argv=("git", *arguments), env=env, cwd=folder, stdin=stdin, timeout_s=_TIMEOUT_S
    )
    try:
        return (await process.run(command)).stdout
    except process.ProcessFailedError as err:
        raise GitError(err.detail) from err
