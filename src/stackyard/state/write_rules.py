"""Whether a write is taken: decisions on a head, none of which touches the world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.state.lock_rules import describe_holder, find_spent_lock, make_frozen_holder, refuse_deleted
from stackyard.state.model import Grant, Override, StateHead
from stackyard.state.refusals import NotHolderError, StateConflictError, StateLockedError

if TYPE_CHECKING:
    from stackyard.state.document import StateDocument
    from stackyard.state.policy import Policy

__all__ = ["IncomingWrite", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingWrite:
    """A write as it came: what it holds, and under which lock; an empty ID is none."""

    document: StateDocument
    sha256: str
    size: int
    lock_id: str


def judge(head: StateHead, incoming: IncomingWrite, policy: Policy, now: float) -> Grant | None:
    """Stop a write that must not be; return the grant that it needs, if it needs one.

    Raises:
        StateLockedError: Someone else holds the lock, or the state is frozen.
        NotHolderError: The lock of this ID is not held.
        StateConflictError: It does not follow the current content.
        StateDeletedError: The state was deleted.
    """
    refuse_deleted(head)
    _judge_lock(head, incoming.lock_id, policy, now)
    wrong = _list_broken_rules(head, incoming, policy)
    if not wrong:
        return None
    grants = (one for one in head.grants if one.expires_at > now and set(wrong) <= set(one.overrides))
    grant = next(grants, None)
    if grant is None:
        raise StateConflictError(" ".join(wrong.values()))
    return grant


def _judge_lock(head: StateHead, lock_id: str, policy: Policy, now: float) -> None:
    if head.lock is not None:
        if lock_id == head.lock.info.id:
            return
        holder = describe_holder(head.lock, now)
        if not lock_id:
            raise StateLockedError(f"{head.name} is locked by {holder}.", holder=head.lock)
        raise NotHolderError(f"{_describe_lost_lock(head, lock_id)} The state is locked by {holder}.")
    if lock_id:
        raise NotHolderError(_describe_lost_lock(head, lock_id))
    if head.freeze is not None:
        raise StateLockedError(
            f"{head.name} was frozen: {head.freeze.reason}.", holder=make_frozen_holder(head)
        )
    if not policy.unlocked_writes:
        raise NotHolderError(
            f"{head.name} may not be written without a lock.",
            remedy="Leave out -lock=false, and set lock_address and unlock_address (TF_HTTP_LOCK_ADDRESS).",
        )


def _describe_lost_lock(head: StateHead, lock_id: str) -> str:
    spent = find_spent_lock(head, lock_id)
    if spent is None:
        return f"The lock {lock_id} of {head.name} is not held."
    if spent.is_broken:
        return f"The lock {lock_id} of {head.name} was broken: {spent.reason or 'no reason given'}."
    return f"The lock {lock_id} of {head.name} was released before."


def _list_broken_rules(head: StateHead, incoming: IncomingWrite, policy: Policy) -> dict[Override, str]:
    """Return each rule that a write breaks, and how."""
    current, document = head.current, incoming.document
    if current is None:
        return {}
    wrong = {}
    if document.lineage != current.lineage:
        wrong[Override.LINEAGE] = f"It is of lineage {document.lineage}, {head.name} of {current.lineage}."
    if document.serial < current.serial:
        wrong[Override.SERIAL] = f"Its serial {document.serial} is below {current.serial}, the stored one."
    elif document.serial == current.serial and incoming.sha256 != current.sha256:
        wrong[Override.SERIAL] = f"Its serial {document.serial} is the stored one, its content is not."
    most = policy.max_drop_percent
    if most is not None and not document.is_encrypted and not current.is_encrypted and current.resources:
        dropped = current.resources - document.resources
        if dropped * 100 > most * current.resources:
            wrong[Override.DROP] = (
                f"It drops {dropped} of {current.resources} resources; at most {most} % may go at once."
            )
    return wrong
