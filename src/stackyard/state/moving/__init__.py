"""Taking states from one place to another: files, `http` backends, the engine's own S3 backend, our stores.

`move_state` locks both places, copies, reads back what it wrote, and puts the source out of use, so that
nobody goes on with the old copy. It keeps a journal: killed at any point, it completes when it is repeated. A
`Place` is one end of a move; each kind has a module of its own, and `parse_address` tells which kind a user
means. This package knows the engines' ways to lock, and nothing of command lines.
"""

from __future__ import annotations

from stackyard.state.moving.addresses import Address, AddressKind, parse_address
from stackyard.state.moving.base import (
    MoveRefusedError,
    NothingToMoveError,
    Place,
    PlaceError,
    PlaceLockedError,
)
from stackyard.state.moving.journal import MoveJournal, MoveUnderWayError, Phase
from stackyard.state.moving.move import Moved, move_state

__all__ = [
    "Address",
    "AddressKind",
    "MoveJournal",
    "MoveRefusedError",
    "MoveUnderWayError",
    "Moved",
    "NothingToMoveError",
    "Phase",
    "Place",
    "PlaceError",
    "PlaceLockedError",
    "move_state",
    "parse_address",
]
