"""A part of a store: everything whose name begins with a prefix, without that prefix."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stackyard.clients.objects.base import check_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.objects.base import Expect, ListedObject, Objects, Stored, Tag

__all__ = ["ScopedObjects"]


class ScopedObjects:
    """A part of a store, which no name leads out of.

    Args:
        inner: The whole store; it is closed by whoever opened it.
        scope: What the names of the part begin with, with a slash at the end.
    """

    def __init__(self, inner: Objects, scope: str) -> None:
        self._inner = inner
        self._scope = scope

    def get(self, key: str) -> Stored | None:
        """Return an object of the part, or None."""
        return self._inner.get(self._scope + check_key(key))

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        """Write an object of the part."""
        others = {self._scope + check_key(other): body for other, body in (before or {}).items()}
        return self._inner.put(self._scope + check_key(key), data, expect=expect, before=others)

    def delete(self, key: str) -> None:
        """Remove an object of the part."""
        self._inner.delete(self._scope + check_key(key))

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[ListedObject, ...]:
        """Return the objects of the part that begin with a prefix."""
        behind = self._scope + _check_part(after) if after else ""
        listed = self._inner.list(self._scope + _check_part(prefix), after=behind, limit=limit)
        return tuple(dataclasses.replace(one, key=one.key.removeprefix(self._scope)) for one in listed)

    def close(self) -> None:
        """Leave the whole store open."""


def _check_part(text: str) -> str:
    """Return the beginning of a name, which need not be a whole one."""
    return check_key(f"{text}x")[:-1] if text else ""
