"""What objects of the SDN have in common: changes are pending until they are applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import matches
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["PENDING", "SDN_ID", "check_names", "check_type", "current", "with_pending"]

# What a pending change shows for a property that is to be removed.
_DELETED = "deleted"
PENDING = {"pending": 1}
SDN_ID = matches("[A-Za-z][A-Za-z0-9]{1,7}", "be 2 to 8 letters and digits and begin with a letter")


def current(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an object with what is pending; None when its removal is."""
    if row.get("state") == _DELETED:
        return None
    return with_pending(row)


def with_pending(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object as it is going to be, also one whose removal is pending."""
    merged = {**row, **(row.get("pending") or {})}
    return {name: value for name, value in merged.items() if name == "state" or value != _DELETED}


def check_type(name: str, found: Mapping[str, Any], key: str, expected: str) -> None:
    """Refuse an object of another type, which has the same id.

    Raises:
        AttributeValueError: It is of another type.
    """
    actual = found.get(key)
    if actual is not None and actual != expected:
        raise AttributeValueError(f"{name} has the {key} {actual}, not {expected}.", ("id",))


def check_names(value: Any) -> str | None:
    """Check that no element of a set is blank."""
    blank = any(one is not UNKNOWN and not str(one or "").strip() for one in value)
    return "must have no blank element" if blank else None
