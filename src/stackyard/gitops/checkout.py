"""Folders with the files of a commit, or of the merge of a pull request.

They are made of a bare copy of the repository. In the cache of the user, for each one::

    mirror.git/      a bare copy, which is only fetched into
    mirror.lock      held by the one that fetches
    work/NAME/       the files of a commit, in a git checkout without hooks, filters, settings or an address
    work/NAME.lock   held as long as somebody works there

NAME is that of the tree, so that whoever applies what was planned has the files at the same place. A folder
whose lock nobody holds was left by a process that was killed, and is removed by the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories
from stackyard.base.errors import FileError
from stackyard.base.locks import exclusive, hold_file, open_file_lock
from stackyard.clients.git.fetch import RemoteHead, fetch, find_object_format, is_ref, require_refs
from stackyard.clients.git.files_of import write_files
from stackyard.clients.git.merge import make_merge, merge_trees, read_tree
from stackyard.clients.git.push import push
from stackyard.clients.git.run import OWN_SETTINGS, GitError, git_command, run_git
from stackyard.clients.git.staging import make_bare
from stackyard.gitops.model import Checkout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from stackyard.base.locks import FileLock
    from stackyard.clients.forge.model import CloneAccess

__all__ = ["Checkouts", "open_checkouts"]

_NAME_DIGITS = 16
# How many may work on the same tree at once.
_MOST_PLACES = 100
_TRASH = "trash-"


@dataclass(slots=True, kw_only=True)
class Checkouts:
    """The commits of one repository, and folders with their files.

    Args:
        folder: Where they are; see `open_checkouts`.
        authority: The authority of the host's certificate; None for those of the system.
        may_be_local: Whether the repository may be a folder of this machine.
    """

    folder: Path
    authority: Path | None = None
    may_be_local: bool = False
    _is_clean: bool = field(default=False, init=False)

    @property
    def mirror(self) -> Path:
        """The bare copy."""
        return self.folder / "mirror.git"

    async def fetch(self, access: CloneAccess, names: Iterable[str]) -> dict[str, str]:
        """Bring refs and commits with their history, and return by each name its commit.

        Args:
            access: Where the repository is, and what opens it.
            names: Whole refs such as `refs/heads/main` or `refs/pull/7/head`, or whole numbers of commits.

        Raises:
            FetchAddressError: The address is not one to send a token to.
            GitRefError: A name is not one that git allows.
            GitUnreachableError: The host does not answer.
            GitRefusedError: The host refuses, or has none of that name.
        """
        wanted = require_refs(names)
        remote = RemoteHead(access.url, access.headers, self.authority, may_be_local=self.may_be_local)
        directories.ensure_private(self.folder)
        path = self.folder / "mirror.lock"
        async with exclusive(path, "a fetch", lambda holder: None) as lock:
            if not (self.mirror / "HEAD").exists():
                await self._make_mirror(remote)
            return await fetch(remote, self.mirror, wanted, lock.descriptor)

    async def push(
        self, access: CloneAccess, place: Checkout, commit: str, ref: str, *, expect: str | None
    ) -> None:
        """Set a branch of the repository to a commit that was made in a checkout, if it is as expected.

        Args:
            access: Where the repository is, and what opens it.
            place: The checkout.
            commit: The commit.
            ref: The whole ref of the branch.
            expect: The commit that it is at; None where it is not there yet.

        Raises:
            GitUnreachableError: The host does not answer.
            GitRefusedError: The host refuses, or somebody else changed the branch.
        """
        remote = RemoteHead(access.url, access.headers, self.authority, may_be_local=self.may_be_local)
        await push(remote, place.folder, commit, ref, expect=expect)

    async def find_written_tree(self, place: Checkout, commit: str) -> str:
        """Return the tree of a commit that was made in a checkout."""
        require_refs((commit,))
        return await read_tree(place.folder / ".git", commit)

    async def _make_mirror(self, remote: RemoteHead) -> None:
        form = await find_object_format(remote, self.folder)
        half = self.folder / "mirror.half"
        shutil.rmtree(half, ignore_errors=True)
        make_bare(half, form)
        os.replace(half, self.mirror)

    async def find_merge_base(self, one: str, other: str) -> str | None:
        """Return the newest commit that two commits have in common, None where there is none."""
        self._require((one, other))
        own = {**OWN_SETTINGS, "GIT_DIR": str(self.mirror)}
        try:
            said = await run_git(git_command(("merge-base", one, other), self.mirror, extra=own))
        except GitError:
            return None
        return said.split("\n")[0] or None

    async def find_tree(self, commit: str) -> str:
        """Return the tree of a commit.

        Raises:
            GitError: It was not fetched.
        """
        self._require((commit,))
        return await read_tree(self.mirror, commit)

    async def find_merge_tree(self, base: str, head: str) -> str:
        """Return the tree that a merge of two commits has.

        Raises:
            GitTooOldError: The installed git cannot make it.
            MergeConflictError: They are in conflict.
            GitError: One of them was not fetched, or they have no history in common.
        """
        self._require((base, head))
        return await merge_trees(self.mirror, base, head)

    @contextlib.asynccontextmanager
    async def merge_result(self, base: str, head: str, *, branch: str = "main") -> AsyncIterator[Checkout]:
        """Give a folder with the files that a merge of two commits has, until the body ends.

        Args:
            base: The last commit of the base branch.
            head: The commit that is to be merged.
            branch: What the base branch is called.

        Raises:
            GitTooOldError: The installed git cannot make the merge.
            MergeConflictError: They are in conflict.
            GitError: One of them was not fetched, or they have no history in common.
        """
        tree = await self.find_merge_tree(base, head)
        commit = await make_merge(self.mirror, base, head, tree)
        async with self._open(commit, tree, branch, base) as checkout:
            yield checkout

    @contextlib.asynccontextmanager
    async def at(
        self, commit: str, *, branch: str = "main", tip: str | None = None
    ) -> AsyncIterator[Checkout]:
        """Give a folder with the files of a commit, until the body ends.

        Args:
            commit: The commit.
            branch: What the default branch is called.
            tip: The last commit of the default branch; that commit itself when absent.

        Raises:
            GitError: It was not fetched.
        """
        tree = await self.find_tree(commit)
        async with self._open(commit, tree, branch, tip or commit) as checkout:
            yield checkout

    @contextlib.asynccontextmanager
    async def _open(self, commit: str, tree: str, branch: str, tip: str) -> AsyncIterator[Checkout]:
        require_refs((f"refs/heads/{branch}", tip))
        if not self._is_clean:
            await asyncio.to_thread(self.clean)
            self._is_clean = True
        lock, place = await asyncio.to_thread(self._take_place, tree[:_NAME_DIGITS])
        with lock:
            try:
                await write_files(self.mirror, commit, place, {branch: tip})
                yield Checkout(folder=place, commit=commit, tree=tree, hold=lock.descriptor)
            finally:
                await asyncio.shield(asyncio.to_thread(_remove, place))

    def _require(self, commits: Iterable[str]) -> None:
        require_refs(commits)
        if not self.mirror.is_dir():
            raise GitError(f"Nothing of the repository was fetched into {self.folder} yet.")

    # --- Folders

    @property
    def _work(self) -> Path:
        return self.folder / "work"

    def _take_place(self, name: str) -> tuple[FileLock, Path]:
        """Return a new folder that nobody else works in, with its lock held."""
        work = directories.ensure_private(self._work)
        with hold_file(self.folder / "work.lock"):
            for number in range(1, _MOST_PLACES + 1):
                place = work / (name if number == 1 else f"{name}-{number}")
                lock = open_file_lock(place.with_name(f"{place.name}.lock"))
                if lock.try_acquire():
                    _remove(place)
                    place.mkdir(mode=0o700)
                    return lock, place
                lock.close()
        raise FileError(f"{_MOST_PLACES} checkouts of the same files are in use below {work}.")

    def clean(self) -> None:
        """Remove the folders that nobody works in: those of processes that were killed."""
        if not self._work.is_dir():
            return
        with hold_file(self.folder / "work.lock"):
            for path in sorted(self._work.glob("*.lock")):
                with open_file_lock(path) as lock:
                    if lock.try_acquire():
                        self._throw_away(path.with_suffix(""))
                        path.unlink(missing_ok=True)
        for left in self._work.glob(f"{_TRASH}*"):
            _remove(left)

    def _throw_away(self, place: Path) -> None:
        """Take a folder out of the way; it is removed where nobody waits for it."""
        if place.exists():
            os.replace(place, place.with_name(f"{_TRASH}{secrets.token_hex(8)}"))


def open_checkouts(
    url: str, *, cache: Path | None = None, authority: Path | None = None, may_be_local: bool = False
) -> Checkouts:
    """Return the checkouts of a repository.

    Args:
        url: Its address, without anything secret.
        cache: The folder of all repositories; that of the user when absent.
        authority: The authority of the host's certificate; None for those of the system.
        may_be_local: Whether the address may be a folder of this machine.
    """
    own = hashlib.sha256(url.encode()).hexdigest()[:_NAME_DIGITS]
    folder = Path(os.path.realpath(cache or directories.cache_folder())) / "gitops" / own
    return Checkouts(folder=folder, authority=authority, may_be_local=may_be_local)


def is_branch(name: str) -> bool:
    """Return whether a text can be the name of a branch."""
    return is_ref(f"refs/heads/{name}")


def _remove(folder: Path) -> None:
    """Remove a folder, whatever a program made of its permissions."""
    shutil.rmtree(folder, ignore_errors=True)
    if not os.path.lexists(folder):
        return
    with contextlib.suppress(OSError):
        folder.chmod(stat.S_IRWXU)
    for here, names, _ in os.walk(folder):
        for name in names:
            path = Path(here, name)
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)
