"""What was found out about repositories, kept for the next start so that nothing is checked twice.

A file says which contents of one repository are clean, by their numbers, and why nothing of it was served, if
that was so. Anyone who could write one could have anything served, so each is sealed with a key of the user's
own: a file that someone else made or changed counts as none, and everything is checked. The seal also covers
the check itself: another version of the rules by which secrets are found makes all that was kept void.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import importlib.resources
import os
import secrets
import stat
import time
from typing import TYPE_CHECKING

from stackyard.base import directories, files
from stackyard.base.errors import FileError
from stackyard.clients.git.verdicts import Verdicts

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

__all__ = ["StoredVerdicts", "forget_old"]

_FOLDER = "checked-repositories"
_KEY_FILE = "checked-repositories.key"
_KEY_BYTES = 32
_SEAL_BYTES = 32
# How much of a first check is lost when the process is killed.
_SAVE_EVERY_S = 1.0
_OLDEST_S = 90 * 86_400.0


class StoredVerdicts:
    """What is kept of one repository.

    Args:
        source: The top of its working tree.
    """

    def __init__(self, source: Path) -> None:
        self.verdicts = Verdicts()
        self._source = str(source.resolve())
        name = hashlib.sha256(self._source.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._path = directories.state_folder() / _FOLDER / name
        self._saved = self._summary()
        self._saved_at = time.monotonic()

    def load(self) -> None:
        """Read what was kept; nothing is known where there is nothing, or what is there is not ours."""
        try:
            if not _is_own(self._path):
                return
            data = self._path.read_bytes()
            sealed = data[_SEAL_BYTES:]
            if hmac.compare_digest(data[:_SEAL_BYTES], self._seal(sealed)):
                self.verdicts = Verdicts.load(sealed)
        except (OSError, FileError):
            return
        self._note_saved()

    def save_sometimes(self) -> None:
        """Keep what is known, unless that was done a moment ago."""
        if time.monotonic() - self._saved_at >= _SAVE_EVERY_S:
            self.save()

    def save(self) -> None:
        """Keep what is known; where that cannot be done, the next start checks again."""
        if self._summary() == self._saved:
            return
        with contextlib.suppress(FileError):
            data = self.verdicts.dump()
            if data:
                directories.ensure_private(self._path.parent)
                files.replace_file(self._path, self._seal(data) + data)
        self._note_saved()

    def _note_saved(self) -> None:
        self._saved = self._summary()
        self._saved_at = time.monotonic()

    def _summary(self) -> tuple[object, ...]:
        """Return what differs whenever there is something to save."""
        known = self.verdicts
        return known.count, known.clean, known.clean_with, known.refusal

    def _seal(self, data: bytes) -> bytes:
        about = f"{_check_digest()}\0{self._source}\0".encode("utf-8", "surrogateescape")
        return hmac.digest(_key(), about + data, "sha256")


def forget_old() -> None:
    """Remove what was kept of repositories that no one has served for long."""
    folder = directories.state_folder() / _FOLDER
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if time.time() - path.lstat().st_mtime > _OLDEST_S:
                path.unlink(missing_ok=True)


def _key() -> bytes:
    """Return the key of this user, made where there is none.

    Raises:
        FileError: It cannot be read or made, or others could have made it.
    """
    path = directories.data_folder() / _KEY_FILE
    if not path.exists():
        directories.ensure_private(path.parent)
        with contextlib.suppress(FileError):
            # Anyone who is faster makes it.
            files.make_file(path, secrets.token_bytes(_KEY_BYTES))
    try:
        is_own, key = _is_own(path), path.read_bytes()
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    if not is_own or len(key) != _KEY_BYTES:
        raise FileError(f"{path} is no key that only you can read.")
    return key


def _is_own(path: Path) -> bool:
    """Return whether something is a file of ours that no one else can read or write."""
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


@functools.cache
def _check_digest() -> str:
    """Return the fingerprint of the program that decides what is a secret and what is checked for it."""
    digest = hashlib.sha256()
    for package in ("stackyard.secrets", "stackyard.clients.git", "stackyard.base.documents"):
        for name, content in sorted(_programs(importlib.resources.files(package), "")):
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _programs(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found = []
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _programs(entry, f"{name}/")
        elif not name.endswith((".pyc", ".pyo")):
            found.append((name, entry.read_bytes()))
    return found
