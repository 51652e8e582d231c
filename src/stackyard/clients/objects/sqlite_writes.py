"""Transactions of a SQLite store, and what became of the writes that have an id, for an hour.

The first such write makes the table: stores of earlier versions have none, and earlier versions ignore it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from typing import TYPE_CHECKING

from stackyard.clients.objects.base import Tag

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["find_write", "record_write", "transaction"]

_TABLES = (
    "CREATE TABLE IF NOT EXISTS writes (id TEXT PRIMARY KEY, tag INTEGER NOT NULL, written_at REAL NOT NULL)",
    "CREATE INDEX IF NOT EXISTS writes_by_time ON writes (written_at)",
)
_KNOWN_FOR_S = 3600.0


def find_write(connection: sqlite3.Connection, write_id: str) -> Tag | None:
    """Return the tag of a write that was done before; None for one without an id."""
    if not write_id:
        return None
    for statement in _TABLES:
        connection.execute(statement)
    row = connection.execute("SELECT tag FROM writes WHERE id = ?", (write_id,)).fetchone()
    return None if row is None else Tag(str(row[0]))


def record_write(connection: sqlite3.Connection, write_id: str, tag: int) -> None:
    """Record a write in the transaction that does it, if it has an id, and forget the old ones."""
    if write_id:
        now = time.time()
        connection.execute("DELETE FROM writes WHERE written_at < ?", (now - _KNOWN_FOR_S,))
        connection.execute("INSERT INTO writes VALUES (?, ?, ?)", (write_id, tag, now))


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit what the block does, or undo it where the block raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
