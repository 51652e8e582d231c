"""One connection for a process: a store that is opened again and again is connected to once."""

from __future__ import annotations

import atexit
import threading
from typing import TYPE_CHECKING

from stackyard.clients.objects import open_objects, watch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from stackyard.clients.objects import Expect, ListedObject, Objects, Stored, Tag, Watch
    from stackyard.clients.objects.sealed import KeyRing

__all__ = ["close_pooled", "open_pooled"]

_Key = tuple[str, "KeyRing | None", bool]
_lock = threading.Lock()
_opened: dict[_Key, Objects] = {}


def open_pooled(address: str, *, ring: KeyRing | None = None, create: bool = True) -> Objects:
    """Return a store that other parts of this process may be using too; closing it closes it for no one else.

    Raises:
        UsageError: The address makes no sense.
        StoreError: The store cannot be used.
    """
    with _lock:
        # What may be written can also be read.
        for key in ((address, ring, True), (address, ring, create)):
            if key in _opened:
                return _Borrowed(_opened[key])
        made = open_objects(address, ring=ring, create=create)
        if not _opened:
            atexit.register(close_pooled)
        _opened[address, ring, create] = made
        return _Borrowed(made)


def close_pooled() -> None:
    """Close every connection."""
    with _lock:
        while _opened:
            _opened.popitem()[1].close()


class _Borrowed:
    """A store that someone else closes."""

    def __init__(self, inner: Objects) -> None:
        self._inner = inner

    def get(self, key: str) -> Stored | None:
        return self._inner.get(key)

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        return self._inner.put(key, data, expect=expect, before=before)

    def delete(self, key: str) -> None:
        self._inner.delete(key)

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[ListedObject, ...]:
        return self._inner.list(prefix, after=after, limit=limit)

    def watch(self, prefix: str) -> AbstractContextManager[Watch]:
        return watch(self._inner, prefix)

    def close(self) -> None:
        """Leave it open for the others."""
