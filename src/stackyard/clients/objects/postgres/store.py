"""A store in PostgreSQL: each write is one statement that commits durably or does nothing.

The tag of an object is the number of the write that made it. If the connection breaks before the reply, the
same statement runs again with the same number, on a new connection. It changes nothing if the first one
arrived: the expected tag is gone, or the number is in `writes`. So a write happens once, however late the
first statement reaches the server, and `writes` tells the caller that it did.
"""

from __future__ import annotations

import functools
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import psycopg

from stackyard.base.backoff import Backoff
from stackyard.clients.objects.base import (
    ABSENT,
    ANYTHING,
    ConflictError,
    Expect,
    ListedObject,
    Stored,
    StoreError,
    Tag,
    check_key,
    check_write_id,
)
from stackyard.clients.objects.postgres import statements, tables
from stackyard.clients.objects.postgres.connections import ConnectionPool
from stackyard.clients.objects.postgres.errors import ConnectError, judge
from stackyard.clients.objects.postgres.listen import PostgresWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.clients.objects.postgres.address import PostgresAddress
    from stackyard.clients.objects.postgres.connections import StoreConnection

__all__ = ["PostgresObjects"]

T = TypeVar("T")

_PAUSES = Backoff(first_s=0.02, longest_s=1.0)
# Counts the time in which the machine sleeps, where the system can tell.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
# Sorts behind every character that a key may hold, and is in every encoding of a database.
_BEHIND = "\x7f"
_PUTS: Mapping[object, str] = {ABSENT: statements.PUT_ABSENT, ANYTHING: statements.PUT_ANYTHING}
# A method of the store has this name.
_Rows: TypeAlias = "list[tuple[Any, ...]]"


