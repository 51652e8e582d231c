"""Whether a command line names what all envs share, by the older name of its hypervisors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SHARED", "names_shared"]

SHARED = "site:shared"


def names_shared(values: Mapping[str, Any]) -> bool:
    """Return whether the target is the older name."""
    return bool(values["target"] == SHARED)
