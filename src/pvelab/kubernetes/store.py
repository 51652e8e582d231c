"""The objects of a cluster, each change of them with its version, and who waits for changes."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pvelab.kubernetes import problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pvelab.kubernetes.record import Record

__all__ = ["Key", "Store", "StoredChange"]

# How many changes are kept for clients that resume a watch.
_KEPT = 10_000
# A store that is read again begins above any version that its objects had, those since deleted included.
_NEXT_START = 100_000


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Where an object is: its group and plural, its namespace and its name."""

    group: str
    plural: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class StoredChange:
    """A change: its version, what happened, and the object after it (before it, for a deletion)."""

    version: int
    change: str
    key: Key
    record: Record


@dataclass(slots=True)
class Store:
    """All objects, in memory.

    Attributes:
        version: The version of the last change.
        on_change: Called with every change, to keep it elsewhere.
        is_closed: Whether watches have ended.
    """

    version: int = 1
    on_change: Callable[[StoredChange], None] | None = None
    _records: dict[Key, Record] = field(default_factory=dict)
    _changes: deque[StoredChange] = field(default_factory=deque)
    _oldest: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    is_closed: bool = False

    def restore(self, records: Iterable[tuple[Key, Record]]) -> None:
        """Begin with these objects; watches from before must list again."""
        self._records = dict(records)
        versions = [int(record.object["metadata"]["resourceVersion"]) for record in self._records.values()]
        self.version = (max(versions, default=0) // _NEXT_START + 1) * _NEXT_START
        self.compact()

    def find(self, key: Key) -> Record | None:
        """Return an object, if it is there."""
        return self._records.get(key)

    def list_records(self, group: str, plural: str, namespace: str = "") -> list[tuple[Key, Record]]:
        """Return the objects of a kind, in the order of their names."""
        return sorted(
            (
                (key, record)
                for key, record in self._records.items()
                if (key.group, key.plural) == (group, plural) and namespace in ("", key.namespace)
            ),
            key=lambda row: row[0],
        )

    def list_all(self) -> list[tuple[Key, Record]]:
        """Return everything, in the order of the keys."""
        return sorted(self._records.items(), key=lambda row: row[0])

    def replace_all(self, records: dict[Key, Record], version: int) -> None:
        """Put other objects in the place of everything, as a restore does."""
        self._records = dict(records)
        # No version comes twice, so that a client with one from before notices.
        self.version = max(self.version, version) + 1
        self.compact()
        self._wake()

    def put(self, key: Key, record: Record) -> Record:
        """Write an object; return it with its new version, or as it was if it is the same."""
        before = self._records.get(key)
        if before is record:
            return record
        self.version += 1
        metadata = {**record.object["metadata"], "resourceVersion": str(self.version)}
        written = replace(record, object={**record.object, "metadata": metadata})
        self._records[key] = written
        self._note("ADDED" if before is None else "MODIFIED", key, written)
        return written

    def remove(self, key: Key) -> Record | None:
        """Remove an object; return its last version."""
        record = self._records.pop(key, None)
        if record is None:
            return None
        self.version += 1
        metadata = {**record.object["metadata"], "resourceVersion": str(self.version)}
        last = replace(record, object={**record.object, "metadata": metadata})
        self._note("DELETED", key, last)
        return last

    def _note(self, change: str, key: Key, record: Record) -> None:
        noted = StoredChange(self.version, change, key, record)
        if self.on_change is not None:
            self.on_change(noted)
        self._changes.append(noted)
        while len(self._changes) > _KEPT:
            self._oldest = self._changes.popleft().version
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def compact(self) -> None:
        """Forget every change so far: a watch from an earlier version must list again."""
        self._oldest = self.version
        self._changes.clear()

    def close(self) -> None:
        """End every watch."""
        self.is_closed = True
        self._wake()

    def changes_since(self, version: int) -> Iterator[StoredChange]:
        """Yield the changes after a version.

        Raises:
            KubeStatusError: They are no longer kept.
        """
        if version < self._oldest:
            raise problems.expired(version, self._oldest)
        yield from [change for change in self._changes if change.version > version]

    async def wait(self, version: int, timeout_s: float) -> bool:
        """Wait for a change after a version; return whether there may be one."""
        if self.version > version or self.is_closed:
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True
