"""Connections to one SQLite file, one for each thread that reads."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ThreadConnections"]


class _ThreadConnection:
    """The connection of one thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()


class _ThreadState(threading.local):
    """What belongs to one thread, and goes with it."""

    held: _ThreadConnection | None = None


class ThreadConnections:
    """A connection for each thread that asks, closed when the thread ends.

    Args:
        connect: Opens one.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._mine = _ThreadState()
        self._lock = threading.Lock()
        # Weak: a store may outlive many threads, and each connection holds two files open.
        self._all: weakref.WeakSet[_ThreadConnection] = weakref.WeakSet()

    def get_connection(self) -> sqlite3.Connection:
        """Return the connection of this thread."""
        if self._mine.held is None:
            self._mine.held = _ThreadConnection(self._connect())
            with self._lock:
                self._all.add(self._mine.held)
        return self._mine.held.connection

    def close(self) -> None:
        """Close all of them; no thread may be using its own."""
        with self._lock:
            for held in self._all:
                held.close()
            self._all.clear()
