"""What is in the store of a site."""

from __future__ import annotations

import contextlib
from pathlib import Path

from stackyard.clients.objects import ANYTHING, open_objects
from stackyard.sources.store import ChosenStore
from stackyard.sources.store.sealed import open_sealed

__all__ = ["keys_in", "overwrite", "pending", "put_sealed", "read_sealed"]


def keys_in(base: Path, prefix: str) -> list[str]:
    """Return the names of objects in the embedded store of a site."""
    with contextlib.closing(ChosenStore(base=base).read()) as objects:
        return [one.key for one in objects.list(prefix)]


def pending(base: Path) -> list[str]:
    """Return the entries of the journal: what runs began to create and no state has yet."""
    return keys_in(base, "journal/")


def overwrite(base: Path, key: str, data: bytes | None) -> None:
    """Replace an object by anything, or remove it."""
    with contextlib.closing(open_objects(base / "state")) as objects:
        if data is None:
            objects.delete(key)
        else:
            objects.put(key, data, expect=ANYTHING)


def read_sealed(base: Path, key: str) -> bytes:
    """Return what a sealed object of the embedded store holds."""
    store = ChosenStore(base=base)
    with contextlib.closing(store.open()) as objects:
        found = open_sealed(store, objects).get(key)
    assert found is not None
    return found.data


def put_sealed(base: Path, key: str, data: bytes) -> None:
    """Seal anything in place of an object."""
    store = ChosenStore(base=base)
    with contextlib.closing(store.open()) as objects:
        open_sealed(store, objects).put(key, data, expect=ANYTHING)
