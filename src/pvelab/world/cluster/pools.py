"""Membership in resource pools: `pool_members/vm/<vmid>` and `pool_members/storage/<pool>/<storage>`.

A guest is in one pool at most, a storage in any number. The pools themselves are `pools/<poolid>`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document, Store

__all__ = ["Pools"]

_MEMBERS = "pool_members"


class Pools:
    """Finds and changes members."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._by_pool = store.index(_MEMBERS, "pool")

    def require(self, pool: str) -> Document:
        """Return a pool.

        Raises:
            PveError: There is no such pool.
        """
        found = self._store.get("pools", pool)
        if found is None:
            raise PveError(f"pool '{pool}' does not exist")
        return found

    def pool_of(self, vmid: int) -> str | None:
        """Return the pool of a guest."""
        member = self._store.get(_MEMBERS, f"vm/{vmid}")
        return None if member is None else str(member["pool"])

    def members(self, pool: str) -> Mapping[str, Document]:
        """Return the members of a pool; each has `vmid` or `storage`."""
        return self._by_pool.find(pool)

    def add_guest(self, pool: str, vmid: int) -> None:
        """Put a guest into a pool, out of any other."""
        self._store.put(_MEMBERS, f"vm/{vmid}", {"pool": pool, "vmid": vmid})

    def remove_guest(self, vmid: int) -> None:
        """Take a guest out of its pool."""
        self._store.delete(_MEMBERS, f"vm/{vmid}")

    def add_storage(self, pool: str, storage: str) -> None:
        """Put a storage into a pool."""
        self._store.put(_MEMBERS, f"storage/{pool}/{storage}", {"pool": pool, "storage": storage})

    def remove_storage(self, pool: str, storage: str) -> None:
        """Take a storage out of a pool."""
        self._store.delete(_MEMBERS, f"storage/{pool}/{storage}")
