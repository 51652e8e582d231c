"""A state in one of our own stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.state.names import check_name
from stackyard.state.refusals import NotHolderError, StateDeletedError, StateLockedError, UnknownStateError

if TYPE_CHECKING:
    from stackyard.state.document import StateDocument
    from stackyard.state.lockinfo import LockInfo
    from stackyard.state.model import Actor
    from stackyard.state.service import StateService

__all__ = ["StoreLocation"]


class StoreLocation:
    """A state of a store.

    Args:
        service: The store.
        name: The state.
        actor: Who moves it.
        store: What the store is called.
    """

    def __init__(self, service: StateService, name: str, actor: Actor, *, store: str) -> None:
        self._service = service
        self._name = check_name(name)
        self._actor = actor
        self._store = store

    @property
    def label(self) -> str:
        """What the place is called."""
        return f"state:{self._name} in {self._store}"

    def lock(self, info: LockInfo) -> None:
        """Lock the state."""
        self._service.locks.lock(self._name, info, self._actor)

    def unlock(self, info: LockInfo) -> None:
        """Unlock the state, if the lock is ours."""
        try:
            self._service.locks.unlock(self._name, info.id, self._actor)
        except (NotHolderError, StateLockedError, UnknownStateError):
            return

    def read(self) -> bytes | None:
        """Return the state; None where it was deleted."""
        try:
            content = self._service.contents.read(self._name)
        except (StateDeletedError, UnknownStateError):
            return None
        return None if content is None else content.body.data

    def write(self, data: bytes, info: LockInfo) -> None:
        """Store the state as a new version."""
        self._service.contents.write(self._name, data, self._actor, lock_id=info.id)

    def retire(self, data: bytes, document: StateDocument, destination: str, info: LockInfo) -> str | None:
        """Delete the state, so that clients learn that it is gone; its versions stay."""
        del data, document
        reason = f"Moved to {destination}."
        self._service.delete(self._name, self._actor, reason=reason, lock_id=info.id)
        return "deleted; its versions stay, and `stackyard state restore` undoes it"

    def close(self) -> None:
        """Leave the store open: its opener closes it."""
