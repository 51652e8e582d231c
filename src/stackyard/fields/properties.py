"""How Proxmox writes values: property strings (`virtio=BC:24:11:00:00:01,bridge=vmbr0`), flags and sizes.

The rules are those of Proxmox's own parser. A flag is on when it is `1`, `on`, `yes` or `true`, in any case.
An empty part of a property string says nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "GIB",
    "flag",
    "list_numbered",
    "number",
    "parse",
    "parse_integer",
    "parse_list",
    "parse_size",
    "render",
    "render_size",
    "text",
]

GIB = 1024**3
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": GIB, "t": 1024**4}
# Proxmox writes `8G`; users of the provider may also write `8 GiB` or `8gb`.
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


def parse(value: Any, first: str) -> dict[str, str]:
    """Return the properties in a text; `first` is the name of the one that may come without."""
    found: dict[str, str] = {}
    for part in str(value).split(","):
        name, separator, rest = part.strip().partition("=")
        if separator:
            found[name] = rest
        elif name:
            found[first] = name
    return found


def render(properties: Mapping[str, Any]) -> str:
    """Return a text with these properties: True and False as 1 and 0, None left out."""
    return ",".join(f"{name}={_spell(value)}" for name, value in properties.items() if value is not None)


def _spell(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def flag(value: Any, default: bool = False) -> bool:
    """Return a property that is on or off."""
    return default if value is None else str(value).lower() in ("1", "on", "yes", "true")


def parse_integer(value: Any, default: int = 0) -> int:
    """Return a property that is a whole number."""
    return default if value in (None, "") else int(float(str(value)))


def number(value: Any, default: int = 0) -> int | float:
    """Return a property that is a number, and may have a fraction."""
    if value in (None, ""):
        return default
    try:
        return int(str(value))
    except ValueError:
        found = float(value)
        return int(found) if found.is_integer() else found


def text(value: Any) -> str:
    """Return a property that is a text."""
    return "" if value is None else str(value)


def parse_list(value: Any) -> list[str]:
    """Return the elements of a property that is a list."""
    return [one for one in text(value).split(";") if one]


def list_numbered(config: Mapping[str, Any], prefix: str) -> list[tuple[int, Any]]:
    """Return the properties of a kind (`net0`, `net1`, ...) in the order of their numbers."""
    pattern = re.compile(rf"{prefix}(\d+)")
    found = [(int(match[1]), value) for key, value in config.items() if (match := pattern.fullmatch(key))]
    return sorted(found, key=lambda one: one[0])


def parse_size(value: Any) -> int | None:
    """Return a size such as `8G` in bytes; None where the value is no size."""
    found = _SIZE.fullmatch(text(value).strip())
    return int(float(found[1]) * _UNITS[found[2].lower()]) if found else None


def render_size(size: int) -> str:
    """Return a size in bytes as Proxmox writes it, in the largest unit that loses nothing."""
    for unit in "TGMK":
        if size and size % _UNITS[unit.lower()] == 0:
            return f"{size // _UNITS[unit.lower()]}{unit}"
    return str(size)
