"""Objects in the memory of this process: a real store, for tests and for runs that are to leave nothing."""

from __future__ import annotations

import bisect
import threading
import time
from typing import TYPE_CHECKING

from stackyard.clients.objects.base import (
    ABSENT,
    ANYTHING,
    ConflictError,
    Expect,
    ListedObject,
    Stored,
    Tag,
    check_key,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MemoryObjects"]


class MemoryObjects:
    """A store that lives as long as the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[bytes, Tag, float]] = {}
        self._keys: list[str] = []
        self._writes = 0

    def get(self, key: str) -> Stored | None:
        """Return an object, or None."""
        with self._lock:
            found = self._kept.get(check_key(key))
        return None if found is None else Stored(data=found[0], tag=found[1])

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        """Write an object."""
        others = {check_key(other): body for other, body in (before or {}).items()}
        check_key(key)
        with self._lock:
            there = self._kept.get(key)
            if expect is ABSENT:
                is_expected = there is None
            else:
                is_expected = expect is ANYTHING or (there is not None and there[1] == expect)
            if not is_expected:
                raise ConflictError(key)
            for other, body in others.items():
                self._write(other, body)
            return self._write(key, data)

    def _write(self, key: str, data: bytes) -> Tag:
        self._writes += 1
        tag = Tag(str(self._writes))
        if key not in self._kept:
            bisect.insort(self._keys, key)
        self._kept[key] = (bytes(data), tag, time.time())
        return tag

    def delete(self, key: str) -> None:
        """Remove an object."""
        with self._lock:
            if self._kept.pop(check_key(key), None) is not None:
                del self._keys[bisect.bisect_left(self._keys, key)]

    def list(self, prefix: str, *, after: str = "", limit: int = 1000) -> tuple[ListedObject, ...]:
        """Return the objects behind `after` that begin with a prefix."""
        with self._lock:
            start = max(bisect.bisect_left(self._keys, prefix), bisect.bisect_right(self._keys, after))
            found = []
            for key in self._keys[start : start + limit]:
                if not key.startswith(prefix):
                    break
                data, _, written_at = self._kept[key]
                found.append(ListedObject(key=key, size=len(data), modified_at=written_at))
        return tuple(found)

    def close(self) -> None:
        """Do nothing: another holder may keep using it."""
