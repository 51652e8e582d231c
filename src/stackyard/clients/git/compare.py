"""What differs between commits, the index and the working tree, without running what a repository names.

Only git's own data is compared by git. Files of the working tree are listed here, and never read through
filters: who asks compares their contents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.process import ProcessFailedError
from stackyard.clients.git.index_file import IndexFile, TrackedFile
from stackyard.clients.git.run import GitError, git_command, read_git, run_git

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["ChangedFile", "Comparison"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that differs.

    Attributes:
        old: The number of its content before, empty where it was not there.
        new: The number of its content now, empty where it is gone.
    """

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A working tree whose changes are asked for.

    Args:
        top: The top of the working tree.
    """

    top: Path

    async def list_refs(self, *names: str) -> dict[str, tuple[str, str]]:
        """Return the commit of each of some refs that exist, and the ref that it leads to where it is one.

        Raises:
            GitError: This is no repository, or git does not trust it.
        """
        form = "--format=%(refname)%00%(objectname)%00%(symref)"
        listed = await self._run("for-each-ref", form, *names)
        rows = (line.split("\0") for line in listed.splitlines())
        return {name: (commit, leads_to) for name, commit, leads_to in rows}

    async def find_commit(self, name: str) -> str | None:
        """Return the number of a commit, None where there is no such commit here."""
        try:
            asked = ("rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}")
            return (await self._run(*asked)).strip() or None
        except GitError as err:
            if "dubious ownership" in err.detail or "not a git repository" in err.detail:
                raise
            return None

    async def find_merge_base(self, one: str, other: str) -> str | None:
        """Return the newest commit that two commits have in common, None where there is none here."""
        try:
            return (await self._run("merge-base", one, other)).split("\n")[0] or None
        except GitError:
            return None

    async def list_untracked(self) -> list[str]:
        """Return the files of the working tree that are not in the index and not ignored."""
        listed = await self._run("ls-files", "-z", "--others", "--exclude-standard")
        return [path for path in listed.split("\0") if path]

    async def list_index(self) -> IndexFile:
        """Return what the index holds, for one whose file has a form that is not known; without any times."""
        files = {}
        for line in (await self._run("ls-files", "--stage", "-z")).split("\0"):
            described, _, path = line.partition("\t")
            if path:
                mode, blob, stage = described.split(" ")
                number = blob if stage == "0" else ""
                files[path] = TrackedFile(number, int(mode, 8), (-1, -1, -1, -1, -1, -1))
        form = (await self._run("rev-parse", "--show-object-format")).strip()
        return IndexFile(files=files, written_ns=0, object_format=form)

    async def list_staged_changes(self, base: str) -> dict[str, ChangedFile]:
        """Return what differs between a commit and the index.

        Raises:
            GitError: The commit, or a part of it, is not here.
        """
        listed = await self._run("diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", base)
        return _read_raw(listed)

    async def list_changes(self, bases: Iterable[str], head: str) -> dict[str, dict[str, ChangedFile] | None]:
        """Return, for each of some commits, what differs between it and another one; None if it is gone.

        Raises:
            GitError: The other one, or a part of one of them, is not here.
        """
        wanted = list(dict.fromkeys(bases))
        trees = await self._find_trees([head, *wanted])
        if trees[head] is None:
            raise GitError(f"The commit {head} is not in this repository.")
        pairs = {tree: f"{tree} {trees[head]}\n" for tree in trees.values() if tree is not None}
        command = git_command(
            ("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"),
            self.top,
            stdin="".join(pairs.values()).encode(),
        )
        found = _read_many(await run_git(command))
        return {base: None if (tree := trees[base]) is None else found.get(tree, {}) for base in wanted}

    async def _find_trees(self, commits: Sequence[str]) -> dict[str, str | None]:
        """Return the tree of each of some commits, None for one that is not here."""
        asked = "".join(f"{commit}^{{tree}}\n" for commit in commits).encode()
        form = "--batch-check=%(objectname) %(objecttype)"
        answer = await run_git(git_command(("cat-file", form), self.top, stdin=asked))
        kinds = [line.rpartition(" ") for line in answer.splitlines()]
        return {
            commit: number if kind == "tree" else None
            for commit, (number, _, kind) in zip(commits, kinds, strict=True)
        }

    async def read_file(self, commit: str, path: str) -> bytes | None:
        """Return what a file held at a commit, None where it was not there."""
        try:
            return await read_git(git_command(("cat-file", "blob", f"{commit}:{path}"), self.top))
        except GitError:
            return None

    async def find_last_edit(self, commit: str, word: str, paths: Sequence[str]) -> float:
        """Return when a word last came to some files or left them, on the way to a commit; 0 if never.

        Raises:
            GitError: The commit is not here.
        """
        asked = ("log", "-1", "--format=%ct", f"-S{word}", commit, "--", *paths)
        return float((await self._run(*asked)).strip() or 0)

    async def find_files_with(self, commit: str, pattern: str) -> list[str]:
        """Return the paths of the files of a commit that have a line that fits an extended expression.

        Raises:
            GitError: The commit is not here.
        """
        asked = ("grep", "-z", "--name-only", "-I", "-E", "-e", pattern, commit)
        try:
            listed = await self._run(*asked)
        except GitError as err:
            # It ends with 1 where there is none.
            if isinstance(err.__cause__, ProcessFailedError) and err.__cause__.returncode == 1:
                return []
            raise
        return [path.removeprefix(f"{commit}:") for path in listed.split("\0") if path]

    async def is_shallow(self) -> bool:
        """Return whether commits of the past are missing here.

        Raises:
            GitError: This is no repository, or git does not trust it.
        """
        return (await self._run("rev-parse", "--is-shallow-repository")).strip() == "true"

    async def list_files(self, commit: str) -> list[str]:
        """Return the paths of all files of a commit."""
        listed = await self._run("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
        return [path for path in listed.split("\0") if path]

    async def _run(self, *arguments: str) -> str:
        return await run_git(git_command(arguments, self.top))


def _read_raw(listed: str) -> dict[str, ChangedFile]:
    """Read what `--raw -z` writes: a description, then a path."""
    fields = listed.split("\0")
    return dict(map(_read_row, fields[0::2], fields[1::2]))


def _read_many(listed: str) -> dict[str, dict[str, ChangedFile]]:
    """Read what `--raw -z` writes for several pairs of trees: before each, a line that names the two."""
    fields = listed.split("\0")
    found: dict[str, dict[str, ChangedFile]] = {}
    current: dict[str, ChangedFile] = {}
    for described, path in zip(fields[0::2], [*fields[1::2], ""], strict=False):
        *headings, row = described.split("\n")
        for heading in headings:
            current = found.setdefault(heading.partition(" ")[0], {})
        if row:
            name, changed = _read_row(row, path)
            current[name] = changed
    return found


def _read_row(described: str, path: str) -> tuple[str, ChangedFile]:
    _, _, old, new, _ = described.split(" ", 4)
    return path, ChangedFile(old=_number(old), new=_number(new))


def _number(text: str) -> str:
    """Return the number of an object, empty for the one that stands for none."""
    return text if text.strip("0") else ""
