"""Objects in one SQLite file: durable at every commit, shared by any number of processes of one machine.

Writes of several threads that come together share one commit, because what a commit costs is the wait for
the disk. A store that is only read is opened without writing anything, see `sqlite_reader`.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import FileError, Location
from stackyard.clients.objects.base import (
    ABSENT,
    ANYTHING,
    ConflictError,
    Expect,
    ListedObject,
    StoreBusyError,
    Stored,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    Tag,
    check_key,
    check_write_id,
)
from stackyard.clients.objects.sqlite_errors import NO_ROOM, make_error
from stackyard.clients.objects.sqlite_reader import SqliteReader
from stackyard.clients.objects.sqlite_threads import ThreadConnections
from stackyard.clients.objects.sqlite_watch import SqliteWatch
from stackyard.clients.objects.sqlite_writes import find_write, record_write, transaction
from stackyard.clients.objects.watch import PollingWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from stackyard.clients.objects.sqlite_reader import Rows
    from stackyard.clients.objects.watch import Watch

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
# One statement: another process may make the tables between two of them.
_IDENTIFY = (
    "SELECT (SELECT user_version FROM pragma_user_version),"
    " (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_master)"
)
_WRITE = (
    "INSERT INTO objects (key, tag, modified_at, data) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
    " tag = excluded.tag, modified_at = excluded.modified_at, data = excluded.data"
)
# Sorts behind every character that a key may hold.
_BEHIND = "\U0010ffff"


@dataclass(slots=True, eq=False)
class _Change:
    """One thread's write, waiting for a commit that carries it."""

    apply: Callable[[sqlite3.Connection], Tag | None]
    is_done: bool = False
    tag: Tag | None = None
    error: BaseException | None = None


