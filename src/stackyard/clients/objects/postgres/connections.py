"""Connections to PostgreSQL: opened when needed, kept for the next call, replaced when lost.

Each call has a connection for itself, so that threads write at the same time. A process that was forked never
uses a connection of its parent. Not psycopg_pool: it keeps threads of its own, which a fork loses.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from stackyard.clients.objects.base import StoreBusyError, StoreError
from stackyard.clients.objects.postgres.errors import ConnectError, SilentServerError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from psycopg.abc import PQGen

    from stackyard.clients.objects.postgres.address import PostgresAddress

__all__ = ["ConnectionPool", "StoreConnection", "open_connection"]

T = TypeVar("T")

# Milliseconds for a lock in each second for an answer: the server gives up before we do.
_LOCK_SHARE = 700.0
# `off` and `local` would report a write that a power cut or a failover can lose. A standby that is waited for
# must not be given up by `statement_timeout`, which reports success then: only locks have a limit.
_SETTINGS = (
    "SELECT set_config('lock_timeout', %s, false), set_config('statement_timeout', '0', false),"
    " set_config('idle_in_transaction_session_timeout', '30s', false),"
    " CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')"
    " THEN set_config('synchronous_commit', 'on', false) END"
)


class StoreConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that does not wait for a silent server without end.

    Attributes:
        answer_timeout_s: How long the server may be silent; None sets no limit.
    """

    answer_timeout_s: float | None = None

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait as psycopg does, within the limit."""
        limited = gen if self.answer_timeout_s is None else _limit(gen, self.answer_timeout_s)
        # psycopg 3.2 has no `timeout`.
        return super().wait(limited, interval, *(() if timeout is None else (timeout,)))


def _limit(gen: PQGen[T], timeout_s: float) -> Generator[Any, Any, T]:
    """Give what a generator gives, until its connection was silent for too long."""
    heard_at = time.monotonic()
    try:
        ready = yield next(gen)
        while True:
            if ready:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > timeout_s:
                raise SilentServerError(f"no answer for {timeout_s:g} s")
            ready = yield gen.send(ready)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def open_connection(address: PostgresAddress, *, answer_timeout_s: float) -> StoreConnection:
    """Log in.

    Raises:
        ConnectError: No connection could be made.
        psycopg.Error: It was lost at once.
    """
    try:
        connection = StoreConnection.connect(**address.parameters, autocommit=True)  # type: ignore[arg-type]
    except psycopg.Error as err:
        raise ConnectError(str(err)) from err
    connection.answer_timeout_s = answer_timeout_s
    try:
        connection.execute(_SETTINGS, (f"{answer_timeout_s * _LOCK_SHARE:.0f}ms",))
    except BaseException:
        connection.close()
        raise
    return connection


class ConnectionPool:
    """A few connections for the threads of one process.

    Args:
        address: Where.
        answer_timeout_s: How long the server may be silent.
        most: How many there are at most; a thread that finds all in use waits for one.
    """

    def __init__(self, address: PostgresAddress, *, answer_timeout_s: float, most: int = 8) -> None:
        self._address = address
        self._answer_timeout_s = answer_timeout_s
        self._most = most
        self._inherited: list[StoreConnection] = []
        self._is_closed = False
        self._begin()
        _POOLS.add(self)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[StoreConnection] = []
        self._used = 0

    @contextlib.contextmanager
    def connection(self) -> Iterator[StoreConnection]:
        """Give a connection for the length of a block. It is closed if the block fails.

        Raises:
            ConnectError: None could be made.
            StoreBusyError: Other threads use all of them for too long.
        """
        self._reserve()
        connection: StoreConnection | None = None
        try:
            connection = self._take() or open_connection(
                self._address, answer_timeout_s=self._answer_timeout_s
            )
            yield connection
            if connection.pgconn.transaction_status == TransactionStatus.IDLE:
                self._keep(connection)
                connection = None
        finally:
            if connection is not None:
                connection.close()
            with self._changed:
                self._used -= 1
                self._changed.notify()

    def close(self) -> None:
        """Close the connections that are not in use; those in use close when their call ends."""
        with self._changed:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def forget(self) -> None:
        """Start without connections in a process that was forked.

        The connections belong to the parent. To close one would end the session of the parent on the server.
        """
        self._inherited += self._idle
        self._begin()

    def _reserve(self) -> None:
        with self._changed:
            if self._is_closed:
                raise StoreError("The store is closed.")
            if not self._changed.wait_for(lambda: self._used < self._most, self._answer_timeout_s):
                raise StoreBusyError(
                    f"All {self._most} connections to {self._address.label} were in use for"
                    f" {self._answer_timeout_s:g} s."
                )
            self._used += 1

    def _take(self) -> StoreConnection | None:
        """Return a connection that is still good, or None."""
        while True:
            with self._changed:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if not _has_input(connection):
                return connection
            connection.close()

    def _keep(self, connection: StoreConnection) -> None:
        with self._changed:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()


def _has_input(connection: StoreConnection) -> bool:
    """Tell whether something came while a connection was idle: its end, or a notice, which is rare."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(0))


_POOLS: weakref.WeakSet[ConnectionPool] = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_POOLS):
        pool.forget()


os.register_at_fork(after_in_child=_forget_all)
