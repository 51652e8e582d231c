"""Which of those who wait for a lock are alive, without trusting any clock but one's own.

Each request of a client that waits changes its entry in the queue. An entry that does not change for as long
as it promises, as seen by ourselves, belongs to a client that is gone. The first look therefore never proves
that: what an entry says of times is by the clock of the machine that wrote it, which may be wrong by hours.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.state.model import StateHead, Waiter

__all__ = ["QueueWatch"]


class QueueWatch:
    """Remembers since when entries of queues have not changed, as this process saw them.

    Args:
        clock: Seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[str, dict[str, tuple[tuple[int, float], float]]] = {}
        self._turn = threading.Lock()

    def look(self, head: StateHead) -> Mapping[str, float]:
        """Return for how long each entry of a queue was seen unchanged, by the id of its lock."""
        now = self._clock()
        with self._turn:
            before = self._seen.pop(head.name, {})
            seen = {}
            for waiter in head.waiting:
                known = before.get(waiter.info.id)
                mark = _mark(waiter)
                seen[waiter.info.id] = known if known is not None and known[0] == mark else (mark, now)
            if seen:
                self._seen[head.name] = seen
            return {lock_id: now - since for lock_id, (_, since) in seen.items()}

    def note(self, head: StateHead, lock_id: str) -> None:
        """Take note of an entry that is being written: it is as old as now, not as our next look at it."""
        now = self._clock()
        with self._turn:
            seen = self._seen.setdefault(head.name, {})
            for waiter in head.waiting:
                if waiter.info.id == lock_id and seen.get(lock_id, ((), 0.0))[0] != _mark(waiter):
                    seen[lock_id] = (_mark(waiter), now)


def _mark(waiter: Waiter) -> tuple[int, float]:
    """Return what each request of a client changes."""
    return waiter.polls, waiter.seen_at
