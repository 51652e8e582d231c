"""Objects in one SQLite file: durable at every commit, shared by any number of processes of one machine.

Writes of several threads that come together share one commit, because what a commit costs is the wait for
the disk.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.errors import FileError, Location
from stackyard.objects.base import (
    ABSENT,
    ANYTHING,
    ConflictError,
    Entry,
    Expect,
    StoreBusyError,
    Stored,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    Tag,
    check_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["SqliteObjects"]

_FORMAT = 1
# Says whose file it is, in the place where SQLite keeps that.
_APPLICATION = 0x53594F42
_PRIVATE = 0o600
# The row of the last tag makes each tag of this file new, also after objects were deleted.
_TABLES = (
    "CREATE TABLE IF NOT EXISTS objects (key TEXT PRIMARY KEY, tag INTEGER NOT NULL,"
    " modified_at REAL NOT NULL, data BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS last_tag (tag INTEGER NOT NULL)",
    "INSERT INTO last_tag SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM last_tag)",
)
_WRITE = (
    "INSERT INTO objects (key, tag, modified_at, data) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
    " tag = excluded.tag, modified_at = excluded.modified_at, data = excluded.data"
)
# Sorts behind every character that a key may hold.
_BEHIND = "\U0010ffff"

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_FULL = {sqlite3.SQLITE_FULL}
_READ_ONLY = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN}
_DAMAGED = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_SCHEMA}


@dataclass(slots=True, eq=False)
class _Change:
    """One thread's write, waiting for a commit that carries it."""

    apply: Callable[[sqlite3.Connection], Tag | None]
    is_done: bool = False
    tag: Tag | None = None
    error: BaseException | None = None


class _Mine(threading.local):
    """The connection of one thread, for reading beside the writers."""

    connection: sqlite3.Connection | None = None


