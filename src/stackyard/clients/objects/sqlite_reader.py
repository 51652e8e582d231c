"""Reading a SQLite store without writing anything: on a full disk, a read-only one, beside any writer.

A store that a writer has open is read with it, through its shared memory. One that no process has open is
read as it is on disk. Neither makes a file, changes one, or needs room.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["Rows", "SqliteReader"]

Rows = list[tuple[Any, ...]]

# How often a file that changes under a read is read again before that is an error.
_ATTEMPTS = 50
# The kinds of failure after which SQLite is asked to leave the shared memory of the writers alone.
_NO_ROOM = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL}


@dataclass(frozen=True, slots=True)
class _FileStats:
    """The files as they were at one moment."""

    main: tuple[int, int, int]
    log_bytes: int


class SqliteReader:
    """Reads one file.

    Args:
        path: The file, which is there.
        busy_timeout_s: How long to wait for a writer that is in the way.
        check: Looks at a fresh connection; raises where the file is not what it should be.
    """

    def __init__(
        self, path: Path, *, busy_timeout_s: float, check: Callable[[sqlite3.Connection], None]
    ) -> None:
        self._path = path
        self._busy_timeout_s = busy_timeout_s
        self._check = check
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        # What the files were when they were opened as they are on disk; None where SQLite looks itself.
        self._seen: _FileStats | None = None
        self._is_closed = False

    def rows(self, query: str, values: Sequence[object] = ()) -> Rows | None:
        """Return what a query finds; None when this reader was closed.

        Raises:
            sqlite3.Error: The file cannot be read.
            OSError: It is gone.
        """
        with self._lock:
            if self._is_closed:
                return None
            for _ in range(_ATTEMPTS):
                try:
                    found = self._ready().execute(query, values).fetchall()
                except sqlite3.Error:
                    # A writer that replaced pages under us looks like damage.
                    if self._is_unchanged():
                        raise
                else:
                    if self._is_unchanged():
                        return found
                self._forget()
            raise sqlite3.OperationalError(f"{self._path} changed {_ATTEMPTS} times while it was read")

    def close(self) -> None:
        """Let go of the file; the next `rows` returns None."""
        with self._lock:
            self._is_closed = True
            self._forget()

    def _is_unchanged(self) -> bool:
        return self._seen is None or self._seen == self._look()

    def _forget(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection, self._seen = None, None

    def _ready(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        seen = self._look()
        if not seen.log_bytes:
            # No commit is outside of the file: it is read alone, and looked at again after each read.
            self._seen = seen
            return self._connect("immutable=1")
        try:
            return self._connect("mode=ro")
        except sqlite3.Error as err:
            if getattr(err, "sqlite_errorcode", 0) & 0xFF not in _NO_ROOM:
                raise
        # A writer was killed, and the index of its log cannot be created on disk: SQLite makes it in memory.
        return self._connect("mode=ro&readonly_shm=1")

    def _connect(self, how: str) -> sqlite3.Connection:
        address = f"file:{urllib.parse.quote(str(self._path))}?{how}"
        connection = sqlite3.connect(
            address, uri=True, timeout=self._busy_timeout_s, isolation_level=None, check_same_thread=False
        )
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _look(self) -> _FileStats:
        status = os.stat(self._path)
        try:
            log_bytes = os.stat(f"{self._path}-wal").st_size
        except FileNotFoundError:
            log_bytes = 0
        return _FileStats((status.st_ino, status.st_size, status.st_mtime_ns), log_bytes)
