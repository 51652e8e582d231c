"""The tables of a store: made on first use, checked at every opening.

`objects` holds the objects. `writes` holds the tags of recent writes: if the reply to a write is lost, it
tells whether the write happened, also if another writer replaced it since. `store_format` holds the version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients.objects.base import StoreAbsentError, StoreDamagedError, StoreError, StoreReadOnlyError
from stackyard.clients.objects.postgres.statements import fill_in

if TYPE_CHECKING:
    from stackyard.clients.objects.postgres.address import PostgresAddress
    from stackyard.clients.objects.postgres.connections import StoreConnection

__all__ = ["check_tables", "make_tables", "missing"]

# What `_TABLES` writes.
_FORMAT = 1
# Not `to_regclass`: that may answer from before the lock that `make_tables` waits for.
_LOOK = """
    SELECT count(table_name) FILTER (WHERE table_name = 'store_format') > 0,
           count(table_name) FILTER (WHERE table_name IN ('objects', 'writes')) > 0,
           count(schema_name) > 0, pg_is_in_recovery()
    FROM (
        SELECT nspname AS schema_name, relname AS table_name
        FROM pg_catalog.pg_namespace LEFT JOIN pg_catalog.pg_class ON relnamespace = pg_namespace.oid
        WHERE nspname = %s
    ) AS found
"""
_VERSION = """
    SELECT (SELECT max(version) FROM {schema}.store_format),
           has_table_privilege({objects_name}, 'INSERT') AND has_table_privilege({objects_name}, 'UPDATE')
"""
_TABLES = """
    CREATE TABLE {schema}.objects (
        key text COLLATE "C" PRIMARY KEY,
        tag text COLLATE "C" NOT NULL,
        modified_at timestamptz NOT NULL,
        data bytea NOT NULL
    );
    CREATE TABLE {schema}.writes (
        tag text COLLATE "C" PRIMARY KEY,
        written_at timestamptz NOT NULL
    );
    CREATE INDEX writes_written_at ON {schema}.writes (written_at);
    CREATE TABLE {schema}.store_format (version integer PRIMARY KEY);
    INSERT INTO {schema}.store_format VALUES (1)
"""


def check_tables(connection: StoreConnection, address: PostgresAddress, *, is_written: bool) -> bool:
    """Tell whether the tables are there.

    Args:
        connection: A connection.
        address: Where the store is.
        is_written: Whether the caller needs to write to them.

    Raises:
        StoreDamagedError: They belong to another program, or to a newer stackyard.
        StoreReadOnlyError: They may not be written.
    """
    schema, label = address.schema, address.label
    has_format, has_objects, _, is_standby = _look(connection, schema)
    if has_objects and not has_format:
        raise StoreDamagedError(
            f"The schema {schema} of {label} has tables of another program.",
            remedy="Choose another schema for the store.",
        )
    if is_written and is_standby:
        raise StoreReadOnlyError(
            f"{label[:1].upper()}{label[1:]} is a standby, which takes no writes.",
            remedy="Give the address of the primary, or all hosts: postgresql://user@one,two/database.",
        )
    if not has_format:
        return False
    version, may_write = connection.execute(fill_in(_VERSION, schema)).fetchone() or (None, False)
    if version is None or version > _FORMAT:
        raise StoreDamagedError(
            f"The schema {schema} of {label} was written by a newer stackyard (format {version}, not"
            f" {_FORMAT}).",
            remedy="Use that version of stackyard, or choose another schema for the store.",
        )
    if is_written and not may_write:
        raise StoreReadOnlyError(
            f"The user may read the schema {schema} of {label}, but not write to it.",
            remedy="Have the owner of the database grant the rights that docs/reference/state.md lists.",
        )
    return True


def make_tables(connection: StoreConnection, address: PostgresAddress) -> None:
    """Make the schema and the tables, if another process did not do so in between."""
    with connection.transaction():
        # Two that create one schema at the same time would fail, also with IF NOT EXISTS.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"stackyard {address.schema}",))
        if check_tables(connection, address, is_written=True):
            return
        _, _, has_schema, _ = _look(connection, address.schema)
        if not has_schema:
            # Only then: it takes the right to create schemas even where there is nothing to do.
            connection.execute(fill_in("CREATE SCHEMA {schema}", address.schema))
        connection.execute(fill_in(_TABLES, address.schema))


def _look(connection: StoreConnection, schema: str) -> tuple[Any, ...]:
    row = connection.execute(_LOOK, (schema,)).fetchone()
    assert row is not None  # noqa: S101 - a query of counts has one row
    return row


def missing(address: PostgresAddress) -> StoreError:
    """Return the error for tables that are not there and must not be made."""
    return StoreAbsentError(
        f"There is no store in the schema {address.schema} of {address.label}.",
        remedy="Check the address; the first write through `stackyard state serve` or `apply` makes a store.",
    )
