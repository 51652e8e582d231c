"""A watch that the server wakes: LISTEN, on a connection of its own.

Each write notifies in its own transaction, with the key as payload. Notices that come while the connection is
lost are lost too, so that a new connection counts as a possible change.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from stackyard.base.backoff import Backoff
from stackyard.clients.objects.postgres.connections import open_connection
from stackyard.clients.objects.postgres.errors import judge
from stackyard.clients.objects.watch import PollingWatch

if TYPE_CHECKING:
    from typing import Self

    from stackyard.clients.objects.postgres.address import PostgresAddress
    from stackyard.clients.objects.postgres.connections import StoreConnection

__all__ = ["PostgresWatch"]

_PAUSES = Backoff(first_s=0.05, longest_s=2.0)


class PostgresWatch:
    """Waits for notices below a prefix; a context manager.

    Args:
        address: Where the store is.
        channel: The channel that its writers notify.
        prefix: What is watched.
        answer_timeout_s: How long the server may be silent when it is asked to notify us.
    """

    def __init__(
        self, address: PostgresAddress, channel: str, prefix: str, *, answer_timeout_s: float
    ) -> None:
        self._address = address
        self._channel = channel
        self._prefix = prefix
        self._answer_timeout_s = answer_timeout_s
        self._connection: StoreConnection | None = None
        self._polling: PollingWatch | None = None
        self._pid = os.getpid()
        self._inherited: list[StoreConnection] = []

    def __enter__(self) -> Self:
        try:
            self._connection = self._listen()
        except psycopg.errors.ReadOnlySqlTransaction:
            # A standby notifies no one.
            self._polling = PollingWatch()
        except psycopg.Error as err:
            raise judge(err, self._address.label).error from err
        return self

    def __exit__(self, *_: object) -> None:
        self._disown()
        self._drop()

    def wait(self, timeout_s: float) -> bool:
        """Wait for a notice, or for the connection to come back."""
        if self._polling is not None:
            return self._polling.wait(timeout_s)
        until = time.monotonic() + timeout_s
        self._disown()
        if self._connection is not None:
            try:
                return self._hear(self._connection, until)
            except psycopg.Error:
                self._drop()
        self._reconnect(until)
        return True

    def _hear(self, connection: StoreConnection, until: float) -> bool:
        while True:
            left_s = max(0.0, until - time.monotonic())
            heard = list(connection.notifies(timeout=left_s, stop_after=1))
            if any(notice.payload.startswith(self._prefix) for notice in heard):
                return True
            if not heard and time.monotonic() >= until:
                return False

    def _reconnect(self, until: float) -> None:
        for pause_s in _PAUSES:
            try:
                self._connection = self._listen()
            except psycopg.Error as err:
                failure = judge(err, self._address.label)
                left_s = until - time.monotonic()
                if not failure.may_pass or left_s <= 0:
                    raise failure.error from err
            else:
                return
            threading.Event().wait(min(pause_s, left_s))

    def _listen(self) -> StoreConnection:
        connection = open_connection(self._address, answer_timeout_s=self._answer_timeout_s)
        try:
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        except BaseException:
            connection.close()
            raise
        # From now on silence means that nothing changes.
        connection.answer_timeout_s = None
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _disown(self) -> None:
        """Leave the connection of a parent alone in a process that was forked."""
        if self._pid != os.getpid() and self._connection is not None:
            self._inherited.append(self._connection)
            self._connection, self._pid = None, os.getpid()
