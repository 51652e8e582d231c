"""The lock that a run holds on its state from the moment it reads its input until it is done.

An engine locks a state for the length of one command. A run is several commands, and the input that it read
before them: with a lock of its own no one can change the state, or wait with old input, in between. The
engines of the run ask for the lock as always, and work under the one that the run holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.clients.objects import StoreError
from stackyard.clients.objects.base import StoreBusyError
from stackyard.sources.store.identity import read_identity
from stackyard.state.http.workers import Workers
from stackyard.state.lock_rules import LONGEST_PROMISE_S
from stackyard.state.lock_wait import LockWait
from stackyard.state.lockinfo import LockInfo, make_lock_info
from stackyard.state.refusals import NotHolderError, StateLockedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from stackyard.clients.objects import Objects
    from stackyard.state.model import Actor, Version
    from stackyard.state.service import StateService

__all__ = ["RunLock", "hold_state"]

# How long a thread waits for the lock at a time: it cannot be interrupted.
_WAIT_S = 0.5
# How long a run that does not wait looks whether those in the queue of a free lock are alive.
_PROOF_S = LONGEST_PROMISE_S + 2.0


@dataclass(slots=True, kw_only=True)
class RunLock:
    """The lock of a run on one state.

    Attributes:
        name: The state.
        principal: Who the engines of the run are.
        lock_id: The lock that the run holds.
        has_waited: Whether someone else held the state first.
        staged: What the engines of the run read in place of the stored content, until it is stored.
        lease: What proves the run alive.
    """

    service: StateService = field(repr=False)
    actor: Actor
    name: str
    principal: str
    lock_id: str
    has_waited: bool = False
    staged: bytes | None = field(default=None, repr=False)
    lease: str = field(default="", repr=False)
    _on_wait: Callable[[str, StateLockedError], None] = field(default=lambda _name, _err: None, repr=False)
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

    def store(self, content: bytes, *, note: str = "") -> Version:
        """Store a content under this lock; from then on engines read what is stored.

        Args:
            content: The content.
            note: Why it is written, for the history.

        Raises:
            NotHolderError: The lock was broken.
            StoreError: It cannot be stored.
        """
        version = self.service.contents.write(self.name, content, self.actor, lock_id=self.lock_id, note=note)
        self.staged = None
        return version

    def hold_another(self, name: str, *, wait_s: float) -> contextlib.AbstractAsyncContextManager[RunLock]:
        """Hold the lock of another state too, for the length of a block; engines have no part in it.

        Raises:
            StateLockedError: Someone else holds it for longer than that, or it is frozen.
            StateRefusedError: It was deleted, or is not registered.
            StoreError: The store cannot be used.
        """
        return hold_state(
            self.service, name, self.actor, lease=self.lease, wait_s=wait_s, on_wait=self._on_wait
        )


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
    waiting = LockWait(service, name, info, actor, lease=lease, is_patient=wait_s > 0)
    has_waited = await _take_lock(waiting, wait_s, on_wait)
    held = RunLock(
        service=service,
        actor=actor,
        name=name,
        principal=actor.principal,
        lock_id=lock_id,
        has_waited=has_waited,
        lease=lease,
        _on_wait=on_wait,
    )
    try:
        yield held
    finally:
        # A lock that cannot be released, or was broken, goes with the lease of the run.
        with contextlib.suppress(StoreError, StoreBusyError, NotHolderError, StateLockedError):
            await asyncio.to_thread(service.locks.unlock, name, lock_id, actor)


async def _take_lock(
    waiting: LockWait, wait_s: float, on_wait: Callable[[str, StateLockedError], None]
) -> bool:
    """Take a lock; return whether we had to wait for it."""
    began, has_waited = time.monotonic(), False
    # A thread of its own: runs that wait must not take those with which others of this process work.
    thread = Workers(1)
    try:
        while True:
            try:
                await thread.call(waiting.ask)
                return has_waited
            except StateLockedError as err:
                refusal: StateLockedError | None = err
            while refusal is not None:
                # Whether those before us are alive shows only while one looks.
                patience_s = max(wait_s, _PROOF_S) if refusal.is_free else wait_s
                left_s = began + patience_s - time.monotonic()
                if refusal.is_frozen:
                    # Frozen because everything is moved: then the error says where to.
                    await thread.call(functools.partial(_require_not_moving, waiting.objects))
                if left_s <= 0 or refusal.is_frozen:
                    raise refusal
                on_wait(waiting.name, refusal)
                has_waited = True
                refusal = await thread.call(functools.partial(waiting.wait, min(left_s, _WAIT_S)))
    finally:
        # Behind the wait that may still be going on in it.
        await thread.call(waiting.close)
        thread.close()


def _require_not_moving(objects: Objects) -> None:
    identity = read_identity(objects)
    if identity is not None:
        identity.require_here()


def _format_actor(actor: Actor) -> str:
    return actor.address or actor.principal
