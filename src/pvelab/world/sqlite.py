"""The lab's data folder: one SQLite file, written through, safe at any kill."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

import orjson

from stackyard.base import files
from stackyard.base.errors import BusyError, FileError, Location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pvelab.world.store import Change, Document

__all__ = ["DataFolderBusyError", "DataFolderError", "SqliteDisk"]

_FORMAT = 1
_TABLE = """
CREATE TABLE IF NOT EXISTS documents (
    collection TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (collection, key)
) WITHOUT ROWID
"""


class DataFolderError(FileError):
    """The lab's data folder holds a damaged file or one of a newer stackyard, or the disk is full."""

    code = "E-LAB-DATA"
    summary = "The lab's data cannot be used"
    default_remedy = "Give the lab another --data folder, or remove this one to start again."


class DataFolderBusyError(BusyError):
    """Another lab is running on the same data folder."""

    code = "E-LAB-BUSY"
    summary = "The lab's data folder is in use"
    default_remedy = "Stop the other lab (stackyard lab down) or give this one another --data folder."


class SqliteDisk:
    """Documents in one SQLite file; one process at a time.

    Args:
        path: The file; it is created if it is not there.

    Raises:
        DataFolderBusyError: Another process has it open.
        DataFolderError: It is not a file of the lab, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._make_private()
        try:
            self._connection = sqlite3.connect(
                path, timeout=0.0, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as err:
            raise self._error(err) from err

    def _make_private(self) -> None:
        """Make the file for its owner alone before SQLite makes it for everyone: tokens are in it."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, files.PRIVATE)
            try:
                os.fchmod(descriptor, files.PRIVATE)
            finally:
                os.close(descriptor)
        except OSError:
            # SQLite says what is wrong with it, in words that users of a lab know; who may not change the
            # mode may still use the file.
            return

    def load(self) -> Iterator[tuple[str, str, Document]]:
        """Yield every stored document."""
        rows = self._connection.execute(
            "SELECT collection, key, body FROM documents ORDER BY collection, key"
        )
        for collection, key, body in rows:
            yield collection, key, orjson.loads(body)

    def write(self, changes: list[Change]) -> None:
        """Write changes in one transaction of the database."""
        gone = [(collection, key) for collection, key, document in changes if document is None]
        kept = [
            (collection, key, orjson.dumps(document))
            for collection, key, document in changes
            if document is not None
        ]
        run = self._connection.execute
        try:
            run("BEGIN IMMEDIATE")
            try:
                self._connection.executemany("DELETE FROM documents WHERE collection = ? AND key = ?", gone)
                self._connection.executemany("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", kept)
                run("COMMIT")
            except BaseException:
                run("ROLLBACK")
                raise
        except sqlite3.Error as err:
            raise self._error(err) from err

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _prepare(self) -> None:
        run = self._connection.execute
        # The exclusive lock keeps a second lab out; NORMAL loses nothing to a kill, only to a power cut.
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        run("BEGIN IMMEDIATE")
        run(_TABLE)
        version = run("PRAGMA user_version").fetchone()[0]
        if version > _FORMAT:
            run("ROLLBACK")
            raise DataFolderError(
                f"{self._path} was written by a newer stackyard (format {version}, not {_FORMAT}).",
                where=Location(str(self._path)),
            )
        run(f"PRAGMA user_version = {_FORMAT}")
        run("COMMIT")

    def _error(self, err: sqlite3.Error) -> DataFolderError | DataFolderBusyError:
        if getattr(err, "sqlite_errorcode", None) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return DataFolderBusyError(f"Another process uses {self._path}.", where=Location(str(self._path)))
        return DataFolderError(f"{self._path}: {err}.", where=Location(str(self._path)))
