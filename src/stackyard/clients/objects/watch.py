"""Waiting for a change: `watch(objects, prefix)` gives a `Watch`, whatever the store can do.

A store that reports changes wakes the waiter. For any other store the waiter looks at growing intervals.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from stackyard.base.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from stackyard.clients.objects.base import Objects

__all__ = ["PollingWatch", "Watch", "WatchableObjects", "watch"]

# The first looks come quickly, as most waits are short; a long wait costs one look a second.
_POLLS = Backoff(first_s=0.05, longest_s=1.0)


class Watch(Protocol):
    """Waits for changes of the objects below a prefix. Used by one thread at a time."""

    def wait(self, timeout_s: float) -> bool:
        """Wait for a change, and tell whether there may have been one.

        True means: read again, something may have changed since the watch began or since the last True. It
        may be a false alarm. False means that the time is over. A store that reports changes says False only
        if nothing changed; a store that is polled says it if the next look is not due yet.

        Raises:
            StoreError: The store cannot be reached for all of that time.
        """


@runtime_checkable
class WatchableObjects(Protocol):
    """A store that reports changes, or knows how its changes are watched."""

    def watch(self, prefix: str) -> AbstractContextManager[Watch]:
        """Watch the objects that begin with a prefix; no change is missed from now on."""


@contextlib.contextmanager
def watch(objects: Objects, prefix: str) -> Iterator[Watch]:
    """Watch the objects of any store that begin with a prefix, for the length of a block.

    Begin to watch, then read, then wait: a change after the read ends the wait.
    """
    if isinstance(objects, WatchableObjects):
        with objects.watch(prefix) as found:
            yield found
    else:
        yield PollingWatch()


class PollingWatch:
    """A watch of a store that reports nothing: each look may find a change.

    Args:
        polls: The pauses between looks.
    """

    def __init__(self, polls: Backoff = _POLLS) -> None:
        self._pauses = iter(polls)
        self._due_at = time.monotonic() + next(self._pauses)
        self._never = threading.Event()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the next look is due."""
        left_s = self._due_at - time.monotonic()
        if left_s > timeout_s:
            self._never.wait(timeout_s)
            return False
        self._never.wait(max(0.0, left_s))
        self._due_at = time.monotonic() + next(self._pauses)
        return True
