"""Whether a store does what is relied on: conditional writes, lists, removal, and a clock near ours."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.clients.objects import ABSENT, ConflictError, StoreUnsafeError

if TYPE_CHECKING:
    from stackyard.clients.objects import Expect, Objects

__all__ = ["CheckedStore", "check_store"]

_PREFIX = "system/checks/"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedStore:
    """What a check found out.

    Attributes:
        write_s: How long a conditional write took, the median of several.
        read_s: How long a read took, the median of several.
        clock_ahead_s: By how much the clock of the store is ahead of this machine's; None if it has none.
    """

    write_s: float
    read_s: float
    clock_ahead_s: float | None


def check_store(objects: Objects, *, rounds: int = 5) -> CheckedStore:
    """Prove that a store can be relied on; what is written for that is removed again.

    Raises:
        StoreUnsafeError: It ignores conditions.
        StoreReadOnlyError: It cannot be written.
        StoreError: It cannot be used.
    """
    key = f"{_PREFIX}{uuid.uuid4().hex}"
    writes, reads = [], []
    try:
        began_at = time.time()
        tag = objects.put(key, b"0", expect=ABSENT)
        _must_conflict(objects, key, ABSENT, "the creation of an object that exists")
        for number in range(1, rounds + 1):
            old, began = tag, time.perf_counter()
            tag = objects.put(key, str(number).encode(), expect=tag)
            writes.append(time.perf_counter() - began)
            began = time.perf_counter()
            stored = objects.get(key)
            reads.append(time.perf_counter() - began)
            if stored is None or stored.data != str(number).encode():
                raise StoreUnsafeError("A read right after a write did not return the new content.")
            _must_conflict(objects, key, old, "a write that was based on an older version")
        listed = [one for one in objects.list(key) if one.key == key]
        if len(listed) != 1:
            raise StoreUnsafeError("A list right after a write did not contain the object.")
        # Written between these two times by our clock.
        middle = (began_at + time.time()) / 2
        ahead_s = listed[0].modified_at - middle
    finally:
        objects.delete(key)
    if objects.get(key) is not None:
        raise StoreUnsafeError("An object that was deleted can still be read.")
    return CheckedStore(
        write_s=sorted(writes)[len(writes) // 2], read_s=sorted(reads)[len(reads) // 2], clock_ahead_s=ahead_s
    )


def _must_conflict(objects: Objects, key: str, expect: Expect, what: str) -> None:
    try:
        objects.put(key, b"not expected", expect=expect)
    except ConflictError:
        return
    raise StoreUnsafeError(f"The store accepted {what}, and must refuse it.")
