"""How the verbs of `stackyard state` spell times, sizes and periods."""

from __future__ import annotations

import datetime
import enum
import json
import re
from typing import Any

import click

__all__ = ["PERIOD", "Period", "brief", "instant", "local_time", "period", "plain", "size"]

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_PERIOD = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_KIB = 1024
# More of a value than this says nothing to a person who compares two.
_LONGEST_VALUE = 100


def instant(at: float | None) -> str | None:
    """Return a time for a program: UTC, as RFC 3339 spells it."""
    if at is None:
        return None
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def local_time(at: float | None) -> str:
    """Return a time for a person, in their own time zone."""
    if at is None:
        return "-"
    return datetime.datetime.fromtimestamp(at, datetime.UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def period(seconds: float) -> str:
    """Return a length of time in its two largest units: `3 h 12 min`."""
    whole = max(0, int(seconds))
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min" if minutes else f"{whole} s"


def size(count: int) -> str:
    """Return a number of bytes in a unit that fits."""
    amount, units = float(count), ["B", "KiB", "MiB", "GiB"]
    while amount >= _KIB and len(units) > 1:
        amount /= _KIB
        units.pop(0)
    return f"{count} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"


def plain(value: Any) -> Any:
    """Return a value that JSON has: what represents a hidden value becomes a text."""
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def brief(value: Any) -> str:
    """Return a value on one line, cut off where it is long."""
    if isinstance(value, enum.Enum):
        return str(value)
    text = json.dumps(plain(value), ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


class Period(click.ParamType[float]):
    """A length of time as users write it: `90s`, `30m`, `12h`, `30d`, `4w`."""

    name = "period"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        if isinstance(value, float):
            return value
        found = _PERIOD.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no length of time: write 90s, 30m, 12h, 30d or 4w.", param, ctx)
        return float(found[1]) * _UNITS_S[found[2]]


PERIOD = Period()
