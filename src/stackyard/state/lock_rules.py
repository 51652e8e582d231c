"""Who holds the lock: decisions on a head, none of which touches the world.

A lock ID is granted once. Every grant has a higher epoch than the one before, and an ID that was released or
broken is spent: it can neither write nor lock again, however late its messages arrive.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stackyard.state.lockinfo import LockInfo, make_lock_info
from stackyard.state.model import Actor, AuditAction, HeldLock, SpentLock, StateHead, Waiter
from stackyard.state.refusals import (
    FREEZE,
    FROZEN,
    NotHolderError,
    StateDeletedError,
    StateLockedError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from stackyard.state.heads import Edit

    # For how long each entry of the queue was seen unchanged, by the id of its lock.
    Silent: TypeAlias = Mapping[str, float]

__all__ = [
    "LONGEST_PROMISE_S",
    "POLLS_OF_A_WAITER",
    "break_lock",
    "describe_holder",
    "enqueue",
    "find_place",
    "find_spent_lock",
    "grant_lock",
    "leave_queue",
    "list_waiters",
    "make_frozen_holder",
    "refuse_deleted",
    "refuse_locked",
    "release_lock",
    "withdraw_lock",
]

_SPENT_KEPT = 64
_WAITERS_KEPT = 64
# The engines ask again after 1, 2, 4, 8 and from then on 16 seconds, a little more on a busy machine.
_LONGEST_PAUSE_S = 16.0
_SLACK_S = 3.0
# A client in the queue that is silent for longer is gone.
LONGEST_PROMISE_S = _LONGEST_PAUSE_S + _SLACK_S
# A client that asks faster than this is not written down each time.
_NOTED_EVERY_S = 0.5
# No clock is wrong by so much: an entry that is further from our time is left over from long ago.
_PLAUSIBLE_S = 86_400.0
# Who asks once may have gone with the answer; who asks twice waits.
POLLS_OF_A_WAITER = 2


def refuse_deleted(head: StateHead) -> None:
    """Stop where a state was deleted."""
    if head.tombstone is not None:
        by, reason = head.tombstone.by, head.tombstone.reason
        raise StateDeletedError(f"{head.name} was deleted by {by}: {reason or 'no reason given'}.")


def refuse_locked(edit: Edit) -> None:
    """Stop where a state is locked or frozen."""
    head = edit.head
    if head.lock is not None:
        holder = describe_holder(head.lock, edit.now)
        raise StateLockedError(f"{head.name} is locked by {holder}.", holder=head.lock)
    if head.freeze is not None:
        raise StateLockedError(
            f"{head.name} was frozen: {head.freeze.reason}.", holder=make_frozen_holder(head)
        )


def find_spent_lock(head: StateHead, lock_id: str) -> SpentLock | None:
    """Return what became of an ID that held the lock before."""
    return next((one for one in reversed(head.spent) if one.id == lock_id), None)


def grant_lock(
    edit: Edit, info: LockInfo, actor: Actor, silent: Silent, *, lease: str | None = None
) -> HeldLock:
    """Give the lock to the caller, if no one has a better claim.

    Args:
        edit: The head.
        info: The lock.
        actor: Who asks.
        silent: For how long those in the queue were seen to be silent.
        lease: The lease of the run that asks.

    Raises:
        StateLockedError: Someone holds it, waits for it longer, or froze the state.
        NotHolderError: The ID is spent.
        StateDeletedError: The state was deleted.
    """
    head = edit.head
    refuse_deleted(head)
    if head.lock is not None:
        if head.lock.info.id == info.id:
            return head.lock
        raise StateLockedError(
            f"{head.name} is locked by {describe_holder(head.lock, edit.now)}.", holder=head.lock
        )
    spent = find_spent_lock(head, info.id)
    if spent is not None:
        how = f"broken: {spent.reason}" if spent.is_broken else "released"
        raise NotHolderError(f"The lock {info.id} of {head.name} was {how}; an ID is granted once.")
    if head.freeze is not None:
        raise StateLockedError(
            f"{head.name} was frozen by {head.freeze.by}: {head.freeze.reason}.",
            holder=make_frozen_holder(head),
        )
    _refuse_behind_others(edit, info, silent)
    held = HeldLock(
        info=info,
        epoch=head.epoch + 1,
        principal=actor.principal,
        address=actor.address,
        since_at=edit.now,
        lease=lease,
    )
    left = tuple(one for one in list_waiters(head, silent, edit.now) if one.info.id != info.id)
    edit.set(lock=held, epoch=held.epoch, waiting=left)
    edit.audit(actor, AuditAction.LOCKED, lock_id=info.id, epoch=held.epoch, detail=info.operation)
    return held


def release_lock(edit: Edit, lock_id: str, actor: Actor) -> bool:
    """Take the lock back from its holder; return whether there was anything to do.

    Raises:
        StateLockedError: Someone else holds it.
        NotHolderError: No one holds it, and this ID never did.
    """
    head = edit.head
    spent = find_spent_lock(head, lock_id)
    if head.lock is None:
        if spent is None:
            raise NotHolderError(f"{head.name} is not locked, and the lock {lock_id} is not known.")
        return False
    if head.lock.info.id != lock_id:
        if spent is not None and not spent.is_broken:
            return False
        raise StateLockedError(
            f"{head.name} is locked by {describe_holder(head.lock, edit.now)}.", holder=head.lock
        )
    _spend(edit, SpentLock(id=lock_id, epoch=head.lock.epoch, at=edit.now))
    edit.audit(actor, AuditAction.UNLOCKED, lock_id=lock_id, epoch=head.lock.epoch)
    return True


def break_lock(
    edit: Edit, lock_id: str | None, actor: Actor, *, reason: str, action: AuditAction = AuditAction.BROKEN
) -> bool:
    """Take the lock away, so that its holder can no longer write; return whether there was anything to do.

    Args:
        edit: The head.
        lock_id: The lock that is meant; None means whichever is held.
        actor: Who does it.
        reason: Why.
        action: What it is called in the audit log.

    Raises:
        StateLockedError: Another lock than the one that is meant is held.
        NotHolderError: The state is not locked, and never was by this ID.
    """
    held = edit.head.lock
    if held is None or (lock_id is not None and held.info.id != lock_id):
        return lock_id is not None and release_lock(edit, lock_id, actor)
    spent = SpentLock(id=held.info.id, epoch=held.epoch, at=edit.now, is_broken=True, reason=reason)
    _spend(edit, spent)
    edit.audit(actor, action, lock_id=held.info.id, epoch=held.epoch, detail=reason)
    return True


def withdraw_lock(edit: Edit, lock_id: str, actor: Actor) -> bool:
    """Take back a lock whose client was gone before it heard of it; it may ask again with the same ID."""
    held = edit.head.lock
    if held is None or held.info.id != lock_id:
        return False
    edit.set(lock=None)
    edit.audit(actor, AuditAction.WITHDRAWN, lock_id=lock_id, epoch=held.epoch, detail="The client was gone.")
    return True


def enqueue(
    edit: Edit, info: LockInfo, silent: Silent, *, is_waiting: bool = False
) -> tuple[int | None, int]:
    """Write down that a client waits; return its place, from one, and how often it has asked.

    The place is None where too many wait already.

    Args:
        edit: The head.
        info: The lock that the client asks for.
        silent: For how long those in the queue were seen to be silent.
        is_waiting: Whether it is certain that the client waits, however often it has asked.
    """
    now = edit.now
    alive = list_waiters(edit.head, silent, now, asking_id=info.id)
    ids = [waiter.info.id for waiter in alive]
    if info.id not in ids:
        if len(alive) >= _WAITERS_KEPT:
            # Those who asked once may be gone; those who wait keep their place.
            once = [waiter for waiter in alive if waiter.polls < POLLS_OF_A_WAITER]
            if not once:
                return None, 1
            alive.remove(once[0])
        polls, pause_s = (POLLS_OF_A_WAITER, _LONGEST_PAUSE_S) if is_waiting else (1, 0.0)
        due_at = now + pause_s + _SLACK_S
        waiter = Waiter(info=info, since_at=now, seen_at=now, polls=polls, due_at=due_at)
        edit.set(waiting=(*alive, waiter))
        return len(alive) + 1, polls
    place = ids.index(info.id)
    was = alive[place]
    if _is_to_be_noted(was, silent, now):
        pause_s = _LONGEST_PAUSE_S if is_waiting else min(2.0**was.polls, _LONGEST_PAUSE_S)
        alive[place] = dataclasses.replace(
            was, seen_at=now, polls=was.polls + 1, due_at=now + pause_s + _SLACK_S
        )
        edit.set(waiting=tuple(alive))
    return place + 1, alive[place].polls


def find_place(head: StateHead, lock_id: str, silent: Silent, now: float) -> tuple[int | None, bool]:
    """Return the place of a client in the queue, and whether it must ask again now to keep it.

    Without a place it may ask at once.
    """
    for place, waiter in enumerate(list_waiters(head, silent, now), start=1):
        if waiter.info.id == lock_id:
            return place, silent.get(lock_id, 0.0) >= _promise_s(waiter) - _SLACK_S
    return None, True


def list_waiters(head: StateHead, silent: Silent, now: float, *, asking_id: str = "") -> list[Waiter]:
    """Return those in the queue who are not proven gone; who asks is certainly there."""
    return [
        waiter
        for waiter in head.waiting
        if waiter.info.id == asking_id
        or (silent.get(waiter.info.id, 0.0) < _promise_s(waiter) and abs(now - waiter.seen_at) < _PLAUSIBLE_S)
    ]


def leave_queue(edit: Edit, lock_id: str) -> None:
    """Give up a place in the queue."""
    left = _without(edit.head, lock_id)
    if left != edit.head.waiting:
        edit.set(waiting=left)


def describe_holder(held: HeldLock, now: float) -> str:
    """Say who holds a lock and since when, for a person."""
    who = held.info.who or held.principal or "somebody"
    what = held.info.operation.removeprefix("OperationType").lower()
    return (
        f"{who}{f' ({what})' if what else ''} for {max(0, round(now - held.since_at))} s, lock {held.info.id}"
    )


def make_frozen_holder(head: StateHead) -> HeldLock:
    """Return a lock that tells clients of a freeze in the only words that they know."""
    freeze = head.freeze
    by, reason, since_at = ("", "", 0.0) if freeze is None else (freeze.by, freeze.reason, freeze.since_at)
    info = LockInfo(id=f"{FROZEN}{head.name}", operation=FREEZE, info=reason, who=by)
    return HeldLock(info=make_lock_info(info), epoch=head.epoch, principal=by, address="", since_at=since_at)


def _spend(edit: Edit, spent: SpentLock) -> None:
    edit.set(lock=None, spent=(*edit.head.spent, spent)[-_SPENT_KEPT:])


def _refuse_behind_others(edit: Edit, info: LockInfo, silent: Silent) -> None:
    """Stop where someone waits longer."""
    head = edit.head
    first = _first_waiter(head, silent, edit.now)
    if first is None or first.info.id == info.id:
        return
    holder = HeldLock(info=first.info, epoch=head.epoch, principal="", address="", since_at=first.since_at)
    refusal = StateLockedError(f"{first.info.who} waits for {head.name} longer.", holder=holder)
    refusal.is_free = True
    raise refusal


def _first_waiter(head: StateHead, silent: Silent, now: float) -> Waiter | None:
    """Return who is to have the lock next: the first who has shown that it waits, and is there."""
    alive = list_waiters(head, silent, now)
    return next((one for one in alive if one.polls >= POLLS_OF_A_WAITER), None)


def _promise_s(waiter: Waiter) -> float:
    """Return how long an entry may stay unchanged: both times are by the clock of the one who wrote it."""
    return min(max(0.0, waiter.due_at - waiter.seen_at), LONGEST_PROMISE_S)


def _is_to_be_noted(was: Waiter, silent: Silent, now: float) -> bool:
    """Return whether others must see that a client asked again."""
    # A client that asked another service before: the times of its entry are by the clock of that one.
    is_from_elsewhere = abs(now - was.seen_at) >= _NOTED_EVERY_S
    return (
        was.polls < POLLS_OF_A_WAITER or is_from_elsewhere or silent.get(was.info.id, 0.0) >= _NOTED_EVERY_S
    )


def _without(head: StateHead, lock_id: str) -> tuple[Waiter, ...]:
    return tuple(waiter for waiter in head.waiting if waiter.info.id != lock_id)
