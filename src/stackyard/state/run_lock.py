"""The lock that a run holds on its state from the moment it reads its input until it is done.

An engine locks a state for the length of one command. A run is several commands, and the input that it read
before them: with a lock of its own no one can change the state, or wait with old input, in between. The
engines of the run ask for the lock as always, and work under the one that the run holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.clients.objects import StoreError
from stackyard.clients.objects.base import StoreBusyError
from stackyard.sources.store.identity import read_identity
from stackyard.state.lockinfo import LockInfo, make_lock_info
from stackyard.state.refusals import FREEZE, NotHolderError, StateLockedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from stackyard.state.model import Actor, Version
    from stackyard.state.service import StateService

__all__ = ["RunLock", "hold_state"]

# Another process may release the lock, and nothing reports that to us.
_LOOK_EVERY_S = 0.25


@dataclass(slots=True, kw_only=True)
class RunLock:
    """The lock of a run on one state.

    Attributes:
        name: The state.
        principal: Who the engines of the run are.
        lock_id: The lock that the run holds.
        has_waited: Whether someone else held the state first.
        staged: What the engines of the run read in place of the stored content, until it is stored.
    """

    service: StateService = field(repr=False)
    actor: Actor
    name: str
    principal: str
    lock_id: str
    has_waited: bool = False
    staged: bytes | None = field(default=None, repr=False)
    _engine_id: str = ""

    def admits(self, name: str, principal: str) -> bool:
        """Return whether someone may work on a state under this lock."""
        return (name, principal) == (self.name, self.principal)

    def lend_to(self, engine_id: str) -> None:
        """Let an engine work under this lock; one that had it before has ended."""
        self._engine_id = engine_id

    def take_back(self, engine_id: str) -> bool:
        """Take the lock back from an engine; return whether it had it."""
        if not engine_id or engine_id != self._engine_id:
            return False
        self._engine_id = ""
        return True

    def under(self, engine_id: str) -> str:
        """Return the lock that the write of an engine is made under."""
        return self.lock_id if engine_id and engine_id == self._engine_id else engine_id

    def store(self, content: bytes) -> Version:
        """Store a content under this lock; from then on engines read what is stored.

        Raises:
            NotHolderError: The lock was broken.
            StoreError: It cannot be stored.
        """
        version = self.service.contents.write(self.name, content, self.actor, lock_id=self.lock_id)
        self.staged = None
        return version


@contextlib.asynccontextmanager
async def hold_state(
    service: StateService,
    name: str,
    actor: Actor,
    *,
    lease: str,
    wait_s: float,
    on_wait: Callable[[str, StateLockedError], None],
) -> AsyncIterator[RunLock]:
    """Hold the lock of a state for the length of a block.

    Args:
        service: The states.
        name: The state.
        actor: The run.
        lease: What proves the run alive; once it is dead, the next client takes the lock over.
        wait_s: How long to wait for someone else.
        on_wait: Called while someone else holds it.

    Raises:
        StateLockedError: Someone else holds it for longer than that, or it is frozen.
        StateRefusedError: It was deleted, or is not registered.
        StoreMovedError: The store is being moved, which waits for the end of this run.
        StoreError: The store cannot be used.
    """
    lock_id = str(uuid.uuid4())
    info = make_lock_info(LockInfo(id=lock_id, operation="OperationTypeRun", who=_format_actor(actor)))
    until = time.monotonic() + wait_s
    has_waited = False
    while True:
        try:
            await asyncio.to_thread(service.locks.lock, name, info, actor, lease=lease)
            break
        except StateLockedError as err:
            if err.holder.info.operation == FREEZE:
                await asyncio.to_thread(_require_not_moving, service)
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise
            on_wait(name, err)
            has_waited = True
            await asyncio.sleep(min(left_s, _LOOK_EVERY_S))
    held = RunLock(
        service=service,
        actor=actor,
        name=name,
        principal=actor.principal,
        lock_id=lock_id,
        has_waited=has_waited,
    )
    try:
        yield held
    finally:
        # A lock that cannot be released, or was broken, goes with the lease of the run.
        with contextlib.suppress(StoreError, StoreBusyError, NotHolderError, StateLockedError):
            await asyncio.to_thread(service.locks.unlock, name, lock_id, actor)


def _require_not_moving(service: StateService) -> None:
    identity = read_identity(service.objects)
    if identity is not None:
        identity.require_here()


def _format_actor(actor: Actor) -> str:
    return actor.address or actor.principal
