"""One connection for a process: a store that is opened again and again is connected to once."""

from __future__ import annotations

import atexit
import contextlib
import threading
from typing import TYPE_CHECKING

from stackyard.clients.objects import open_objects, watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from stackyard.clients.objects import Expect, ListedObject, Objects, Stored, Tag, Watch
    from stackyard.clients.objects.sealed import KeyRing

__all__ = ["close_pooled", "lend_store", "lent_store", "open_pooled"]

_Key = tuple[str, "KeyRing | None", bool]
_lock = threading.Lock()
_opened: dict[_Key, Objects] = {}
# The store that this process was given in place of the one that its input names, and the key to seal with.
_lent: list[tuple[str, str]] = []


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


@contextlib.contextmanager
def lend_store(address: str, objects: Objects, site_key: str) -> Iterator[None]:
    """Have every run of this process use a store that is open, whatever the input names, for a block.

    Args:
        address: What it is called.
        objects: The store; it is closed by whoever opened it.
        site_key: The key to seal with there.
    """
    with _lock:
        _opened[address, None, True] = objects
        _lent.append((address, site_key))
    try:
        yield
    finally:
        with _lock:
            _lent.remove((address, site_key))
            _opened.pop((address, None, True), None)


def lent_store() -> tuple[str, str] | None:
    """Return the address and key of the store that this process was given; None where it was given none."""
    return _lent[-1] if _lent else None


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