class SqliteObjects:
    """A store in one file, which only its owner can read.

    Args:
        path: The file; it is created if it is not there, unless `create` says no.
        busy_timeout_s: How long to wait for other processes.
        create: Whether a file that is missing is made. Without it nothing is written, and no right to write
            and no room on the disk is needed, until the first write.

    Raises:
        StoreDamagedError: The file is something else, or of a newer stackyard.
        StoreReadOnlyError: It may not be written, and `create` asks for it.
        StoreError: It cannot be opened.
    """

    def __init__(self, path: Path, *, busy_timeout_s: float = 30.0, create: bool = True) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        # For reading beside the writer.
        self._readers = ThreadConnections(self._connect)
        self._waiting: list[_Change] = []
        self._waiting_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._opened_writer: sqlite3.Connection | None = None
        self._has_tables = False
        if not path.exists():
            if not create:
                raise StoreError(f"There is no store at {path}.", where=Location(str(path)))
            self._make_file()
        self._identity = self._file_identity()
        self._reading = SqliteReader(path, busy_timeout_s=busy_timeout_s, check=self._check)
        if not create:
            # What is no store is found out now.
            self._read("SELECT 1")
            return
        try:
            self._open_writer()
        except StoreFullError:
            # What is there can be read on a full disk; writing is tried again with each write.
            self._read("SELECT 1")
            if not self._has_tables:
                raise

    def get(self, key: str) -> Stored | None:
        """Return an object, or None."""
        check_key(key)
        rows = self._read("SELECT data, tag FROM objects WHERE key = ?", (key,))
        return Stored(data=bytes(rows[0][0]), tag=Tag(str(rows[0][1]))) if rows else None

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        """Write an object, and those that come before it, in one transaction."""
        return self._put(key, data, expect, before, "")

    def put_once(
        self,
        key: str,
        data: bytes,
        *,
        expect: Expect,
        write_id: str,
        before: Mapping[str, bytes] | None = None,
    ) -> Tag:
        """Write an object and record the id of the write, unless it is recorded."""
        return self._put(key, data, expect, before, check_write_id(write_id))

    def _put(
        self, key: str, data: bytes, expect: Expect, before: Mapping[str, bytes] | None, write_id: str
    ) -> Tag:
        others = {check_key(other): body for other, body in (before or {}).items()}
        check_key(key)

        def apply(connection: sqlite3.Connection) -> Tag:
            known = find_write(connection, write_id)
            if known is not None:
                return known
            row = connection.execute("SELECT tag FROM objects WHERE key = ?", (key,)).fetchone()
            is_expected = row is None if expect is ABSENT else row is not None and str(row[0]) == expect
            if not is_expected and expect is not ANYTHING:
                raise ConflictError(key)
            run = connection.execute
            tag = run("UPDATE last_tag SET tag = tag + 1 RETURNING tag").fetchone()[0]
            now = time.time()
            connection.executemany(_WRITE, [(other, tag, now, body) for other, body in others.items()])
            run(_WRITE, (key, tag, now, data))
            record_write(connection, write_id, tag)
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

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[ListedObject, ...]:
        """Return the objects behind `after` that begin with a prefix."""
        rows = self._read(
            "SELECT key, length(data), modified_at FROM objects"
            " WHERE key >= ? AND key < ? AND key > ? ORDER BY key LIMIT ?",
            (prefix, prefix + _BEHIND, after, limit),
        )
        return tuple(ListedObject(key=key, size=size, modified_at=at) for key, size, at in rows)

    @contextlib.contextmanager
    def watch(self, prefix: str) -> Iterator[Watch]:
        """Watch the objects that begin with a prefix; a store that is only read is polled."""
        if not self._is_writing():
            yield PollingWatch()
            return
        with self._errors():
            connection = self._connect()
        with contextlib.closing(connection):
            yield SqliteWatch(connection, prefix, self._errors)

    def close(self) -> None:
        """Close the file; no call may be under way."""
        self._reading.close()
        with self._write_lock:
            self._readers.close()
            if self._opened_writer is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._opened_writer.close()

    # --- Reading

    def _read(self, query: str, values: Sequence[object] = ()) -> Rows:
        """Return what a query finds: beside the writer once there is one, else without writing anything."""
        self._require_file()
        with self._errors():
            rows = None if self._is_writing() else self._read_only(query, values)
            if rows is None:
                # Another thread may be about to open the file to write to it, and may fail.
                with contextlib.nullcontext() if self._is_writing() else self._write_lock:
                    rows = None if self._is_writing() else self._read_only(query, values)
            if rows is not None:
                return rows
            return self._readers.get_connection().execute(query, values).fetchall()

    def _is_writing(self) -> bool:
        return self._opened_writer is not None

    def _read_only(self, query: str, values: Sequence[object]) -> Rows | None:
        try:
            return self._reading.rows(query, values)
        except OSError as err:
            raise self._make_gone_error(err) from err
        except sqlite3.OperationalError:
            if self._has_tables:
                raise
            # Anyone who made the file was stopped before there was anything in it.
            return []

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
            self._open_writer()
            with self._errors(), transaction(self._writer):
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

    # --- Opening

    def _make_file(self) -> None:
        """Make the file for its owner alone before SQLite makes it for everyone.

        A file that is there is never opened here: when a process closes a file, it loses all its locks on it,
        those of another open store too, and the next process to close the store would throw its log away.
        """
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE))
        except FileExistsError:
            return
        except PermissionError as err:
            raise StoreReadOnlyError(
                f"{self._path} may not be written: {err.strerror}.", where=Location(str(self._path))
            ) from err
        except OSError as err:
            found = FileError.from_os_error(err, "open the store", self._path)
            kind = StoreFullError if err.errno in NO_ROOM else StoreError
            raise kind(found.detail, where=found.where) from err

    def _file_identity(self) -> tuple[int, int]:
        try:
            status = os.stat(self._path)
        except OSError as err:
            raise self._make_gone_error(err) from err
        return status.st_dev, status.st_ino

    def _make_gone_error(self, err: OSError) -> StoreError:
        return StoreError(
            f"{self._path} is gone: {err.strerror}. Its disk may have been unmounted.",
            where=Location(str(self._path)),
        )

    def _require_file(self) -> None:
        """Refuse to continue with a file that was removed or replaced, or whose disk was unmounted."""
        if self._file_identity() != self._identity:
            raise StoreError(
                f"{self._path} is no longer the file that was opened.",
                where=Location(str(self._path)),
                remedy="Start the service again.",
            )

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=self._busy_timeout_s, isolation_level=None, check_same_thread=False
        )
        try:
            # FULL: a commit waits until the disk has it, so that what was answered survives a power cut.
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def _writer(self) -> sqlite3.Connection:
        assert self._opened_writer is not None  # noqa: S101 - `_open_writer` comes before every use
        return self._opened_writer

    def _open_writer(self) -> None:
        """Open the file to write to it, if that was not done before."""
        if self._opened_writer is not None:
            return
        # A reader that had to leave the shared memory alone keeps this process from writing to it.
        self._reading.close()
        try:
            with self._errors(), contextlib.ExitStack() as stack:
                connection = self._connect()
                stack.callback(connection.close)
                self._prepare(connection)
                stack.pop_all()
        except BaseException:
            self._reading = SqliteReader(self._path, busy_timeout_s=self._busy_timeout_s, check=self._check)
            raise
        self._opened_writer = connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        run = connection.execute
        run("PRAGMA journal_mode = WAL")
        if self._is_prepared(connection):
            return
        with transaction(connection):
            if self._is_prepared(connection):
                return
            for statement in _TABLES:
                run(statement)
            run(f"PRAGMA application_id = {_APPLICATION}")
            run(f"PRAGMA user_version = {_FORMAT}")

    def _check(self, connection: sqlite3.Connection) -> None:
        self._has_tables = self._is_prepared(connection)

    def _is_prepared(self, connection: sqlite3.Connection) -> bool:
        """Return whether the tables are there.

        Raises:
            StoreDamagedError: The file is something else, or of a newer stackyard.
        """
        version, owner, tables = connection.execute(_IDENTIFY).fetchone()
        if (version or tables) and owner != _APPLICATION:
            raise self._make_damaged_error("is a database of something else")
        if version > _FORMAT:
            raise self._make_damaged_error(
                f"was written by a newer stackyard (format {version}, not {_FORMAT})"
            )
        return bool(version == _FORMAT and tables)

    def _make_damaged_error(self, what: str) -> StoreDamagedError:
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
            raise make_error(err, self._path, busy_timeout_s=self._busy_timeout_s) from err