class PostgresObjects:
    """A store in one schema of a database.

    Args:
        address: Where.
        create: Whether the tables are made if they are missing. Without it nothing is written before the
            first write, and no right to write is needed.
        patience_s: How long a call waits for a server that restarts or fails over.
        answer_timeout_s: How long the server may be silent, and how long to wait for a lock.

    Raises:
        StoreDeniedError: The server does not let us in.
        StoreReadOnlyError: It may not be written, and `create` asks for it.
        StoreDamagedError: The schema belongs to another program, or to a newer stackyard.
        StoreError: It cannot be reached, or there is no store and `create` says no.
    """

    def __init__(
        self,
        address: PostgresAddress,
        *,
        create: bool = True,
        patience_s: float = 30.0,
        answer_timeout_s: float = 30.0,
    ) -> None:
        self._address = address
        self._patience_s = patience_s
        self._answer_timeout_s = answer_timeout_s
        self._channel = f"stackyard_{address.schema}"
        self._pool = ConnectionPool(address, answer_timeout_s=answer_timeout_s)
        try:
            self._repeat(functools.partial(self._prepare, create), is_write=create, is_first=True)
        except BaseException:
            self._pool.close()
            raise

    def get(self, key: str) -> Stored | None:
        """Return an object, or None."""
        rows = self._read(statements.GET, {"key": check_key(key)})
        return Stored(data=bytes(rows[0][0]), tag=Tag(rows[0][1])) if rows else None

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        """Write an object, and those that come before it, in one transaction."""
        return self._put(key, data, expect, before, uuid.uuid4().hex)

    def put_once(
        self,
        key: str,
        data: bytes,
        *,
        expect: Expect,
        write_id: str,
        before: Mapping[str, bytes] | None = None,
    ) -> Tag:
        """Write an object, unless `writes` has the id as a tag."""
        return self._put(key, data, expect, before, check_write_id(write_id), may_be_done=True)

    def _put(
        self,
        key: str,
        data: bytes,
        expect: Expect,
        before: Mapping[str, bytes] | None,
        tag: str,
        *,
        may_be_done: bool = False,
    ) -> Tag:
        others = {check_key(other): bytes(body) for other, body in (before or {}).items()}
        # The object itself is written last, whatever `before` says of it.
        others.pop(check_key(key), None)
        statement = self._statement(_PUTS.get(expect, statements.PUT_TAG))
        values = {"key": key, "tag": tag, "data": bytes(data), "expect": str(expect)}
        more = {"keys": list(others), "bodies": list(others.values()), "channel": self._channel}
        began = time.clock_gettime(_CLOCK)

        def write(connection: StoreConnection, is_in_doubt: bool) -> bool:
            try:
                if connection.execute(statement, {**values, **more}).fetchone() is not None:
                    return True
            except psycopg.errors.UniqueViolation:
                # The number is in `writes`, and the object has been removed since.
                return self._was_written(connection, tag, began)
            return (is_in_doubt or may_be_done) and self._was_written(connection, tag, began)

        if not self._repeat(write, is_write=True):
            raise ConflictError(key)
        return Tag(tag)

    def delete(self, key: str) -> None:
        """Remove an object."""
        statement, values = (
            self._statement(statements.DELETE),
            {"key": check_key(key), "channel": self._channel},
        )
        self._repeat(lambda connection, _: connection.execute(statement, values), is_write=True)

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[ListedObject, ...]:
        """Return the objects behind `after` that begin with a prefix."""
        rows = self._read(
            statements.LIST, {"first": prefix, "end": prefix + _BEHIND, "after": after, "limit": limit}
        )
        return tuple(ListedObject(key=key, size=size, modified_at=at) for key, size, at in rows)

    def watch(self, prefix: str) -> PostgresWatch:
        """Watch the objects that begin with a prefix, on a connection of its own."""
        return PostgresWatch(self._address, self._channel, prefix, answer_timeout_s=self._answer_timeout_s)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    # --- Requests

    def _statement(self, template: str) -> bytes:
        return statements.fill_in(template, self._address.schema)

    def _read(self, template: str, values: Mapping[str, object]) -> _Rows:
        statement = self._statement(template)
        return self._repeat(
            lambda connection, _: connection.execute(statement, values, binary=True).fetchall()
        )

    def _prepare(self, create: bool, connection: StoreConnection, _is_in_doubt: bool) -> None:
        if tables.check_tables(connection, self._address, is_written=create):
            return
        if not create:
            raise tables.missing(self._address)
        tables.make_tables(connection, self._address)

    def _was_written(self, connection: StoreConnection, tag: str, began: float) -> bool:
        """Tell whether an attempt whose reply was lost did its work."""
        if connection.execute(self._statement(statements.CONFIRM), {"tag": tag}).fetchone() is not None:
            return True
        if time.clock_gettime(_CLOCK) - began > statements.KNOWN_FOR_S / 2:
            raise StoreError(
                f"The reply of {self._address.label} to a write was lost too long ago to tell whether it was"
                " written.",
                remedy="Read the object again and decide again.",
            )
        return False

    def _repeat(
        self,
        action: Callable[[StoreConnection, bool], T],
        *,
        is_write: bool = False,
        is_first: bool = False,
    ) -> T:
        """Do what can be done twice, on a new connection each time, while the failure may pass.

        Args:
            action: It is given a connection, and whether an earlier attempt may have done the work.
            is_write: Whether it writes.
            is_first: Whether the store is being opened: a server that is away is not waited for then.
        """
        is_in_doubt = False
        give_up_at = time.monotonic() + self._patience_s
        for pause_s in _PAUSES:
            try:
                with self._pool.connection() as connection:
                    return action(connection, is_in_doubt)
            except psycopg.Error as err:
                failure = judge(err, self._address.label, is_write=is_write)
                # After a failover the server of a lost connection may be a standby, for a while.
                may_pass = failure.may_pass or (is_in_doubt and err.sqlstate == "25006")
                left_s = give_up_at - time.monotonic()
                if not may_pass or left_s <= 0 or (is_first and failure.is_away):
                    raise failure.error from err
                is_in_doubt = is_in_doubt or not isinstance(err, ConnectError)
            threading.Event().wait(min(pause_s, left_s))
        raise AssertionError("pauses have no end")
