"""How Proxmox writes the parts of a container: `VALUE,key=value,...` texts, sizes, and lists in them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["GIB", "indexed", "is_on", "join", "listed", "number", "size_bytes", "size_text", "split"]

GIB = 1024**3
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": GIB, "t": 1024**4}


def split(text: str, first: str) -> dict[str, str]:
    """Return the parts of a text by name; the one without a name gets the name `first`."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        found.update({name: value} if equals else {first: name})
    return found


def join(parts: Iterable[tuple[str, Any]]) -> str:
    """Return parts as a text; those that are None are left out, and flags are 1 and 0."""
    spelled = ((name, int(value) if isinstance(value, bool) else value) for name, value in parts)
    return ",".join(f"{name}={value}" if name else str(value) for name, value in spelled if value is not None)


def is_on(parts: Mapping[str, Any], name: str, default: bool = False) -> bool:
    """Tell whether a flag is set."""
    value = parts.get(name)
    return default if value is None else str(value).lower() in ("1", "true")


def listed(parts: Mapping[str, str], name: str) -> list[str]:
    """Return the elements of a part that is a list."""
    return [one for one in parts.get(name, "").split(";") if one]


def number(value: Any, default: int = 0) -> int | float:
    """Return a number that may come as text."""
    if value is None or value == "":
        return default
    found = float(value)
    return int(found) if found.is_integer() else found


def indexed(config: Mapping[str, Any], prefix: str) -> list[tuple[int, str]]:
    """Return the numbered properties of a kind (`net0`, `net1`) in the order of their numbers."""
    found = [
        (int(name.removeprefix(prefix)), str(value))
        for name, value in config.items()
        if re.fullmatch(rf"{prefix}\d+", name)
    ]
    return sorted(found)


def size_bytes(text: str) -> int | None:
    """Return a size such as `8G` in bytes, None when the text is no size."""
    found = _SIZE.fullmatch(text.strip())
    return math.ceil(float(found[1]) * _UNITS[found[2].lower()]) if found else None


def size_text(size: int) -> str:
    """Return a size in bytes as Proxmox writes it, in the largest unit that loses nothing."""
    for unit, factor in (("T", 1024**4), ("G", GIB), ("M", 1024**2), ("K", 1024)):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)
