"""Locking states: taking, releasing and breaking locks, freezing, and telling who holds what."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.state import lock_rules
from stackyard.state.heads import Core, Decision, Edit
from stackyard.state.lockinfo import LockInfo, parse_lock_info
from stackyard.state.model import Actor, AuditAction, Freeze, HeldLock, StateHead, Waiter
from stackyard.state.names import check_name, is_below
from stackyard.state.queue_watch import QueueWatch
from stackyard.state.refusals import NotHolderError, StateLockedError, StateRefusedError
from stackyard.state.runs import RunWatch

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LockReport", "LockTurn", "Locks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockReport:
    """A lock that is held, or a freeze, and who waits.

    Attributes:
        name: The state.
        held: The lock; None where the state is only frozen.
        age_s: For how long.
        is_stale: Whether its holder has not written for so long that someone should look.
        freeze: Why no one may lock it, if so.
        waiting: Who waits, the first at the start.
    """

    name: str
    held: HeldLock | None
    age_s: float
    is_stale: bool
    freeze: Freeze | None
    waiting: tuple[Waiter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTurn:
    """Whether a client that waits should ask for the lock.

    Attributes:
        refusal: Who has it, or is before us; None where it would be granted.
        should_ask: Whether it would be granted, or the queue needs to hear from the client.
    """

    refusal: StateLockedError | None
    should_ask: bool


class Locks:
    """The locks of all states."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._runs = RunWatch(core.objects)
        # A time of day may be set back; the clock of a test is the only one that it has.
        self._queue = QueueWatch(time.monotonic if core.clock is time.time else core.clock)

    def report(self, prefix: str = "") -> Iterator[LockReport]:
        """Yield the states at or below a prefix that are locked or frozen."""
        now = self._core.clock()
        for name in self._core.heads.names():
            head = self._core.heads.read(name) if is_below(name, prefix) else None
            if head is not None and (head.lock is not None or head.freeze is not None):
                yield self._make_report(head, now)

    def _make_report(self, head: StateHead, now: float) -> LockReport:
        held, freeze = head.lock, head.freeze
        since_at = held.since_at if held is not None else freeze.since_at if freeze is not None else now
        active_at = since_at if held is None else max(since_at, held.last_write_at or 0.0)
        return LockReport(
            name=head.name,
            held=held,
            age_s=max(0.0, now - since_at),
            is_stale=held is not None and now - active_at > self._core.policy.stale_after_s,
            freeze=freeze,
            waiting=tuple(lock_rules.list_waiters(head, self._queue.look(head), now)),
        )

    def lock(
        self,
        name: str,
        info: LockInfo | bytes,
        actor: Actor,
        *,
        lease: str | None = None,
        is_waiting: bool = False,
    ) -> HeldLock:
        """Lock a state; again with the same ID is the same lock.

        A lock whose holder is a run of stackyard that is proven dead is taken over.

        Args:
            name: The state.
            info: The lock, as a value or as the client sent it.
            actor: Who asks.
            lease: The lease of the run that asks, where stackyard itself started it.
            is_waiting: Whether the client waits for certain. Of another client only its second request shows
                that.

        Raises:
            StateLockedError: Someone else has it; carries who, and our place among those who wait.
            NotHolderError: The ID was released or broken before.
            StateDeletedError: The state was deleted.
            UnknownStateError: The state is not registered, and must be.
            BodyRefusedError: The lock is none.
        """
        lock = parse_lock_info(info) if isinstance(info, bytes) else info
        check_name(name)

        def decide(head: StateHead | None, now: float) -> Decision[HeldLock | StateLockedError]:
            edit = self._core.edit(name, head, now)
            before, silent = edit.head, self._queue.look(edit.head)
            result: HeldLock | StateLockedError
            try:
                self._take_over_dead(edit, lock.id)
                result = lock_rules.grant_lock(edit, lock, actor, silent, lease=lease)
            except StateLockedError as err:
                err.place, err.polls = lock_rules.enqueue(edit, lock, silent, is_waiting=is_waiting)
                self._queue.note(edit.head, lock.id)
                result = err
            return Decision(result, edit if edit.head is not before else None)

        result = self._core.heads.change(name, decide)
        if isinstance(result, StateLockedError):
            raise result
        return result

    def look(self, name: str, info: LockInfo, actor: Actor) -> LockTurn:
        """Find out, without a write, whether a client that waits should ask for the lock now."""
        head, now = self._core.heads.read(check_name(name)), self._core.clock()
        if head is None:
            return LockTurn(refusal=None, should_ask=True)
        edit, silent = Edit(head, now), self._queue.look(head)
        try:
            self._take_over_dead(edit, info.id)
            lock_rules.grant_lock(edit, info, actor, silent)
        except StateLockedError as err:
            err.place, should_ask = lock_rules.find_place(head, info.id, silent, now)
            return LockTurn(refusal=err, should_ask=should_ask)
        except StateRefusedError:
            # Asking says why.
            pass
        return LockTurn(refusal=None, should_ask=True)

    def leave(self, name: str, lock_id: str) -> None:
        """Give up waiting for a lock, so that those behind need not wait for us."""
        self._core.change(name, lambda edit: lock_rules.leave_queue(edit, lock_id))

    def _take_over_dead(self, edit: Edit, asking_id: str) -> None:
        held = edit.head.lock
        if held is None or held.lease is None or held.info.id == asking_id:
            return
        proof = self._runs.explain_death(held.lease)
        if proof is not None:
            by = Actor(principal="stackyard")
            lock_rules.break_lock(edit, held.info.id, by, reason=proof, action=AuditAction.TAKEN_OVER)

    def unlock(self, name: str, lock_id: str, actor: Actor) -> None:
        """Release a lock; releasing it again does nothing.

        Raises:
            StateLockedError: Someone else holds it.
            NotHolderError: It is not held, and never was by this ID.
        """
        self._core.change(name, lambda edit: lock_rules.release_lock(edit, lock_id, actor))

    def break_lock(self, name: str, lock_id: str | None, actor: Actor, *, reason: str) -> None:
        """Take a lock away from its holder, who can then no longer write.

        Args:
            name: The state.
            lock_id: The lock that is meant; None is whichever is held.
            actor: Who does it.
            reason: Why; it is audited.

        Raises:
            StateLockedError: Another one is held.
            NotHolderError: The state is not locked.
        """

        def change(edit: Edit) -> None:
            if not lock_rules.break_lock(edit, lock_id, actor, reason=reason) and lock_id is None:
                raise NotHolderError(f"{name} is not locked.")

        self._core.change(name, change)

    def withdraw(self, name: str, lock_id: str, actor: Actor) -> None:
        """Take back a lock that was granted to a client that is no longer there to hear of it."""
        self._core.change(name, lambda edit: lock_rules.withdraw_lock(edit, lock_id, actor))

    def freeze(self, name: str, actor: Actor, *, reason: str) -> None:
        """Keep everyone from locking a state; the holder of the lock may finish."""

        def change(edit: Edit) -> None:
            edit.set(freeze=Freeze(by=actor.principal, reason=reason, since_at=edit.now))
            edit.audit(actor, AuditAction.FROZEN, detail=reason)

        self._core.change(name, change)

    def thaw(self, name: str, actor: Actor) -> None:
        """Undo a freeze; nothing happens if there is none."""

        def change(edit: Edit) -> None:
            if edit.head.freeze is not None:
                edit.set(freeze=None)
                edit.audit(actor, AuditAction.THAWED)

        self._core.change(name, change)
