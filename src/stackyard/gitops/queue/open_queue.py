"""From a store to the queue in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base import extras
from stackyard.gitops.queue.stored import StoredQueue

if TYPE_CHECKING:
    from stackyard.clients.objects import Objects
    from stackyard.gitops.queue.protocol import JobQueue

__all__ = ["is_for_many_machines", "open_queue"]

_POSTGRES = ("postgresql://", "postgres://")


def is_for_many_machines(address: str | None) -> bool:
    """Return whether several machines can work on the queue of a store at the same time."""
    return address is not None and address.startswith(_POSTGRES)


def open_queue(objects: Objects, address: str | None, repository: str) -> JobQueue:
    """Return the queue of a repository, to be used in an `async with` block.

    Args:
        objects: The store, open; it has to stay open for as long as the queue.
        address: The address of that store; None for the embedded one.
        repository: The repository on the forge.

    Raises:
        MissingExtraError: The store is PostgreSQL, and what keeps a queue in it is not installed.
    """
    if address is None or not is_for_many_machines(address):
        return StoredQueue(objects, repository)
    with extras.needed("postgres", "A queue in PostgreSQL"):
        from stackyard.clients.objects.postgres import PostgresAddress  # lazy: only those who use it pay
        from stackyard.gitops.queue.postgres import PostgresQueue  # lazy: as above

    return PostgresQueue(PostgresAddress.parse(address), repository)
