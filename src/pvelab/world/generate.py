"""Values that Proxmox makes up: MAC addresses, UUIDs, secrets of tokens."""

from __future__ import annotations

import secrets
import uuid

__all__ = ["DEFAULT_MAC_PREFIX", "mac_address", "new_uuid"]

# The range that Proxmox registered for its guests.
DEFAULT_MAC_PREFIX = "BC:24:11"


def mac_address(prefix: str = DEFAULT_MAC_PREFIX) -> str:
    """Return a random unicast MAC address that begins with a prefix, in capitals."""
    given = prefix.replace(":", "").upper()
    digits = given + secrets.token_hex(6).upper()[len(given) :]
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))


def new_uuid() -> str:
    """Return a random UUID."""
    return str(uuid.uuid4())
