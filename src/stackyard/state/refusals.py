"""What the state service refuses, each with its exit status, and the HTTP status that clients know.

::

    StateRefusedError            409
    ├── BodyRefusedError         400   not a state, or not what its checksum says
    ├── StateConflictError       409   another lineage, an old serial, too much dropped
    ├── NotHolderError           409   the lock of this ID is not, or no longer, held
    ├── UnknownStateError        409   only registered names are served
    └── StateDeletedError        410
    StateLockedError (busy)      423
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from stackyard.base.errors import BusyError, ExitStatus, StackyardError

if TYPE_CHECKING:
    from stackyard.state.model import HeldLock

__all__ = [
    "FREEZE",
    "FROZEN",
    "BodyRefusedError",
    "NotHolderError",
    "StateConflictError",
    "StateDeletedError",
    "StateLockedError",
    "StateRefusedError",
    "UnknownStateError",
    "VersionMissingError",
]


# How a freeze looks to clients that know locks alone: its operation, and what its id begins with.
FREEZE = "freeze"
FROZEN = "frozen-"


class StateRefusedError(StackyardError):
    """The state service refuses a request because of a rule; nothing was changed."""

    code = "E-STATE-REFUSED"
    summary = "The state service refused"
    default_remedy = "Read the reason, and the audit log of the state (stackyard state audit)."
    http_status: ClassVar[int] = 409


class BodyRefusedError(StateRefusedError):
    """What was sent is no state or no lock: empty, cut off, not JSON, or not what its checksum says."""

    code = "E-STATE-BODY"
    summary = "What was sent is not a state"
    default_remedy = "Send it again; if it is refused again, look for a proxy between you and the service."
    exit_status = ExitStatus.INVALID
    http_status = 400


class StateConflictError(StateRefusedError):
    """A write does not follow the stored state: another lineage, an older serial, or most resources gone."""

    code = "E-STATE-CONFLICT"
    summary = "The write does not follow the stored state"
    default_remedy = (
        "Compare it with the stored state (stackyard state versions NAME --refused); to write it all the"
        " same, allow one such write: stackyard state grant."
    )


class NotHolderError(StateRefusedError):
    """A write or unlock names a lock that is not held, because it was broken, released or never granted."""

    code = "E-STATE-NOT-HOLDER"
    summary = "The lock is not held by this run"
    default_remedy = "Run the command again: it takes a lock of its own."


class UnknownStateError(StateRefusedError):
    """The service serves registered names only, and this one is not registered."""

    code = "E-STATE-UNKNOWN"
    summary = "There is no state of this name"
    default_remedy = "Check the name; a new state is registered first."


class VersionMissingError(StateRefusedError):
    """A state has no version of this number, or it was dropped by the retention rules."""

    code = "E-STATE-VERSION"
    summary = "The state has no such version"
    default_remedy = "`stackyard state versions NAME` lists the versions of a state."


class StateDeletedError(StateRefusedError):
    """The state was deleted; it can be restored."""

    code = "E-STATE-DELETED"
    summary = "The state was deleted"
    default_remedy = "Restore it (stackyard state restore) or use another name."
    http_status = 410


def _unlock_command(holder: HeldLock) -> str:
    """Return the command that makes a state free, for when that is right."""
    if holder.info.operation == FREEZE:
        return f"Once it may be changed again: stackyard state unfreeze {holder.info.id.removeprefix(FROZEN)}"
    return f"If it is certain that its run is dead: stackyard state unlock {holder.info.id} --reason TEXT"


class StateLockedError(BusyError):
    """Someone else holds the lock of the state, it is frozen, or others wait for it longer.

    Args:
        detail: What is wrong.
        holder: Who has it; for a frozen state, who froze it.
        place: Our place among those who wait, from one; None when we do not wait.

    Attributes:
        polls: How often we have asked.
        is_free: Whether no one holds it, and only those who wait longer are before us.
    """

    code = "E-STATE-HELD"
    summary = "The state is locked"
    default_remedy = "Wait for the other run; `stackyard state locks` shows who holds it and since when."
    http_status: ClassVar[int] = 423

    def __init__(self, detail: str, *, holder: HeldLock, place: int | None = None) -> None:
        super().__init__(detail, remedy=f"{self.default_remedy} {_unlock_command(holder)}")
        self.holder = holder
        # Waiting for that makes no sense: no one may work on it until someone says otherwise.
        self.is_frozen = holder.info.id.startswith(FROZEN)
        self.place = place
        self.polls = 0
        self.is_free = False
