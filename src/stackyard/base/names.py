"""Names that become parts of paths and of keys."""

from __future__ import annotations

import re

__all__ = ["escape_part"]

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def escape_part(part: str) -> str:
    """Return a part of the name of a state: itself where that is plain, never the same for two."""
    if _SAFE.fullmatch(part):
        return part
    return "".join(c if _SAFE.fullmatch(c) or c in "._-" else f"~{ord(c):x}~" for c in part) or "~"
