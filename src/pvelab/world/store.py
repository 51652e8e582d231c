"""Everything the lab knows, as documents in collections, changed only inside transactions.

A document is a JSON object under `(collection, key)`. Reads give the stored object itself, so they cost
nothing; anyone who changes something puts a new object (`put`, or `edit`, which hands out a copy). One
transaction is one request or one step of a task: it happens as a whole, in memory and on disk, or not at
all. Watchers keep indexes and sums beside the documents and see undone changes as changes back.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from stackyard.base.errors import InternalError

__all__ = ["Change", "Disk", "Document", "Index", "Store", "Watcher"]

Document = Mapping[str, Any]
Watcher = Callable[[str, Document | None, Document | None], None]
Change = tuple[str, str, Document | None]

_EMPTY: Mapping[str, Document] = {}


class Disk(Protocol):
    """Where documents outlive the process."""

    def load(self) -> Iterator[tuple[str, str, Document]]:
        """Yield every stored document as `(collection, key, document)`."""
        ...

    def write(self, changes: list[Change]) -> None:
        """Write changes all together or not; a document of None is a removal."""
        ...

    def close(self) -> None:
        """Finish; everything written stays."""
        ...


class Store:
    """Documents in memory, written through to a disk if there is one.

    Args:
        disk: Where documents are kept; without one they live as long as the process.
    """

    def __init__(self, disk: Disk | None = None) -> None:
        self._disk = disk
        self._collections: dict[str, dict[str, Document]] = {}
        self._watchers: dict[str, list[Watcher]] = {}
        self._undo: list[tuple[str, str, Document | None]] | None = None
        self._owner: asyncio.Task[Any] | None = None
        self._after: list[Callable[[], None]] = []
        self.revision = 0
        for collection, key, document in disk.load() if disk else ():
            self._collections.setdefault(collection, {})[key] = document

    def get(self, collection: str, key: str) -> Document | None:
        """Return a document, which must not be changed, or None."""
        return self._collections.get(collection, _EMPTY).get(key)

    def items(self, collection: str) -> Mapping[str, Document]:
        """Return a collection by key, in the order in which documents were first put."""
        return self._collections.get(collection, _EMPTY)

    def put(self, collection: str, key: str, document: Document) -> None:
        """Add or replace a document; from here on it belongs to the store."""
        self._set(collection, key, document)

    def delete(self, collection: str, key: str) -> None:
        """Remove a document, if it is there."""
        if self.get(collection, key) is not None:
            self._set(collection, key, None)

    @contextlib.contextmanager
    def edit(self, collection: str, key: str) -> Iterator[dict[str, Any]]:
        """Hand out a copy of a document (or a new empty one) and put it back, unless the block fails."""
        document = copy.deepcopy(dict(self.get(collection, key) or {}))
        yield document
        self.put(collection, key, document)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes of the block one: kept together at its end, undone together if it fails.

        A transaction inside another joins it. There must be no `await` inside: other requests would run
        in the middle of it.
        """
        owner = _current_task()
        if self._undo is not None:
            if owner is not self._owner:
                raise InternalError("A transaction of the lab's store was left open across an await.")
            yield
            return
        self._undo, self._owner, self._after = [], owner, []
        try:
            yield
            self._commit()
        except BaseException:
            self._roll_back()
            self._after = []
            raise
        finally:
            self._undo = self._owner = None
        after, self._after = self._after, []
        for action in after:
            action()

    def after_commit(self, action: Callable[[], None]) -> None:
        """Do something once the running transaction is kept; never, if it is undone."""
        self._after.append(action)

    def watch(self, collection: str, watcher: Watcher) -> None:
        """Tell a watcher of every document there is and of every change: `(key, old, new)`."""
        self._watchers.setdefault(collection, []).append(watcher)
        for key, document in self.items(collection).items():
            watcher(key, None, document)

    def index(self, collection: str, field: str) -> Index:
        """Return an index that finds documents by the value of a field."""
        index = Index(field)
        self.watch(collection, index.observe)
        return index

    def dump(self) -> dict[str, dict[str, Any]]:
        """Return a copy of everything."""
        return copy.deepcopy({name: dict(found) for name, found in self._collections.items() if found})

    def replace_all(self, content: Mapping[str, Mapping[str, Document]]) -> None:
        """Make the content of the store exactly this, in one transaction."""
        with self.transaction():
            for collection, documents in list(self._collections.items()):
                for key in [key for key in documents if key not in content.get(collection, _EMPTY)]:
                    self._set(collection, key, None)
            for collection, replacements in content.items():
                for key, document in replacements.items():
                    self._set(collection, key, copy.deepcopy(document))

    def close(self) -> None:
        """Let go of the disk."""
        if self._disk is not None:
            self._disk.close()

    def _set(self, collection: str, key: str, document: Document | None) -> None:
        if self._undo is None:
            raise InternalError(f"The lab changed {collection}/{key} outside a transaction.")
        self._undo.append((collection, key, self.get(collection, key)))
        self._apply(collection, key, document)

    def _apply(self, collection: str, key: str, document: Document | None) -> None:
        documents = self._collections.setdefault(collection, {})
        old = documents.get(key)
        if document is None:
            documents.pop(key, None)
        else:
            documents[key] = document
        self.revision += 1
        for watcher in self._watchers.get(collection, ()):
            watcher(key, old, document)

    def _commit(self) -> None:
        if self._disk is not None and self._undo:
            touched = dict.fromkeys((collection, key) for collection, key, _ in self._undo)
            self._disk.write([(collection, key, self.get(collection, key)) for collection, key in touched])

    def _roll_back(self) -> None:
        for collection, key, document in reversed(self._undo or ()):
            self._apply(collection, key, document)


class Index:
    """Keys of documents by the value of one of their fields, in the order of arrival."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._keys: dict[Any, dict[str, Document]] = {}

    def observe(self, key: str, old: Document | None, new: Document | None) -> None:
        """Follow one change."""
        before = None if old is None else old.get(self._field)
        after = None if new is None else new.get(self._field)
        if old is not None and before != after:
            found = self._keys.get(before)
            if found is not None:
                found.pop(key, None)
                if not found:
                    del self._keys[before]
        if new is not None:
            self._keys.setdefault(after, {})[key] = new
        elif old is not None and before == after and before in self._keys:
            self._keys[before].pop(key, None)

    def find(self, value: Any) -> Mapping[str, Document]:
        """Return the documents with that value, by key."""
        return self._keys.get(value, _EMPTY)

    def values(self) -> list[Any]:
        """Return the values that occur."""
        return list(self._keys)


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
