"""Property strings, `virtio=BC:24:11:00:00:01,bridge=vmbr0`: read into a dict and written from one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["flag", "numbered", "parse", "render", "text", "whole"]


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
    return ",".join(f"{name}={_text(value)}" for name, value in properties.items() if value is not None)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def flag(value: Any, default: bool = False) -> bool:
    """Return a property that is on or off."""
    return default if value is None else str(value) == "1"


def whole(value: Any, default: int = 0) -> int:
    """Return a property that is a number."""
    return default if value in (None, "") else int(float(str(value)))


def text(value: Any) -> str:
    """Return a property that is a text."""
    return "" if value is None else str(value)


def numbered(config: Mapping[str, Any], prefix: str) -> Iterator[tuple[int, Any]]:
    """Give the devices of a kind (`net0`, `net1`, ...) in the order of their numbers."""
    pattern = re.compile(rf"{prefix}(\d+)")
    found = [(int(match[1]), value) for key, value in config.items() if (match := pattern.fullmatch(key))]
    yield from sorted(found, key=lambda one: one[0])
