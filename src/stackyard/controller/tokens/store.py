"""Where the keys and the list of tokens are: in a file that processes share, or in the memory of one run."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from stackyard import directories, files
from stackyard.errors import FileError, InvalidInputError, Location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Change", "FileStore", "Issued", "Kept", "MemoryStore", "SigningKey", "TokenStore"]

_FORMAT = 1


class TokenStoreError(InvalidInputError):
    """The file with the keys and the list of tokens of a controller is damaged."""

    code = "E-TOKEN-STORE"
    summary = "The list of tokens is damaged"
    default_remedy = "Remove the file; every token that was issued ends with it."


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A key that signs tokens.

    Attributes:
        id: Its number.
        secret: The key itself, in hexadecimal digits.
        created_at: When it was made, in seconds since 1970.
        retires_at: When tokens that it signed stop to count; None while it is in use.
    """

    id: str
    secret: str = field(repr=False)
    created_at: float
    retires_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A token that was issued; the token itself is kept nowhere."""

    id: str
    node: str = ""
    spec: str = ""
    repo: str = ""
    note: str = ""
    issued_at: float
    expires_at: float
    revoked_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Everything that a store keeps; the newest key is the last."""

    keys: tuple[SigningKey, ...] = ()
    issued: tuple[Issued, ...] = ()

    def with_issued(self, issued: Issued) -> Kept:
        """Return it with a token added, or changed."""
        others = tuple(one for one in self.issued if one.id != issued.id)
        return replace(self, issued=(*others, issued))


Change = Callable[[Kept], Kept]


class TokenStore(Protocol):
    """Keys and tokens. What `change` wrote is what the next `read` of any process returns."""

    def read(self) -> Kept:
        """Return what is kept; cheap where nothing has changed."""

    def change(self, change: Change) -> Kept:
        """Replace what is kept by what the function makes of it, with nobody in between."""


class MemoryStore:
    """Keys and tokens of one run, which end with it."""

    def __init__(self) -> None:
        self._kept = Kept()

    def read(self) -> Kept:
        """Return what is kept."""
        return self._kept

    def change(self, change: Change) -> Kept:
        """Replace what is kept."""
        self._kept = change(self._kept)
        return self._kept


class FileStore:
    """Keys and tokens in a file that only its owner can read.

    Args:
        path: The file; its folder is made when something is written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[tuple[int, int, int], Kept] | None = None

    def read(self) -> Kept:
        """Return what is kept; the file is read only when it is another one than before.

        Raises:
            TokenStoreError: It is damaged.
            FileError: It cannot be read.
        """
        try:
            found = self._path.stat()
            mark = (found.st_ino, found.st_mtime_ns, found.st_size)
            if self._known is not None and self._known[0] == mark:
                return self._known[1]
            kept = _parsed(self._path.read_bytes(), self._path)
        except FileNotFoundError:
            return Kept()
        except OSError as err:
            raise FileError.from_os_error(err, "read", self._path) from err
        self._known = (mark, kept)
        return kept

    def change(self, change: Change) -> Kept:
        """Replace what is kept, at once or not at all.

        Raises:
            TokenStoreError: It is damaged.
            FileError: It cannot be written.
        """
        directories.ensure_private(self._path.parent)
        with self._locked():
            kept = change(self.read())
            files.replace_file(self._path, orjson.dumps({"format": _FORMAT, **_document(kept)}))
        return kept

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _document(kept: Kept) -> dict[str, Any]:
    return {"keys": list(kept.keys), "issued": list(kept.issued)}


def _parsed(data: bytes, path: Path) -> Kept:
    try:
        found = orjson.loads(data)
        return Kept(
            keys=tuple(SigningKey(**row) for row in found["keys"]),
            issued=tuple(Issued(**row) for row in found["issued"]),
        )
    except (orjson.JSONDecodeError, KeyError, TypeError) as err:
        raise TokenStoreError(f"{path} cannot be understood.", where=Location(str(path))) from err
