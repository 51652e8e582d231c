"""What VMs and containers share: calls to a guest on its node, and finding one that is being created."""

from __future__ import annotations

from stackyard.provider.guests.creation import carries, marked, wait_until_made
from stackyard.provider.guests.guest import CONTAINER, VM, Guest, GuestKind, find_guest

__all__ = ["CONTAINER", "VM", "Guest", "GuestKind", "carries", "find_guest", "marked", "wait_until_made"]
