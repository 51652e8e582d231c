"""What VMs and containers share: calls to a guest on its node, and making one exactly once."""

from __future__ import annotations

from stackyard.provider.guests.creation import (
    CreatedGuest,
    Creation,
    left_on_failure,
    make_once,
    mark_description,
)
from stackyard.provider.guests.guest import CONTAINER, VM, Guest, GuestKind, find_guest, locate_guest

__all__ = [
    "CONTAINER",
    "VM",
    "CreatedGuest",
    "Creation",
    "Guest",
    "GuestKind",
    "find_guest",
    "left_on_failure",
    "locate_guest",
    "make_once",
    "mark_description",
]
