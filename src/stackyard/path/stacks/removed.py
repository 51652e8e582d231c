"""A stack whose folder is gone: to destroy it, its code is taken from the commit that had it last."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError
from stackyard.clients.git.blobs import describe_objects, read_objects
from stackyard.clients.git.run import GitError, git_command, read_git, run_git
from stackyard.sources.stacks.kinds import STACK_FILE
from stackyard.sources.stacks.settings import parse_stack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from stackyard.base import process
    from stackyard.state.targets import TargetRecord

__all__ = ["ProtectedStackGoneError", "StackGoneError", "restore_code", "was_protected"]

_LINK = "120000"
_SUBMODULE = "160000"
_EXECUTABLE = "100755"


class StackGoneError(InvalidInputError):
    """The folder of a stack is gone, and no commit is known that had it."""

    code = "E-STACK-GONE"
    summary = "The code of a removed stack is not to be found"
    default_remedy = "Bring its folder back (`git checkout COMMIT -- FOLDER`), and destroy the stack then."


class ProtectedStackGoneError(InvalidInputError):
    """A stack was protected when its folder was removed; the removal takes no protection off."""

    code = "E-STACK-GONE-PROTECTED"
    summary = "A removed stack was protected"
    default_remedy = "Bring its folder back, remove `protected` from its stack.yaml, and destroy it then."


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    blob: str
    path: str


@contextlib.asynccontextmanager
async def restore_code(root: Path, record: TargetRecord) -> AsyncIterator[tuple[Path, str]]:
    """Give a folder with the repository as it was when it had a stack last, and the commit.

    Args:
        root: The top of the repository.
        record: What was applied.

    Raises:
        StackGoneError: No commit is known that had it.
        GitError: git cannot tell.
    """
    commit = await _find_commit(root, record)
    with tempfile.TemporaryDirectory(prefix="stackyard-removed-") as folder:
        await _write_tree(root, commit, Path(folder))
        # The stacks may be in a folder of a larger repository.
        below = (await run_git(git_command(("rev-parse", "--show-prefix"), root))).strip()
        yield Path(folder) / below, commit


async def _find_commit(root: Path, record: TargetRecord) -> str:
    """Return the last commit of this branch that had the folder, or the one that was applied."""
    if not record.path:
        raise StackGoneError(f"Nothing says where the code of {record.target} was.")
    try:
        removing = ("rev-list", "-1", "HEAD", "--", record.path)
        last = (await run_git(git_command(removing, root))).strip()
    except GitError as err:
        raise StackGoneError(f"The folder {record.path} of {record.target} is gone: {err.detail}") from err
    known = (last, f"{last}^") if last else ()
    for commit in (*known, *((record.commit,) if record.commit else ())):
        if await _has(root, commit, record.path):
            return (await run_git(git_command(("rev-parse", commit), root))).strip()
    raise StackGoneError(f"No commit of this branch has the folder {record.path} of {record.target}.")


async def was_protected(root: Path, record: TargetRecord) -> bool:
    """Return whether a removed stack was protected when it was there last, applied or not.

    Args:
        root: The top of the repository.
        record: What was applied.
    """
    try:
        removing = ("rev-list", "-1", "HEAD", "--", record.path)
        last = (await run_git(git_command(removing, root))).strip()
        shown = await read_git(git_command(("show", f"{last}^:./{record.path}/{STACK_FILE}"), root))
    except GitError:
        return False
    return await asyncio.to_thread(_says_protected, shown, f"{record.path}/{STACK_FILE}")


def _says_protected(content: bytes, shown: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="stackyard-removed-") as folder:
        path = Path(folder, STACK_FILE)
        path.write_bytes(content)
        return bool(parse_stack(path, shown).get("protected"))


async def _has(root: Path, commit: str, path: str) -> bool:
    try:
        return bool(await read_git(git_command(("ls-tree", "-z", commit, "--", f"{path}/"), root)))
    except GitError:
        return False


async def _write_tree(root: Path, commit: str, folder: Path) -> None:
    """Write all files of a commit into a folder; nothing that the repository names is run."""
    answer = await read_git(git_command(("ls-tree", "-r", "-z", "--full-tree", commit), root))
    entries = [_parse(line) for line in answer.decode(errors="surrogateescape").split("\0") if line]
    files = [entry for entry in entries if entry.mode != _SUBMODULE]

    def make(arguments: Sequence[str], stdin: bytes) -> process.Command:
        return git_command(arguments, root, stdin=stdin)

    contents: dict[str, list[_Entry]] = {}
    for entry in files:
        contents.setdefault(entry.blob, []).append(entry)
    objects = await describe_objects(make, contents)
    async for batch in read_objects(make, objects):
        for found, data in batch:
            for entry in contents[found.number]:
                _write(folder, entry, data)


def _parse(line: str) -> _Entry:
    described, _, path = line.partition("\t")
    mode, _, blob = described.split(" ")
    return _Entry(mode, blob, path)


def _write(folder: Path, entry: _Entry, data: bytes) -> None:
    parts = PurePosixPath(entry.path).parts
    if ".." in parts or os.path.isabs(entry.path) or ".git" in parts:
        return
    path = folder / entry.path
    with contextlib.suppress(FileExistsError):
        path.parent.mkdir(parents=True)
    if not _is_below(path, folder):
        return
    if entry.mode == _LINK:
        path.symlink_to(data.decode(errors="surrogateescape"))
        return
    path.write_bytes(data)
    if entry.mode == _EXECUTABLE:
        path.chmod(0o700)


def _is_below(path: Path, folder: Path) -> bool:
    """Return whether a file would be written below a folder: a link of the same commit may lead elsewhere."""
    return path.parent.resolve().is_relative_to(folder.resolve())
