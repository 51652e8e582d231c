"""The state service itself: everything that can be done to states, without HTTP and on any store.

Each change either happens completely or not, is durable when the call returns, and may be made from
any thread and by any number of processes. What a rule forbids raises an error of
`stackyard.state.refusals`; a store that fails raises `StoreError`.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

from stackyard.state import lock_rules
from stackyard.state.audit import AuditLogs
from stackyard.state.contents import Contents
from stackyard.state.heads import Core, Decision, Edit, Heads
from stackyard.state.history import Versions
from stackyard.state.locks import Locks
from stackyard.state.model import Actor, AuditAction, Grant, Override, StateHead, Tombstone
from stackyard.state.names import check_name, is_below
from stackyard.state.policy import Policy
from stackyard.state.principals import Principals
from stackyard.state.refusals import StateRefusedError
from stackyard.state.targets import Targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackyard.clients.objects import Objects

__all__ = ["StateService"]

_GRANT_S = 3600.0


class StateService:
    """The states of a store.

    Args:
        objects: The store.
        policy: What is allowed.
        clock: The time of day, in seconds since 1970.

    Attributes:
        objects: The store.
        policy: What is allowed.
        contents: Reading and writing, and what was refused.
        versions: What a state held before, and going back to it.
        locks: Locking, breaking locks, freezing.
        audit: The audit logs.
        principals: Who may do what.
        targets: What was applied into which state.
    """

    def __init__(
        self, objects: Objects, policy: Policy | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.objects = objects
        self.policy = policy or Policy()
        self._core = core = Core(objects, Heads(objects, clock), self.policy, clock)
        self.contents = Contents(core)
        self.versions = Versions(core)
        self.locks = Locks(core)
        self.audit = AuditLogs(core)
        self.principals = Principals(core, self.audit)
        self.targets = Targets(objects)

    def names(self, prefix: str = "") -> Iterator[str]:
        """Yield the names of the states at or below a prefix, deleted ones too, in order."""
        return (name for name in self._core.heads.names() if is_below(name, prefix))

    def heads(self, prefix: str = "") -> Iterator[StateHead]:
        """Yield everything about the states at or below a prefix, in order of their names."""
        for name in self.names(prefix):
            head = self._core.heads.read(name)
            if head is not None:
                yield head

    def head(self, name: str) -> StateHead:
        """Return everything about a state but its contents.

        Raises:
            UnknownStateError: There is none.
        """
        return self._core.require(name)

    def register(self, name: str, actor: Actor) -> None:
        """Make a state known that has no content yet; nothing happens if it is known."""
        check_name(name)

        def decide(head: StateHead | None, now: float) -> Decision[None]:
            if head is not None:
                return Decision(None)
            edit = Edit(StateHead(name=name, created_at=now), now)
            edit.audit(actor, AuditAction.REGISTERED)
            return Decision(None, edit)

        self._core.heads.change(name, decide)

    def delete(self, name: str, actor: Actor, *, reason: str = "", lock_id: str = "") -> None:
        """Delete a state: clients learn that it is gone. All its versions stay, and `restore` undoes it.

        Args:
            name: The state.
            actor: Who does it.
            reason: Why.
            lock_id: The lock that we hold ourselves; it is released in the same step.

        Raises:
            StateLockedError: It is locked by someone else, or frozen.
            UnknownStateError: There is none.
        """

        def change(edit: Edit) -> None:
            if edit.head.tombstone is None:
                if lock_id:
                    lock_rules.release_lock(edit, lock_id, actor)
                lock_rules.refuse_locked(edit)
                edit.set(tombstone=Tombstone(by=actor.principal, reason=reason, at=edit.now))
                edit.audit(actor, AuditAction.DELETED, detail=reason)

        self._core.change(name, change)

    def restore(self, name: str, actor: Actor) -> None:
        """Undo a deletion; nothing happens if the state is not deleted.

        Raises:
            UnknownStateError: There is none.
        """

        def change(edit: Edit) -> None:
            if edit.head.tombstone is not None:
                edit.set(tombstone=None)
                edit.audit(actor, AuditAction.RESTORED)

        self._core.change(name, change)

    def grant(
        self,
        name: str,
        overrides: tuple[Override, ...],
        actor: Actor,
        *,
        reason: str,
        lasts_s: float = _GRANT_S,
    ) -> Grant:
        """Allow one write that breaks these rules, as `state push -force` and migrations need.

        Raises:
            StateRefusedError: No rule is named.
            UnknownStateError: There is no such state.
        """
        if not overrides:
            raise StateRefusedError("A grant names at least one rule that may be broken.")

        def change(edit: Edit) -> Grant:
            valid = tuple(one for one in edit.head.grants if one.expires_at > edit.now)
            grant = Grant(
                id=uuid.uuid4().hex[:12],
                overrides=tuple(dict.fromkeys(overrides)),
                by=actor.principal,
                reason=reason,
                expires_at=edit.now + lasts_s,
            )
            edit.set(grants=(*valid, grant))
            edit.audit(actor, AuditAction.GRANTED, detail=f"{', '.join(grant.overrides)}: {reason}")
            return grant

        return self._core.change(name, change)
