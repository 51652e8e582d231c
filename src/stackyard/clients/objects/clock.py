"""The clock of a store: the only one that all of its machines share.

Times of objects are by the clock of the store. Whoever asks how old one is compares with that clock, because
its own may be wrong by hours.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

from stackyard.clients.objects.base import ABSENT, StoreBusyError, StoreError

if TYPE_CHECKING:
    from stackyard.clients.objects.base import Objects

__all__ = ["read_store_clock"]

_PREFIX = "system/checks/clock-"


def read_store_clock(objects: Objects) -> float:
    """Return the time by the clock of a store, in seconds since 1970.

    An object is written for that and removed again; who may not write gets the time of this machine.
    """
    key = f"{_PREFIX}{uuid.uuid4().hex}"
    try:
        objects.put(key, b"", expect=ABSENT)
        try:
            listed = objects.list(key, limit=1)
        finally:
            objects.delete(key)
    except (StoreError, StoreBusyError):
        return time.time()
    return listed[0].modified_at if listed else time.time()
