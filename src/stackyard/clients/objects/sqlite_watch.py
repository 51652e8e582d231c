"""A watch of a SQLite store: a cheap look at a number that every commit to the file changes.

`PRAGMA data_version` is read from the shared memory of the log, without a lock. Only when it has changed, the
objects below the prefix are counted: each write gives its object a higher tag than all before it.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from stackyard.base.backoff import Backoff

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = ["SqliteWatch"]

_LOOKS = Backoff(first_s=0.005, longest_s=0.05)
_SIGNATURE = "SELECT count(*), max(tag) FROM objects WHERE key >= ? AND key < ?"
# Sorts behind every character that a key may hold.
_BEHIND = "\U0010ffff"


class SqliteWatch:
    """Waits for a change below a prefix.

    Args:
        connection: A connection of its own: the number counts the commits of all others.
        prefix: What is watched.
        errors: Turns an error of SQLite into one of the store.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        prefix: str,
        errors: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._connection = connection
        self._range = (prefix, prefix + _BEHIND)
        self._errors = errors
        self._version, self._signature = self._look()

    def wait(self, timeout_s: float) -> bool:
        """Wait for a change."""
        until = time.monotonic() + timeout_s
        for pause_s in _LOOKS:
            if self._has_changed():
                return True
            left_s = until - time.monotonic()
            if left_s <= 0:
                return False
            threading.Event().wait(min(pause_s, left_s))
        raise AssertionError("looks have no end")

    def _has_changed(self) -> bool:
        with self._errors():
            if self._connection.execute("PRAGMA data_version").fetchone()[0] == self._version:
                return False
        before = self._signature
        self._version, self._signature = self._look()
        return self._signature != before

    def _look(self) -> tuple[int, tuple[int, int | None]]:
        with self._errors():
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            count, newest = self._connection.execute(_SIGNATURE, self._range).fetchone()
        return version, (count, newest)
