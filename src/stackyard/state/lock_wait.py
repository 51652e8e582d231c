"""A run that waits for a lock: woken by the store, and quiet while it is not its turn.

Each attempt to lock writes the head, because the queue records that its clients are alive. So a wake-up only
reads: the run asks again when the lock would be its own, or when the queue needs to hear from it. Runs far
back in the queue also read less often, so that a release is no burden to the store.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

from stackyard.clients.objects import StoreBusyError, StoreError, watch
from stackyard.clients.objects.watch import PollingWatch
from stackyard.state import layout
from stackyard.state.lock_rules import POLLS_OF_A_WAITER
from stackyard.state.refusals import StateLockedError

if TYPE_CHECKING:
    from stackyard.clients.objects import Watch
    from stackyard.state.lockinfo import LockInfo
    from stackyard.state.model import Actor, HeldLock
    from stackyard.state.service import StateService

__all__ = ["LockWait"]

# Nothing reports that a holder died, or that one who waits did: those who are next look for it.
_NEXT_LOOK_S = 1.0
_LOOK_S = 2.5
_NEXT_PLACES = 2
# A lock is held for longer than this by each who is before us.
_PAUSE_FOR_EACH_S = 0.02
_LONGEST_PAUSE_S = 0.5


class LockWait:
    """The wait of one run for the lock of one state; used by one thread at a time.

    Args:
        service: The states.
        name: The state.
        info: The lock.
        actor: The run.
        lease: What proves the run alive.
        is_patient: Whether it waits; one who does not takes no place in the queue.
    """

    def __init__(
        self,
        service: StateService,
        name: str,
        info: LockInfo,
        actor: Actor,
        *,
        lease: str | None = None,
        is_patient: bool = True,
    ) -> None:
        self.objects = service.objects
        self._locks = service.locks
        self.name = name
        self._info = info
        self._actor = actor
        self._lease = lease
        self._is_patient = is_patient
        self._refusal: StateLockedError | None = None
        self._is_queued = False
        self._watching: Watch | None = None
        self._looked_at = 0.0
        self._stack = contextlib.ExitStack()

    def close(self) -> None:
        """Stop waiting, and give up the place in the queue if the lock was not granted."""
        self._stack.close()
        if self._is_queued:
            # Those behind us must not wait for us; at the latest they stop when we do not ask again.
            with contextlib.suppress(StoreError, StoreBusyError):
                self._locks.leave(self.name, self._info.id)

    def ask(self) -> HeldLock:
        """Lock the state, or take a place in the queue.

        Raises:
            StateLockedError: Someone else has it.
            StateRefusedError: It was deleted, or is not registered.
            StoreError: The store cannot be used.
        """
        try:
            held = self._locks.lock(
                self.name, self._info, self._actor, lease=self._lease, is_waiting=self._is_patient
            )
        except StateLockedError as err:
            self._refusal, self._is_queued = err, self._is_patient or err.polls >= POLLS_OF_A_WAITER
            raise
        self._is_queued = False
        return held

    def wait(self, timeout_s: float) -> StateLockedError | None:
        """Wait for a while; return why the lock is still not ours, None when it is time to ask.

        Raises:
            StoreError: The store cannot be used.
        """
        if self._watching is None:
            # What happened before the watch began is seen by the first look.
            self._watching = self._watch()
        elif not self._is_worth_a_look(self._watching, timeout_s):
            return self._refusal
        self._looked_at = time.monotonic()
        turn = self._locks.look(self.name, self._info, self._actor)
        if turn.should_ask or turn.refusal is None:
            return None
        self._refusal = turn.refusal
        return turn.refusal

    def _watch(self) -> Watch:
        try:
            return self._stack.enter_context(watch(self.objects, layout.head(self.name)))
        except (StoreError, StoreBusyError):
            # A server may have no connection left for one more watch.
            return PollingWatch()

    def _is_worth_a_look(self, watching: Watch, timeout_s: float) -> bool:
        place = 1 if self._refusal is None or self._refusal.place is None else self._refusal.place
        is_next = place <= _NEXT_PLACES
        due_at = self._looked_at + (_NEXT_LOOK_S if is_next else _LOOK_S)
        left_s = max(0.0, min(timeout_s, due_at - time.monotonic()))
        try:
            has_changed = watching.wait(left_s)
        except (StoreError, StoreBusyError):
            self._watching, has_changed = PollingWatch(), False
        if has_changed and not is_next:
            pause_s = min(_PAUSE_FOR_EACH_S * (place - 1), _LONGEST_PAUSE_S)
            threading.Event().wait(min(pause_s, timeout_s))
        return has_changed or time.monotonic() >= due_at
