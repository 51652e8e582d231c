"""Values that Proxmox does not give back as they were written, and that mean the same all the same."""

from __future__ import annotations

from typing import Any

__all__ = ["keep_spelling"]


def keep_spelling(known: Any, found: Any) -> Any:
    """Return what was found, as the state or plan spells it where both mean the same.

    Args:
        known: What the state or the plan says.
        found: What Proxmox says.
    """
    if _is_nothing(found) and (known is False or _is_nothing(known)):
        return known
    if isinstance(known, dict) and isinstance(found, dict):
        return {key: keep_spelling(known.get(key), value) for key, value in found.items()}
    if isinstance(known, str) and isinstance(found, str) and known.rstrip() == found.rstrip():
        # Proxmox keeps no blank lines at the end of a description.
        return known
    return found


def _is_nothing(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_nothing(one) for one in value.values())
    return value is None or value in ("", [])
