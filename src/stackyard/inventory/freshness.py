"""Whether a published inventory says what is so now; where that is unknown, it says that."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.inventory.contract import Inventory, Origin

__all__ = ["Freshness", "freshness"]


class Freshness(enum.StrEnum):
    """What readers may rely on."""

    CURRENT = "current"
    OWED = "apply owed"
    UNKNOWN = "unknown"


def freshness(published: Inventory | None, now: Origin | None) -> Freshness:
    """Compare what was published with what should be there and what the state has.

    Args:
        published: The inventory, None where there is none that can be read.
        now: What one that was rendered now would come from, None where that is unknown.
    """
    if published is None or now is None:
        return Freshness.UNKNOWN
    return Freshness.CURRENT if published.origin == now else Freshness.OWED
