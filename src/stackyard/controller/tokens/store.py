"""Where the keys and the list of tokens are: in a file that processes share, or in the memory of one run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from stackyard.base import directories, files, locks
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.errors import FileError, InvalidInputError, Location

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Change", "FileStore", "IssuedToken", "MemoryStore", "SigningKey", "StoredTokens", "TokenStore"]

_FORMAT = 1
_Version = tuple[tuple[int, int, int] | None, tuple[int, int, int] | None]


class TokenStoreError(InvalidInputError):
    """The file with the keys and the list of tokens of a controller is damaged."""

    code = "E-TOKEN-STORE"
    summary = "The list of tokens is damaged"
    default_remedy = (
        "Remove this one file and issue new tokens: all tokens from before are refused, revoked or not."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A key that signs tokens.

    Attributes:
        id: Its number.
        secret: The key itself, in hexadecimal digits.
        created_at: When it was created, in seconds since 1970.
        retires_at: When tokens that it signed stop to count; None while it is in use.
    """

    id: str
    secret: str = field(repr=False)
    created_at: float
    retires_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken:
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
class StoredTokens:
    """Everything that a store keeps.

    Attributes:
        keys: The keys, the newest last.
        issued: The tokens that were issued.
        not_before: Tokens that were issued before this time do not count: the list that knew which of them
            are revoked was lost. In seconds since 1970.
    """

    keys: tuple[SigningKey, ...] = ()
    issued: tuple[IssuedToken, ...] = ()
    not_before: float = 0.0

    def with_issued(self, issued: IssuedToken) -> StoredTokens:
        """Return it with a token added, or changed."""
        others = tuple(one for one in self.issued if one.id != issued.id)
        return replace(self, issued=(*others, issued))


Change = Callable[[StoredTokens], StoredTokens]


class TokenStore(Protocol):
    """Keys and tokens. What `change` wrote is what the next `read` of any process returns."""

    def read(self) -> StoredTokens:
        """Return what is kept; cheap where nothing has changed."""

    def change(self, change: Change) -> StoredTokens:
        """Replace what is kept by what the function makes of it, with no one in between."""


class MemoryStore:
    """Keys and tokens of one run, which end with it."""

    def __init__(self) -> None:
        self._kept = StoredTokens()

    def read(self) -> StoredTokens:
        """Return what is kept."""
        return self._kept

    def change(self, change: Change) -> StoredTokens:
        """Replace what is kept."""
        self._kept = change(self._kept)
        return self._kept


class FileStore:
    """Keys and tokens in a file that only its owner can read.

    A second, small file beside it holds the time of the last change. It outlives the list: where the list is
    gone, or an older copy of it is back, it is not known any more what was revoked, and every token that was
    issued up to that time is refused.

    Args:
        path: The file; its folder is created when something is written.
        clock: The time of day, in seconds since 1970.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._mark_path = path.with_suffix(".last-change")
        self._clock = clock
        self._known: tuple[_Version, StoredTokens] | None = None

    def read(self) -> StoredTokens:
        """Return what is kept; the file is read only when it is another one than before.

        Raises:
            TokenStoreError: It is damaged.
            FileError: It cannot be read.
        """
        version = (_version(self._path), _version(self._mark_path))
        if self._known is not None and self._known[0] == version:
            return self._known[1]
        # In this order: whoever changes them writes the list first, so that it never looks older than it is.
        changed_at = self._read_change_time()
        kept, written_at = self._read_list()
        if written_at < changed_at:
            kept = replace(kept, not_before=max(kept.not_before, math.nextafter(changed_at, math.inf)))
        self._known = (version, kept)
        return kept

    def change(self, change: Change) -> StoredTokens:
        """Replace what is kept, atomically.

        Raises:
            TokenStoreError: It is damaged.
            FileError: It cannot be written.
        """
        directories.ensure_private(self._path.parent)
        with locks.hold_folder(self._path.parent):
            before, last = self.read(), self._read_change_time()
            if before.not_before == math.inf:
                before = replace(before, not_before=self._clock())
            kept = change(before)
            # Never before the last one or a token of the list, whatever someone did to the clock.
            times = (last if last < math.inf else 0.0, *(one.issued_at for one in kept.issued))
            now = max(self._clock(), *times)
            document = {"format": _FORMAT, "written_at": now, **_document(kept)}
            files.replace_file(self._path, orjson.dumps(document))
            # Second: only a list that was lost, or an older copy, is older than this.
            files.replace_file(self._mark_path, orjson.dumps({"format": _FORMAT, "changed_at": now}))
        return kept

    def _read_list(self) -> tuple[StoredTokens, float]:
        """Return what the list says, and when it was written; an absent one is older than any other."""
        try:
            return _parse(self._path.read_bytes(), self._path)
        except FileNotFoundError:
            return StoredTokens(), -math.inf
        except OSError as err:
            raise FileError.from_os_error(err, "read", self._path) from err

    def _read_change_time(self) -> float:
        """Return when the list was changed for the last time; one that cannot be read is after all tokens."""
        try:
            found = float(parse_json(self._mark_path.read_bytes())["changed_at"])
            return found if math.isfinite(found) else math.inf
        except FileNotFoundError:
            return -math.inf
        except OSError as err:
            raise FileError.from_os_error(err, "read", self._mark_path) from err
        except (JsonError, KeyError, TypeError, ValueError):
            return math.inf


def _document(kept: StoredTokens) -> dict[str, Any]:
    return {"not_before": kept.not_before, "keys": list(kept.keys), "issued": list(kept.issued)}


def _version(path: Path) -> tuple[int, int, int] | None:
    """Return what differs whenever a file was replaced; nothing where there is none."""
    try:
        found = path.stat()
    except OSError:
        # Reading it tells why.
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _parse(data: bytes, path: Path) -> tuple[StoredTokens, float]:
    try:
        found = parse_json(data)
        kept = StoredTokens(
            keys=tuple(SigningKey(**row) for row in found["keys"]),
            issued=tuple(IssuedToken(**row) for row in found["issued"]),
            not_before=float(found.get("not_before", 0.0)),
        )
        return kept, float(found.get("written_at", 0.0))
    except (JsonError, AttributeError, KeyError, TypeError, ValueError) as err:
        raise TokenStoreError(f"{path} is not valid.", where=Location(str(path))) from err
