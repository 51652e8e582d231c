"""Moves states between files, `http` backends, the engine's own S3 backend and stackyard's stores.

`move_state` locks both places, copies, reads back what it wrote, and puts the source out of use, so that no
client continues with the old copy. It keeps a journal: if it is killed at any point, the same call
completes it. A `StateLocation` is one end of a move. Each kind has its own module, and `parse_address`
selects the kind from the user's text. This package knows how engines lock, and does not know command lines.
"""

from __future__ import annotations

from stackyard.state.moving.addresses import AddressKind, BackendAddress, parse_address
from stackyard.state.moving.base import (
    BackendError,
    BackendLockedError,
    MoveRefusedError,
    NothingToMoveError,
    StateLocation,
)
from stackyard.state.moving.journal import MoveJournal, MovePhase, MoveUnderWayError
from stackyard.state.moving.move import Moved, move_state

__all__ = [
    "AddressKind",
    "BackendAddress",
    "BackendError",
    "BackendLockedError",
    "MoveJournal",
    "MovePhase",
    "MoveRefusedError",
    "MoveUnderWayError",
    "Moved",
    "NothingToMoveError",
    "StateLocation",
    "move_state",
    "parse_address",
]
