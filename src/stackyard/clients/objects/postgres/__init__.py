"""Objects in a PostgreSQL database, for any number of machines: `postgresql://user@host/database`.

`address` reads the address, `connections` keeps connections, `errors` turns the server's errors into ours,
`tables` makes and checks the schema, `store` is the store and `listen` its watch. This package is imported by
whoever uses PostgreSQL and by no other part: psycopg costs 100 ms.
"""

from __future__ import annotations

from stackyard.clients.objects.postgres.address import PostgresAddress
from stackyard.clients.objects.postgres.store import PostgresObjects

__all__ = ["PostgresAddress", "PostgresObjects"]
