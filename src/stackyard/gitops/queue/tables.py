"""The tables of the queue in PostgreSQL: those of procrastinate, and which deliveries were received.

They are in the schema of the store. Only `PostgresQueue` imports this: procrastinate costs half a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from procrastinate import exceptions, schema
from procrastinate.sync_psycopg_connector import wrap_exceptions

from stackyard.clients.objects import StoreDamagedError, StoreError
from stackyard.clients.objects.postgres.errors import judge

if TYPE_CHECKING:
    from procrastinate import PsycopgConnector

    from stackyard.base.errors import StackyardError

__all__ = ["FORGET", "RECEIVE", "WORKER_OF", "describe_failure", "make_tables"]

# Raised with the version of procrastinate, whose tables and functions they are.
_FORMAT = 1
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('stackyard gitops queue'))"
_OWN = """
CREATE TABLE gitops_queue_format (version integer NOT NULL);
CREATE TABLE gitops_deliveries (
    queue text NOT NULL,
    delivery text NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (queue, delivery)
);
CREATE INDEX gitops_deliveries_received_at ON gitops_deliveries (received_at);
"""

RECEIVE = """
INSERT INTO gitops_deliveries (queue, delivery) VALUES (%(queue)s, %(delivery)s)
ON CONFLICT DO NOTHING RETURNING delivery
"""
# A forge sends a delivery again within days.
FORGET = "DELETE FROM gitops_deliveries WHERE received_at < now() - interval '7 days'"
WORKER_OF = "SELECT worker_id FROM procrastinate_jobs WHERE id = %(id)s AND status = 'doing' FOR UPDATE"


async def make_tables(connector: PsycopgConnector) -> None:
    """Make the tables where they are not there yet.

    Raises:
        StoreDamagedError: They were made by a newer stackyard, or by another program.
    """
    with wrap_exceptions():
        async with connector.pool.connection() as connection:
            await connection.execute(_LOCK)
            made = await connection.execute("SELECT to_regclass('gitops_queue_format') IS NOT NULL")
            if not _value(await made.fetchone()):
                await connection.execute(schema.SchemaManager.get_schema())
                await connection.execute(_OWN)
                await connection.execute("INSERT INTO gitops_queue_format VALUES (%s)", (_FORMAT,))
            found = _value(
                await (await connection.execute("SELECT version FROM gitops_queue_format")).fetchone()
            )
    if found != _FORMAT:
        raise StoreDamagedError(
            "The queue in the database was made by another version of stackyard.",
            remedy="Use the same version of stackyard on all machines.",
        )


def _value(row: Any) -> Any:
    """Return the one value of a row."""
    return None if row is None else row[0]


def describe_failure(err: exceptions.ConnectorException, label: str) -> StackyardError:
    """Return what an error of the database means."""
    cause: Any = err.__cause__
    if cause is None:
        return StoreError(f"The queue in {label} did not answer as it should.")
    return judge(cause, label, is_write=True).error
