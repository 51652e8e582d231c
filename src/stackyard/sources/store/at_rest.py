"""The keys of stores that are encrypted at rest as a whole, as the environment gives them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.clients.objects.sealed import KeyRing

__all__ = ["RING_VARIABLE", "read_ring"]

RING_VARIABLE = "STACKYARD_STATE_KEY"


def read_ring() -> KeyRing | None:
    """Return the keys; None where stores are not encrypted as a whole.

    Raises:
        MasterKeyError: What should be a key is none.
    """
    text = os.environ.get(RING_VARIABLE, "")
    if not text.strip():
        return None
    from stackyard.clients.objects.sealed import KeyRing  # lazy: cryptography costs 50 ms

    return KeyRing.from_text(text)
