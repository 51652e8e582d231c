"""What is in the store of a site."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from pathlib import Path

from stackyard.clients.objects import ANYTHING, Expect, ListedObject, Objects, Stored, Tag, open_objects
from stackyard.sources.store import ChosenStore
from stackyard.sources.store.sealed import open_sealed

__all__ = ["Scoped", "keys_in", "overwrite", "pending", "put_sealed", "read_sealed"]


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


class Scoped:
    """A part of a store, as someone sees it whose objects begin with a prefix."""

    def __init__(self, inner: Objects, scope: str) -> None:
        self._inner = inner
        self._scope = scope

    def get(self, key: str) -> Stored | None:
        return self._inner.get(self._scope + key)

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        others = {self._scope + other: body for other, body in (before or {}).items()}
        return self._inner.put(self._scope + key, data, expect=expect, before=others)

    def delete(self, key: str) -> None:
        self._inner.delete(self._scope + key)

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[ListedObject, ...]:
        behind = self._scope + after if after else ""
        listed = self._inner.list(self._scope + prefix, after=behind, limit=limit)
        return tuple(dataclasses.replace(one, key=one.key.removeprefix(self._scope)) for one in listed)

    def close(self) -> None:
        self._inner.close()
