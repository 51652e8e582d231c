"""What objects of the SDN have in common: changes are pending until they are applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import matches

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["PENDING", "SDN_ID", "current"]

# What a pending change shows for a property that is to be removed.
_DELETED = "deleted"
PENDING = {"pending": 1}
SDN_ID = matches("[A-Za-z][A-Za-z0-9]{1,7}", "be 2 to 8 letters and digits and begin with a letter")


def current(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an object with what is pending; None when its removal is."""
    if row.get("state") == _DELETED:
        return None
    merged = {**row, **(row.get("pending") or {})}
    return {name: value for name, value in merged.items() if value != _DELETED}
