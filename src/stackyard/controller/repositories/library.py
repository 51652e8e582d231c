"""All repositories that are served: found in a folder, copied to a private one that ends with us."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import FileError, InvalidInputError
from stackyard.base.locks import FileLock, open_file_lock
from stackyard.base.process import open_files
from stackyard.controller.refusals import Code, RequestRefusedError
from stackyard.controller.repositories.check import PublishedCheck
from stackyard.controller.repositories.served import ServedRepository
from stackyard.controller.repositories.spool import Spools
from stackyard.controller.repositories.stored_verdicts import forget_old

if TYPE_CHECKING:
    from collections.abc import Collection

    from stackyard.base import events

__all__ = ["Library", "NoRepositoriesError"]

_PREFIX = "stackyard-repositories-"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_AT_ONCE = max(4, 2 * (os.cpu_count() or 1))


class NoRepositoriesError(InvalidInputError):
    """Repositories should be served, and the folder has none."""

    code = "E-CONTROLLER-REPOSITORIES"
    summary = "There is no repository to serve"
    default_remedy = "Name the folder that holds them with --repos-dir DIR, or leave out --repos."


class Library:
    """The repositories of one folder.

    Args:
        folder: Holds them, each in a folder of its own.
        exclude: Names of those that are not served.
        emit: Told how far the first check of each is, and what goes wrong with one.
    """

    def __init__(self, folder: Path, *, exclude: Collection[str], emit: events.Emit) -> None:
        self._folder = folder
        self._exclude = frozenset(exclude)
        self._emit = emit
        self._place, self._lock = _create_private_folder()
        forget_old()
        self._served: dict[str, ServedRepository] = {}
        self._numbers = iter(range(10**9))
        # Each program takes descriptors that connections do not have then; the others wait for their turn.
        at_once = min(_AT_ONCE, max(2, open_files.most_programs() // 2))
        self._check = PublishedCheck()
        self._slots = asyncio.Semaphore(at_once)
        self.spools = Spools(self._place, at_once=at_once)

    @property
    def names(self) -> list[str]:
        """The names of those that are there."""
        return sorted(name for name, one in self._served.items() if not one.is_gone)

    async def reload(self, *, required: bool = False) -> None:
        """Look for repositories that came and went, and at all of them again.

        Raises:
            FileError: The folder cannot be read.
            NoRepositoriesError: There is none, and `required` is set.
        """
        found = _find_repositories(self._folder, self._exclude)
        if required and not found:
            raise NoRepositoriesError(f"{self._folder} holds no git repository.")
        for name in [name for name, one in self._served.items() if found.get(name) != one.source]:
            await self._served.pop(name).close()
        for name, source in found.items():
            if name not in self._served:
                bare = self._place / f"{name}.{next(self._numbers)}.git"
                self._served[name] = ServedRepository(
                    name, source, bare=bare, sift=self._check, slots=self._slots, emit=self._emit
                )
        await asyncio.gather(*(self._look(one) for one in self._served.values()))

    async def _look(self, one: ServedRepository) -> None:
        # What is wrong with it was told, and is answered to the caller for it.
        with contextlib.suppress(RequestRefusedError):
            await one.refresh()

    def find(self, name: str) -> ServedRepository:
        """Return a repository.

        Raises:
            RequestRefusedError: There is none of this name.
        """
        found = self._served.get(name)
        if found is None:
            raise RequestRefusedError(404, Code.NOT_FOUND, f"There is no repository '{name}'.")
        return found

    async def close(self) -> None:
        """End what is running, and remove every copy."""
        await self.spools.close()
        await asyncio.gather(*(one.close() for one in self._served.values()))
        await self._check.close()
        shutil.rmtree(self._place, ignore_errors=True)
        self._lock.close()


def _find_repositories(folder: Path, exclude: Collection[str]) -> dict[str, Path]:
    try:
        inside = sorted(folder.iterdir())
    except OSError as err:
        raise FileError.from_os_error(err, "read the folder", folder) from err
    return {
        path.name: path
        for path in inside
        if _NAME.fullmatch(path.name) and path.name not in exclude and (path / ".git").exists()
    }


def _create_private_folder() -> tuple[Path, FileLock]:
    """Return a new folder for copies, and the lock that says we live; what dead ones left is removed."""
    base = Path(tempfile.gettempdir())
    for left in base.glob(f"{_PREFIX}*"):
        _remove_if_dead(left)
    place = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = open_file_lock(place / "lock")
    lock.acquire()
    return place, lock


def _remove_if_dead(left: Path) -> None:
    # One without a lock is just being created, or is not ours to look at.
    with contextlib.suppress(FileError), open_file_lock(left / "lock", must_exist=True) as lock:
        if lock.try_acquire():
            shutil.rmtree(left, ignore_errors=True)