class SqliteObjects:
    """A store in one file, which only its owner can read.

    Args:
        path: The file; it is made if it is not there, unless `create` says no.
        busy_timeout_s: How long to wait for other processes.
        create: Whether a file that is missing is made.

    Raises:
        StoreDamagedError: The file is something else, or of a newer stackyard.
        StoreReadOnlyError: It may not be written.
        StoreError: It cannot be opened.
    """

    def __init__(self, path: Path, *, busy_timeout_s: float = 30.0, create: bool = True) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._mine = _Mine()
        self._readers: list[sqlite3.Connection] = []
        self._waiting: list[_Change] = []
        self._waiting_lock = threading.Lock()
        self._write_lock = threading.Lock()
        if not create and not path.exists():
            raise StoreError(f"There is no store at {path}.", where=Location(str(path)))
        self._make_file()
        self._identity = self._file_identity()
        with self._errors():
            self._writer = self._connect()
            self._prepare()

    def get(self, key: str) -> Stored | None:
        """Return an object, or None."""
        check_key(key)
        self._require_file()
        with self._errors():
            row = self._reader().execute("SELECT data, tag FROM objects WHERE key = ?", (key,)).fetchone()
        return None if row is None else Stored(data=bytes(row[0]), tag=Tag(str(row[1])))

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        """Write an object, and those that come before it, in one transaction."""
        others = {check_key(other): body for other, body in (before or {}).items()}
        check_key(key)

        def apply(connection: sqlite3.Connection) -> Tag:
            row = connection.execute("SELECT tag FROM objects WHERE key = ?", (key,)).fetchone()
            is_expected = row is None if expect is ABSENT else row is not None and str(row[0]) == expect
            if not is_expected and expect is not ANYTHING:
                raise ConflictError(key)
            run = connection.execute
            tag = run("UPDATE last_tag SET tag = tag + 1 RETURNING tag").fetchone()[0]
            now = time.time()
            connection.executemany(_WRITE, [(other, tag, now, body) for other, body in others.items()])
            run(_WRITE, (key, tag, now, data))
            return Tag(str(tag))

        tag = self._change(apply)
        assert tag is not None  # noqa: S101 - what `apply` returns, which the type of a change cannot say
        return tag

    def delete(self, key: str) -> None:
        """Remove an object."""
        check_key(key)

        def apply(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM objects WHERE key = ?", (key,))

        self._change(apply)

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[Entry, ...]:
        """Return the objects behind `after` that begin with a prefix."""
        self._require_file()
        with self._errors():
            rows = self._reader().execute(
                "SELECT key, length(data), modified_at FROM objects"
                " WHERE key >= ? AND key < ? AND key > ? ORDER BY key LIMIT ?",
                (prefix, prefix + _BEHIND, after, limit),
            )
            return tuple(Entry(key=key, size=size, modified_at=at) for key, size, at in rows)

    def close(self) -> None:
        """Close the file; no call may be under way."""
        with self._write_lock:
            for connection in (*self._readers, self._writer):
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
            self._readers.clear()

    # --- Writing

    def _change(self, apply: Callable[[sqlite3.Connection], Tag | None]) -> Tag | None:
        """Have a change committed: by us together with those who wait, or by one who came before."""
        mine = _Change(apply)
        with self._waiting_lock:
            self._waiting.append(mine)
        with self._write_lock:
            if not mine.is_done:
                with self._waiting_lock:
                    together, self._waiting = self._waiting, []
                self._commit(together)
        if mine.error is not None:
            raise mine.error
        return mine.tag

    def _commit(self, changes: Sequence[_Change]) -> None:
        """Commit changes; one that is refused leaves the others alone, a store that fails fails them all."""
        try:
            self._require_file()
            with self._errors(), self._transaction():
                for change in changes:
                    try:
                        change.tag = change.apply(self._writer)
                    except ConflictError as err:
                        change.error = err
        except (StoreBusyError, StoreError) as err:
            for change in changes:
                # An exception belongs to one thread.
                change.tag, change.error = None, type(err)(err.detail, where=err.where, remedy=err.remedy)
        finally:
            for change in changes:
                change.is_done = True

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        run = self._writer.execute
        run("BEGIN IMMEDIATE")
        try:
            yield
            run("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                run("ROLLBACK")
            raise

    # --- Opening

    def _make_file(self) -> None:
        """Make the file for its owner alone before SQLite makes it for everybody."""
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, _PRIVATE))
        except PermissionError as err:
            raise StoreReadOnlyError(
                f"{self._path} may not be written: {err.strerror}.", where=Location(str(self._path))
            ) from err
        except OSError as err:
            found = FileError.from_os_error(err, "open the store", self._path)
            raise StoreError(found.detail, where=found.where) from err

    def _file_identity(self) -> tuple[int, int]:
        try:
            status = os.stat(self._path)
        except OSError as err:
            raise StoreError(
                f"{self._path} is gone: {err.strerror}. Its disk may have been unmounted.",
                where=Location(str(self._path)),
            ) from err
        return status.st_dev, status.st_ino

    def _require_file(self) -> None:
        """Refuse to go on with a file that was removed or replaced, or whose disk was unmounted."""
        if self._file_identity() != self._identity:
            raise StoreError(
                f"{self._path} is no longer the file that was opened.",
                where=Location(str(self._path)),
                remedy="Start the service again.",
            )

    def _reader(self) -> sqlite3.Connection:
        if self._mine.connection is None:
            self._mine.connection = self._connect()
            with self._waiting_lock:
                self._readers.append(self._mine.connection)
        return self._mine.connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=self._busy_timeout_s, isolation_level=None, check_same_thread=False
        )
        # FULL: a commit waits until the disk has it, so that what was answered survives a power cut.
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _prepare(self) -> None:
        run = self._writer.execute
        run("PRAGMA journal_mode = WAL")
        with self._transaction():
            version, owner = (
                run(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id")
            )
            tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if (version or tables) and owner != _APPLICATION:
                raise self._damaged("is a database of something else")
            if version > _FORMAT:
                raise self._damaged(f"was written by a newer stackyard (format {version}, not {_FORMAT})")
            for statement in _TABLES:
                run(statement)
            run(f"PRAGMA application_id = {_APPLICATION}")
            run(f"PRAGMA user_version = {_FORMAT}")

    def _damaged(self, what: str) -> StoreDamagedError:
        return StoreDamagedError(
            f"{self._path} {what}.",
            where=Location(str(self._path)),
            remedy="Choose another place for the store.",
        )

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as err:
            raise self._error(err) from err

    def _error(self, err: sqlite3.Error) -> StoreError | StoreBusyError:
        # The low byte is the kind; what is above says more of it than we need.
        kind = getattr(err, "sqlite_errorcode", 0) & 0xFF
        text, where = f"{self._path}: {err}.", Location(str(self._path))
        if kind in _BUSY:
            return StoreBusyError(
                f"Other processes kept {self._path} busy for {self._busy_timeout_s:g} s.", where=where
            )
        kinds = ((_FULL, StoreFullError), (_READ_ONLY, StoreReadOnlyError), (_DAMAGED, StoreDamagedError))
        return next((error for found, error in kinds if kind in found), StoreError)(text, where=where)
