"""What went wrong in a SQLite store, as the errors that every store raises."""

from __future__ import annotations

import errno
import sqlite3
from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.clients.objects.base import (
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["NO_ROOM", "make_error"]

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
# The index of the log is created by growing a file, of which SQLite does not tell why it cannot grow.
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN}
_READ_ONLY = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN}
_DAMAGED = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_SCHEMA}


def make_error(err: sqlite3.Error, path: Path, *, busy_timeout_s: float) -> StoreError | StoreBusyError:
    """Return the error of the store for an error of SQLite."""
    # The low byte is the kind; what is above says more of it than we need.
    code = getattr(err, "sqlite_errorcode", 0)
    kind = code if code in _FULL else code & 0xFF
    text, where = f"{path}: {err}.", Location(str(path))
    if kind in _BUSY:
        return StoreBusyError(f"Other processes kept {path} busy for {busy_timeout_s:g} s.", where=where)
    kinds = ((_FULL, StoreFullError), (_READ_ONLY, StoreReadOnlyError), (_DAMAGED, StoreDamagedError))
    return next((error for found, error in kinds if kind in found), StoreError)(text, where=where)
