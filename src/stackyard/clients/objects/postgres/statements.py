"""What the store asks of the server. Each write is one statement, and so one transaction.

A write records its tag in `writes`, removes two tags that are older than `KNOWN_FOR_S`, and notifies
those who watch. It returns no row if the object is not what the writer expects.
The array of the oldest tags keeps PostgreSQL from reading all of `writes`.
"""

from __future__ import annotations

import functools

from psycopg import sql

__all__ = [
    "CONFIRM",
    "DELETE",
    "GET",
    "KNOWN_FOR_S",
    "LIST",
    "PUT_ABSENT",
    "PUT_ANYTHING",
    "PUT_TAG",
    "fill_in",
]

# For how long `writes` tells what became of a write.
KNOWN_FOR_S = 3600.0

PUT_TAG = """
    WITH written AS (
        UPDATE {schema}.objects SET tag = %(tag)s, modified_at = clock_timestamp(), data = %(data)s
        WHERE key = %(key)s AND tag = %(expect)s
        RETURNING tag
    ), logged AS (
        INSERT INTO {schema}.writes (tag, written_at) SELECT tag, clock_timestamp() FROM written
    ), others AS (
        INSERT INTO {schema}.objects (key, tag, modified_at, data)
        SELECT other.key, written.tag, clock_timestamp(), other.data
        FROM written, unnest(%(keys)s::text[], %(bodies)s::bytea[]) AS other (key, data)
        ON CONFLICT (key) DO UPDATE
        SET tag = excluded.tag, modified_at = excluded.modified_at, data = excluded.data
    ), forgotten AS (
        DELETE FROM {schema}.writes WHERE tag = ANY (ARRAY (
            SELECT tag FROM {schema}.writes WHERE written_at < now() - interval '1 hour'
            ORDER BY written_at LIMIT 2 FOR UPDATE SKIP LOCKED
        ))
    )
    SELECT pg_notify(%(channel)s, name)
    FROM written, unnest(%(key)s::text || %(keys)s::text[]) AS name
"""

PUT_ABSENT = """
    WITH written AS (
        INSERT INTO {schema}.objects (key, tag, modified_at, data)
        VALUES (%(key)s, %(tag)s, clock_timestamp(), %(data)s)
        ON CONFLICT DO NOTHING
        RETURNING tag
    ), logged AS (
        INSERT INTO {schema}.writes (tag, written_at) SELECT tag, clock_timestamp() FROM written
    ), others AS (
        INSERT INTO {schema}.objects (key, tag, modified_at, data)
        SELECT other.key, written.tag, clock_timestamp(), other.data
        FROM written, unnest(%(keys)s::text[], %(bodies)s::bytea[]) AS other (key, data)
        ON CONFLICT (key) DO UPDATE
        SET tag = excluded.tag, modified_at = excluded.modified_at, data = excluded.data
    ), forgotten AS (
        DELETE FROM {schema}.writes WHERE tag = ANY (ARRAY (
            SELECT tag FROM {schema}.writes WHERE written_at < now() - interval '1 hour'
            ORDER BY written_at LIMIT 2 FOR UPDATE SKIP LOCKED
        ))
    )
    SELECT pg_notify(%(channel)s, name)
    FROM written, unnest(%(key)s::text || %(keys)s::text[]) AS name
"""

# Here the record alone keeps a late first attempt from replacing what others wrote since, so it comes first.
PUT_ANYTHING = """
    WITH logged AS (
        INSERT INTO {schema}.writes (tag, written_at) VALUES (%(tag)s, clock_timestamp())
        ON CONFLICT DO NOTHING
        RETURNING tag
    ), written AS (
        INSERT INTO {schema}.objects (key, tag, modified_at, data)
        SELECT %(key)s, tag, clock_timestamp(), %(data)s FROM logged
        ON CONFLICT (key) DO UPDATE
        SET tag = excluded.tag, modified_at = excluded.modified_at, data = excluded.data
        RETURNING tag
    ), others AS (
        INSERT INTO {schema}.objects (key, tag, modified_at, data)
        SELECT other.key, written.tag, clock_timestamp(), other.data
        FROM written, unnest(%(keys)s::text[], %(bodies)s::bytea[]) AS other (key, data)
        ON CONFLICT (key) DO UPDATE
        SET tag = excluded.tag, modified_at = excluded.modified_at, data = excluded.data
    ), forgotten AS (
        DELETE FROM {schema}.writes WHERE tag = ANY (ARRAY (
            SELECT tag FROM {schema}.writes WHERE written_at < now() - interval '1 hour'
            ORDER BY written_at LIMIT 2 FOR UPDATE SKIP LOCKED
        ))
    )
    SELECT pg_notify(%(channel)s, name)
    FROM written, unnest(%(key)s::text || %(keys)s::text[]) AS name
"""

# A commit that waits, as that of the write did: what is found is then as durable as a reply promises.
CONFIRM = "UPDATE {schema}.writes SET written_at = clock_timestamp() WHERE tag = %(tag)s RETURNING tag"

GET = "SELECT data, tag FROM {schema}.objects WHERE key = %(key)s"

DELETE = """
    WITH gone AS (DELETE FROM {schema}.objects WHERE key = %(key)s RETURNING key)
    SELECT pg_notify(%(channel)s, key) FROM gone
"""

LIST = """
    SELECT key, octet_length(data), extract(epoch FROM modified_at)::float8 FROM {schema}.objects
    WHERE key >= %(first)s AND key < %(end)s AND key > %(after)s
    ORDER BY key LIMIT %(limit)s
"""


@functools.cache
def fill_in(template: str, schema: str) -> bytes:
    """Return a statement for the tables of a schema."""
    # The templates are constants of this package.
    text = sql.SQL(template)
    return text.format(
        schema=sql.Identifier(schema),
        objects_name=sql.Literal(f'"{schema}".objects'),
    ).as_bytes(None)
