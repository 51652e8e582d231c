"""Whether the store takes writes: known from the last one, and tried where that was too long ago.

A disk that is full, or was mounted read-only, still answers every read. So a service that only reads to find
out how it is would call itself well while every engine fails to save its state.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from stackyard.clients.objects import ANYTHING, StoreBusyError, StoreError
from stackyard.state import layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.clients.objects import Objects

__all__ = ["StoreHealth"]

# Everyone may ask: what was found out is good for this long, no matter who asks how often.
_GOOD_FOR_S = 30.0
_BAD_FOR_S = 1.0
_SMALLEST_BYTES = 4096
_LARGEST_BYTES = 16 * 1024 * 1024


class StoreHealth:
    """What is known of writing to a store; may be used by many threads.

    Args:
        objects: The store.
        clock: Seconds that only go forward.
    """

    def __init__(self, objects: Objects, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._objects = objects
        self._clock = clock
        self._trying = threading.Lock()
        self._known_at: float | None = None
        self._failure: StoreError | StoreBusyError | None = None
        # What could not be written last: only a store that has room for as much is well again.
        self._failed_bytes = 0

    def note_success(self) -> None:
        """Take note of a write that was stored."""
        if self._failure is None:
            self._known_at = self._clock()

    def note_failure(self, err: StoreError | StoreBusyError, size: int) -> None:
        """Take note of a write of this many bytes that the store could not take."""
        self._failure, self._known_at = err, self._clock()
        self._failed_bytes = min(max(self._failed_bytes, size), _LARGEST_BYTES)

    def check(self) -> None:
        """Read, and find out whether the store takes writes.

        Raises:
            StoreError: It does not, or cannot be read.
            StoreBusyError: Other processes keep it busy.
        """
        self._objects.list(layout.HEADS, limit=1)
        with self._trying:
            if self._is_known():
                if self._failure is not None:
                    raise self._failure
                return
            self._try_to_write()

    def _is_known(self) -> bool:
        lasts_s = _GOOD_FOR_S if self._failure is None else _BAD_FOR_S
        return self._known_at is not None and self._clock() - self._known_at < lasts_s

    def _try_to_write(self) -> None:
        # What cannot be compressed, as a store below ours may do.
        data = os.urandom(max(_SMALLEST_BYTES, self._failed_bytes))
        try:
            self._objects.put(layout.HEALTH, data, expect=ANYTHING)
        except (StoreError, StoreBusyError) as err:
            self.note_failure(err, len(data))
            raise
        if len(data) > _SMALLEST_BYTES:
            self._objects.put(layout.HEALTH, data[:_SMALLEST_BYTES], expect=ANYTHING)
        self._failure, self._failed_bytes, self._known_at = None, 0, self._clock()
