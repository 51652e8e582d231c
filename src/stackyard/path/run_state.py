"""The state of a run: its lock, its version, and what an earlier apply could not store."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import InvalidInputError, Location
from stackyard.engine.errored import ErroredStateError, find_errored_state, push_errored_state
from stackyard.engine.failures import StateLockedError
from stackyard.state import StateService, UnknownStateError, refusals

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.engine.workdir import Workdir
    from stackyard.path.settings import RunSettings
    from stackyard.state.embedded import Embedded
    from stackyard.state.run_lock import RunLock

__all__ = ["EmptyInputError", "hold_lock", "recover_state", "state_version"]


class EmptyInputError(InvalidInputError):
    """A target has resources, and its input says that there should be none, which is never planned."""

    code = "E-INPUT-EMPTY"
    summary = "There is nothing in the input"
    default_remedy = "Check that the input is whole; `stackyard destroy` removes what a target has."


def state_version(states: StateService, name: str) -> str:
    """Return which version a state has, empty where there is none yet."""
    try:
        current = states.head(name).current
    except UnknownStateError:
        return ""
    return "" if current is None else f"{current.lineage}/{current.serial}"


@contextlib.asynccontextmanager
async def hold_lock(backend: Embedded, name: str, settings: RunSettings) -> AsyncIterator[RunLock]:
    """Hold the lock of a state for the length of the block; whoever holds it is waited for, visibly.

    Raises:
        StateLockedError: Another run holds it for longer than we wait.
    """
    async with contextlib.AsyncExitStack() as stack:
        try:
            lock = await stack.enter_async_context(backend.hold(name, wait_s=settings.lock_wait_s))
        except refusals.StateLockedError as err:
            locked = StateLockedError(err.detail)
            locked.remedy = f"{err.remedy}\nTo wait for it: --lock-wait SECONDS"
            raise locked from err
        yield lock


async def recover_state(workdir: Workdir, name: str, emit: events.Emit) -> None:
    """Store the state that an earlier apply could not store, where that is certainly right.

    Raises:
        ErroredStateError: The stored state has gone another way since; nothing was changed.
    """
    errored = await find_errored_state(workdir)
    if errored is None:
        return
    if not errored.verdict.pushable:
        raise ErroredStateError(
            errored.explanation,
            where=Location(str(errored.path)),
            remedy=f"`stackyard state recover {name}` shows the difference and takes one of the two.",
        )
    kept = await push_errored_state(workdir, errored)
    text = f"The state that an earlier apply could not store is stored now; its file is kept as {kept.name}."
    emit(events.LogLine(level=events.LogLevel.WARNING, source="state", text=text))
