"""Objects in the memory of this process: a real store, for tests and for runs that are to leave nothing."""

from __future__ import annotations

import bisect
import collections
import contextlib
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
    check_write_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["MemoryObjects"]

_WRITES_KNOWN = 10_000


class MemoryObjects:
    """A store that lives as long as the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: list[_MemoryWatch] = []
        self._kept: dict[str, tuple[bytes, Tag, float]] = {}
        self._keys: list[str] = []
        self._writes = 0
        self._known: collections.OrderedDict[str, Tag] = collections.OrderedDict()

    def get(self, key: str) -> Stored | None:
        """Return an object, or None."""
        with self._lock:
            found = self._kept.get(check_key(key))
        return None if found is None else Stored(data=found[0], tag=found[1])

    def put(self, key: str, data: bytes, *, expect: Expect, before: Mapping[str, bytes] | None = None) -> Tag:
        """Write an object."""
        return self._put(key, data, expect, before, "")

    def put_once(
        self,
        key: str,
        data: bytes,
        *,
        expect: Expect,
        write_id: str,
        before: Mapping[str, bytes] | None = None,
    ) -> Tag:
        """Write an object, unless this write was done before."""
        return self._put(key, data, expect, before, check_write_id(write_id))

    def _put(
        self, key: str, data: bytes, expect: Expect, before: Mapping[str, bytes] | None, write_id: str
    ) -> Tag:
        others = {check_key(other): body for other, body in (before or {}).items()}
        check_key(key)
        with self._lock:
            if write_id in self._known:
                return self._known[write_id]
            there = self._kept.get(key)
            if expect is ABSENT:
                is_expected = there is None
            else:
                is_expected = expect is ANYTHING or (there is not None and there[1] == expect)
            if not is_expected:
                raise ConflictError(key)
            for other, body in others.items():
                self._write(other, body)
            tag = self._write(key, data)
            self._remember(write_id, tag)
            return tag

    def _remember(self, write_id: str, tag: Tag) -> None:
        if write_id:
            self._known[write_id] = tag
            while len(self._known) > _WRITES_KNOWN:
                self._known.popitem(last=False)

    def _write(self, key: str, data: bytes) -> Tag:
        self._writes += 1
        tag = Tag(str(self._writes))
        if key not in self._kept:
            bisect.insort(self._keys, key)
        self._kept[key] = (bytes(data), tag, time.time())
        self._report(key)
        return tag

    def delete(self, key: str) -> None:
        """Remove an object."""
        with self._lock:
            if self._kept.pop(check_key(key), None) is not None:
                del self._keys[bisect.bisect_left(self._keys, key)]
                self._report(key)

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

    @contextlib.contextmanager
    def watch(self, prefix: str) -> Iterator[_MemoryWatch]:
        """Watch the objects that begin with a prefix."""
        made = _MemoryWatch(prefix, threading.Condition(self._lock))
        with self._lock:
            self._watches.append(made)
        try:
            yield made
        finally:
            with self._lock:
                self._watches.remove(made)

    def _report(self, key: str) -> None:
        for watch in self._watches:
            watch.report(key)

    def close(self) -> None:
        """Do nothing: another holder may keep using it."""


class _MemoryWatch:
    """A watch that the writer wakes.

    Args:
        prefix: What it watches.
        condition: Held by the writer while it reports.
    """

    def __init__(self, prefix: str, condition: threading.Condition) -> None:
        self._prefix = prefix
        self._condition = condition
        self._has_changed = False

    def report(self, key: str) -> None:
        """Wake the waiter if the key is one that it watches; the caller holds the lock."""
        if key.startswith(self._prefix):
            self._has_changed = True
            self._condition.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Wait for a change."""
        with self._condition:
            has_changed = self._condition.wait_for(lambda: self._has_changed, timeout_s)
            self._has_changed = False
        return has_changed
