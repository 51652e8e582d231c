"""What an earlier run left behind: an engine that still works, and a state that it could not store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import Location
from stackyard.engine.errored import ErroredStateError, find_errored_state, push_errored_state

if TYPE_CHECKING:
    from stackyard.engine.workdir import Workdir

__all__ = ["recover_state"]


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
