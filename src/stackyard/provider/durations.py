"""Durations as a configuration writes them (`90s`, `15m`, `1h30m`), by the rules of Go."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["duration_s", "is_duration", "same_duration"]

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(rf"(\d+\.?\d*|\.\d+)({'|'.join(_UNITS_S)})")
_WHOLE = re.compile(rf"([-+]?)((?:{_PART.pattern})+|0)")


def duration_s(text: str) -> float:
    """Return the seconds in a text such as `15m` or `1h30m`.

    Raises:
        ValueError: It is no such text.
    """
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration")
    total = sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(match[2]))
    return -total if match[1] == "-" else total


def is_duration(value: Any) -> str | None:
    """Check that a text is a duration."""
    try:
        duration_s(str(value))
    except ValueError:
        return "must be a duration such as 15m"
    return None


def same_duration(prior: Any, config: Any) -> bool:
    """Tell whether two texts are the same duration."""
    try:
        return duration_s(str(prior)) == duration_s(str(config))
    except ValueError:
        return False
